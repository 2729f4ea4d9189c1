"""Locks on files and directories that are removed when they are released.

The kernel releases a lock when its process is killed.
"""

from collections.abc import Callable, Iterator
import contextlib
import fcntl
import os
import pathlib

from manila_lite.share.drivers import records


def open_locked(
    path: pathlib.Path, opened: Callable[[pathlib.Path], int], wait: bool = True
) -> int | None:
    """Return the open and locked file; None if another has the lock.

    `opened` opens the file, and creates it on demand: the process that had
    the lock before may have removed it.
    """
    while True:
        descriptor = opened(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            if _is_named(path, descriptor):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


@contextlib.contextmanager
def locked(path: pathlib.Path, opened: Callable[[pathlib.Path], int]) -> Iterator[int]:
    """Lock a file, which is not removed on release."""
    descriptor = open_locked(path, opened)
    assert descriptor is not None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def opened_file(path: pathlib.Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def opened_directory(path: pathlib.Path) -> int:
    while True:
        with contextlib.suppress(FileExistsError):
            path.mkdir()  # exist_ok checks again, and fails if it has gone
        with contextlib.suppress(FileNotFoundError):
            return os.open(path, os.O_RDONLY)


def _is_named(path: pathlib.Path, descriptor: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.stat())
    return False


class Locks:
    """A file in a folder for each name that is locked now."""

    def __init__(self, folder: pathlib.Path):
        self._folder = folder

    @contextlib.contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Lock a name against other threads and processes."""
        path = self._folder / records.checked_file_name(name)
        with locked(path, opened_file):
            try:
                yield
            finally:
                path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def try_locked(self, name: str) -> Iterator[bool]:
        """Do the same without waiting; False if it is locked already."""
        path = self._folder / records.checked_file_name(name)
        descriptor = open_locked(path, opened_file, wait=False)
        if descriptor is None:
            yield False
            return
        try:
            yield True
        finally:
            path.unlink(missing_ok=True)
            os.close(descriptor)
