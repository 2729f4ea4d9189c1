"""Backups whose copy waits, as one of many files does."""

import pathlib
import threading

from manila_lite.data import backup_driver, gate

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
        self, backup_id: str, share: int, how: gate.Copying
    ) -> backup_driver.KeptCopy:
        pause = threading.Event()
        while wait_file(self._top).exists():
            begun_file(self._top).touch()
            how.check()
            pause.wait(0.01)
        return super().create(backup_id, share, how)
