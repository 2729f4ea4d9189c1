"""Backups whose copy waits, as one of many files does."""

import pathlib
import threading

from manila_lite.data import backup_driver

NAME = f'{__name__}:WaitingBackups'


def begun_file(folder: pathlib.Path) -> pathlib.Path:
    """Return the file that exists while a copy waits."""
    return folder / 'begun'


def wait_file(folder: pathlib.Path) -> pathlib.Path:
    """Return the file for whose removal a copy waits."""
    return folder / 'wait'


class WaitingBackups(backup_driver.FolderBackups):
    """`folder`, but backups are created while there is no file `wait`."""

    def create(
        self, backup_id: str, share: int, copying: backup_driver.Copying
    ) -> None:
        pause = threading.Event()
        while wait_file(self._top).exists():
            begun_file(self._top).touch()
            copying.check()
            pause.wait(0.01)
        super().create(backup_id, share, copying)
