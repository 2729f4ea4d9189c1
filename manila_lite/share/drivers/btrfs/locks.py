"""Locks by name, which the kernel releases when a process is killed."""

from collections.abc import Iterator
import contextlib
import fcntl
import os
import pathlib

from manila_lite.share.drivers import records


class Locks:
    """A file in a folder for each name that is locked now."""

    def __init__(self, folder: pathlib.Path):
        self._folder = folder

    @contextlib.contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Lock a name against other threads and processes."""
        path = self._folder / records.checked_file_name(name)
        descriptor = None
        while descriptor is None:
            descriptor = _try_lock(path, fcntl.LOCK_EX)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            os.close(descriptor)

    @contextlib.contextmanager
    def try_locked(self, name: str) -> Iterator[bool]:
        """Do the same without waiting; False if it is locked already."""
        path = self._folder / records.checked_file_name(name)
        try:
            descriptor = _try_lock(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            descriptor = None
        if descriptor is None:
            yield False
            return
        try:
            yield True
        finally:
            path.unlink(missing_ok=True)
            os.close(descriptor)


def _try_lock(path: pathlib.Path, how: int) -> int | None:
    """Return the open, locked file; None if it was removed meanwhile."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, how)
    except BaseException:
        os.close(descriptor)
        raise
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            return descriptor
    os.close(descriptor)
    return None
