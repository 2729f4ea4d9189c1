"""What the NFS server exports: one bind mount and one file per volume.

    exports/<kind>.<volume>.conf      what a restarted server reads
    exports/mounts/<kind>.<volume>    the volume: the server of Debian does
                                      not find the subvolumes of a btrfs
    exports/numbers.json              the numbers of the exports

The file is written before the running server is changed, and removed before
the export is, so that a server that starts meanwhile allows no more than it
should.
"""

from collections.abc import Callable, Sequence
import contextlib
import os
import pathlib

from oslo_log import log

from manila_lite.share.drivers import records
from manila_lite.share.drivers.btrfs import ganesha
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.clients import Client
from manila_lite.share.drivers.btrfs.export_numbers import ExportNumbers
from manila_lite.share.drivers.btrfs.locks import Locks

LOG = log.getLogger(__name__)


def pseudo_path(kind: Kind, volume: str) -> str:
    """Return the path that clients mount."""
    return f'/{kind}/{volume}'


class Exports:
    """The exports of one NFS server.

    Callers lock the volume. Every method may be repeated.
    """

    def __init__(
        self, folder: pathlib.Path, server: ganesha.Ganesha, locks: Locks
    ):
        self._folder = folder
        self._mounts = folder / 'mounts'
        self._server = server
        self._locks = locks
        self._numbers = ExportNumbers(folder / 'numbers.json', locks)

    def prepare(self) -> None:
        self._mounts.mkdir(mode=0o700, parents=True, exist_ok=True)

    def publish(
        self,
        kind: Kind,
        volume: str,
        source: pathlib.Path,
        clients: Sequence[Client],
    ) -> None:
        """Export a volume to exactly these clients."""
        name = _name(kind, volume)
        number = self._numbers.allot(name)
        export = ganesha.Export(
            number, self._mounts / name, pseudo_path(kind, volume), clients
        )
        file = self._file(name)
        records.write_text(file, ganesha.export_config(export))
        self._mount(name, number, source)
        self._server.apply(file, number)
        # Flushing takes longer than the change, and clients need not wait.
        _sync(file)

    def republish(self, kind: Kind, volume: str, source: pathlib.Path) -> None:
        """Export the volume that has taken the place of another one.

        The clients remain the same.
        """
        name = _name(kind, volume)
        number = self._numbers.find(name)
        if number is not None and self._file(name).exists():
            self._mount(name, number, source)
            self._server.apply(self._file(name), number)
        else:
            self.publish(kind, volume, source, [])

    def refresh(self, kind: Kind, volume: str) -> None:
        """Let the server forget what it knows of the content of a volume.

        It does not notice changes that it has not made itself. Clients keep
        the volume mounted.
        """
        number = self._numbers.find(_name(kind, volume))
        if number is not None:
            self._server.remove(number)

    def withdraw(self, kind: Kind, volume: str) -> None:
        """End an export; files that clients have open are closed."""
        name = _name(kind, volume)
        self._file(name).unlink(missing_ok=True)
        number = self._numbers.find(name)
        if number is not None:
            self._server.remove(number)
        self._unmount(name)
        with contextlib.suppress(FileNotFoundError):
            (self._mounts / name).rmdir()
        self._numbers.release(name)

    def is_published(
        self, kind: Kind, volume: str, source: pathlib.Path
    ) -> bool:
        """Return whether the files and the mount are as they should be."""
        name = _name(kind, volume)
        return (
            self._numbers.find(name) is not None
            and self._file(name).exists()
            and kernel.is_mount_of(source, self._mounts / name)
        )

    # Start

    def restore_mounts(
        self, find: Callable[[Kind, str], pathlib.Path | None]
    ) -> None:
        """Mount the volumes of all exports, after a start of the machine."""
        for name in self._names():
            if os.path.ismount(self._mounts / name):
                continue
            kind, _, volume = name.partition('.')
            with self._locks.locked(volume):
                source = find(Kind(kind), volume)
                if source is None:
                    LOG.warning('%s is not exported: no volume', name)
                elif self._file(name).exists():
                    (self._mounts / name).mkdir(mode=0o700, exist_ok=True)
                    kernel.bind_mount(source, self._mounts / name)

    def reconcile(self) -> None:
        """Let the running server export what it should, and nothing else.

        Other processes may change exports meanwhile: a number that is in use
        was in the table before.
        """
        running = self._server.numbers()
        numbers = self._numbers.all()
        for number in running - set(numbers.values()):
            self._server.remove(number)
        for name, number in numbers.items():
            if number not in running:
                with self._locks.locked(name.partition('.')[2]):
                    if self._file(name).exists() and os.path.ismount(
                        self._mounts / name
                    ):
                        self._server.apply(self._file(name), number)

    def _names(self) -> list[str]:
        return sorted(file.stem for file in self._folder.glob('*.conf'))

    def _file(self, name: str) -> pathlib.Path:
        return self._folder / f'{name}.conf'

    # Mounts

    def _mount(self, name: str, number: int, source: pathlib.Path) -> None:
        target = self._mounts / name
        if kernel.is_mount_of(source, target):
            return
        if os.path.ismount(target):
            # It shows what was there before: no client may keep it.
            self._server.remove(number)
            self._unmount(name)
        target.mkdir(mode=0o700, exist_ok=True)
        kernel.bind_mount(source, target)

    def _unmount(self, name: str) -> None:
        while os.path.ismount(self._mounts / name):
            kernel.unmount(self._mounts / name)


def _name(kind: Kind, volume: str) -> str:
    return records.checked_file_name(f'{kind}.{volume}')


def _sync(file: pathlib.Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    records.sync_directory(file.parent)
