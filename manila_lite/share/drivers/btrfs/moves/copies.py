"""Read-only copies of volumes, as they are sent from pool to pool.

    top/copies/<share>/<for>.<time>             taken here, to be sent
    top/copies/<share>/<for>.<time>.received    received, and on disk

A copy without the suffix that this pool did not take is one that a process
was receiving when it was killed. The share that a copy was sent for comes
first in its name, or `once` if nothing is sent on the basis of it.
"""

import contextlib
import os
import pathlib
import time

from manila_lite.share.drivers import records
from manila_lite.share.drivers.btrfs import kernel

FOLDER = 'copies'
ONCE = 'once'
_RECEIVED = '.received'


class Copies:
    """The copies that one share has in one pool.

    Those of a share server have a folder of their own, see `moves`.
    """

    def __init__(self, top: pathlib.Path, share: str, folder: str = FOLDER):
        self._top = top
        self.folder = top / folder / records.checked_file_name(share)

    def prepare(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def create_snapshot(self, source: pathlib.Path, target: str) -> pathlib.Path:
        """Return a new copy of a volume, to be sent for the target."""
        self.prepare()
        path = self.folder / f'{target}.{time.time_ns():020}'
        kernel.create_snapshot(source, path, read_only=True)
        return path

    def confirm(self, received: pathlib.Path) -> pathlib.Path:
        """Write a received copy to disk, and return its lasting path."""
        kernel.flush(self._top)
        path = received.with_name(received.name + _RECEIVED)
        received.rename(path)
        return path

    def sent_for(self, target: str) -> list[pathlib.Path]:
        """Return what was taken here for a share elsewhere."""
        return [
            path for path in self._named(target) if not path.name.endswith(_RECEIVED)
        ]

    def received_for(self, target: str) -> list[pathlib.Path]:
        """Return what was received as a whole, the latest last."""
        return [path for path in self._named(target) if path.name.endswith(_RECEIVED)]

    def whole(self) -> list[pathlib.Path]:
        """Return all copies that another pool may have, the latest last."""
        found = [
            path
            for path in self._all()
            if path.name.endswith(_RECEIVED)
            or _target(path) not in (ONCE, self.folder.name)
        ]
        return sorted(found, key=_time)

    def targets(self) -> set[str]:
        """Return the shares that copies were sent for."""
        return {_target(path) for path in self._all()}

    def discard(self, target: str, *kept: pathlib.Path) -> None:
        """Remove the copies that were sent for a share, but those kept."""
        for path in self._named(target):
            if path not in kept:
                kernel.destroy(path)

    def drop(self) -> None:
        """Remove all copies, also partial ones."""
        for path in self._all():
            # Another process may do the same.
            with contextlib.suppress(FileNotFoundError):
                kernel.destroy(path)
        self.remove_empty()

    def remove_empty(self) -> None:
        """Remove the folder if there is no copy in it."""
        with contextlib.suppress(FileNotFoundError):
            if not os.listdir(self.folder):
                self.folder.rmdir()

    def _named(self, target: str) -> list[pathlib.Path]:
        return [path for path in self._all() if _target(path) == target]

    def _all(self) -> list[pathlib.Path]:
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        return sorted(self.folder / name for name in names)


def _target(path: pathlib.Path) -> str:
    return path.name.removesuffix(_RECEIVED).rpartition('.')[0]


def _time(path: pathlib.Path) -> str:
    return path.name.removesuffix(_RECEIVED).rpartition('.')[2]


def owners(top: pathlib.Path, folder: str = FOLDER) -> list[str]:
    """Return the shares that have copies in a pool."""
    try:
        return os.listdir(top / folder)
    except FileNotFoundError:
        return []
