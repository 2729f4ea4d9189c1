"""Locks by name, which the kernel releases when a process is killed."""

from collections.abc import Iterator
import contextlib
import os
import pathlib

from manila_lite.share.drivers import file_locks, records


class Locks:
    """A file in a folder for each name that is locked now."""

    def __init__(self, folder: pathlib.Path):
        self._folder = folder

    @contextlib.contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Lock a name against other threads and processes."""
        path = self._folder / records.checked_file_name(name)
        with file_locks.locked(path, file_locks.opened_file):
            try:
                yield
            finally:
                path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def try_locked(self, name: str) -> Iterator[bool]:
        """Do the same without waiting; False if it is locked already."""
        path = self._folder / records.checked_file_name(name)
        descriptor = file_locks.open_locked(path, file_locks.opened_file, wait=False)
        if descriptor is None:
            yield False
            return
        try:
            yield True
        finally:
            path.unlink(missing_ok=True)
            os.close(descriptor)
