"""What the NFS server exports: one bind mount and one file per volume.

    exports/<kind>.<volume>.conf      what a restarted server reads
    exports/mounts/<kind>.<volume>    the volume: the server of Debian does
                                      not find the subvolumes of a btrfs
    exports/mount.json                which mount exports/mounts is, so that
                                      servers see what is mounted in it
    exports/numbers.json              the numbers of the exports
    exports/mtab                      see `mount_table`
    exports/locks/<kind>.<volume>     while an export is being changed

The file is written before the running server is changed, and removed before
the export is, so that a server that starts meanwhile allows no more than it
should.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
import contextlib
import os
import pathlib
import time
from typing import NamedTuple

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import ganesha, records
from manila_lite.share.drivers.btrfs import catalog, kernel
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.exports.nfs.export_numbers import ExportNumbers
from manila_lite.share.drivers.btrfs.exports.nfs.mount_table import MountTable
from manila_lite.share.drivers.file_locks import Locks
from manila_lite.share.drivers.nfs_clients import Client

LOG = log.getLogger(__name__)

_CLOSE_TIMEOUT = 10.0
_CLOSE_INTERVAL = 0.005
_NOBODY = 65534


def pseudo_path(kind: Kind, volume: str) -> str:
    """Return the path that clients mount."""
    return f'/{kind}/{volume}'


class _Difference(NamedTuple):
    """An export that runs and should not, or the other way round."""

    number: int
    name: str | None
    is_running: bool


class Exports:
    """The exports of one NFS server.

    Every method locks the export that it changes, and may be repeated. Callers
    lock the names of shares and snapshots; the volume of a managed one has
    another name.
    """

    def __init__(self, folder: pathlib.Path, server: ganesha.Ganesha, locks: Locks):
        self._folder = folder
        self._mounts = folder / 'mounts'
        self._record = folder / 'mount.json'
        self._server = server
        self._locks = Locks(folder / 'locks')
        self._numbers = ExportNumbers(folder / 'numbers.json', locks)
        self._table = MountTable(folder, self._locks)

    def prepare(self) -> None:
        for folder in (self._mounts, self._folder / 'locks'):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        kernel.share_mounts(self._mounts)
        found = {'id': kernel.mount_id(self._mounts)}
        if records.find(self._record) != found:
            records.write(self._record, found)

    def is_in_place(self) -> bool:
        """Return whether servers see what is mounted for exports.

        They do not if somebody has unmounted the folder of the mounts: a
        client would write to the directory below.
        """
        record = records.find(self._record)
        try:
            return record is None or (record['id'] == kernel.mount_id(self._mounts))
        except FileNotFoundError:
            return False

    def is_seen_by(self, pid: int) -> bool:
        """Return whether a server that runs sees what is mounted."""
        try:
            return kernel.is_mount_seen(self._mounts, pid)
        except ProcessLookupError:
            return True  # it has ended, and the next one does

    def publish(
        self,
        kind: Kind,
        volume: str,
        source: pathlib.Path,
        clients: Sequence[Client],
        of: str | None = None,
    ) -> None:
        """Export a volume to exactly these clients.

        It is not exported until it has some: each export costs the server time
        and memory, and the more there are, the more each costs. A snapshot is
        one `of` the volume of a share.
        """
        name = _name(kind, volume)
        with self._locks.locked(name):
            if clients or self._is_begun(name):
                pseudo = pseudo_path(kind, volume)
                self._publish(name, source, pseudo, clients, of)

    def snapshots_of(self, volume: str) -> Iterator[str]:
        """Yield the exported snapshots of a volume, also of a lost pool."""
        return catalog.exported_snapshots_of(self._folder, volume)

    def number(self, kind: Kind, volume: str) -> int | None:
        """Return the number of an export."""
        return self._numbers.find(_name(kind, volume))

    def republish(self, kind: Kind, volume: str, source: pathlib.Path) -> None:
        """Export the volume that has replaced another one.

        The clients remain the same. One that had none was not exported.
        """
        name = _name(kind, volume)
        with self._locks.locked(name):
            number = self._numbers.find(name)
            if number is not None and self._file(name).exists():
                self._mount(name, number, source)
                self._apply(name, number)
            elif self._is_begun(name):
                self._publish(name, source, pseudo_path(kind, volume), [])

    def refresh(self, kind: Kind, volume: str) -> None:
        """Invalidate the server's cache of the content of a volume.

        It does not notice changes that it has not made itself. Clients keep
        the volume mounted.
        """
        name = _name(kind, volume)
        with self._locks.locked(name):
            number = self._numbers.find(name)
            if number is not None:
                self._server.remove(number)

    def listed(self, kind: Kind, volume: str) -> str | None:
        """Return the text that says how a volume is exported, if it is."""
        file = self._file(_name(kind, volume))
        return file.read_text() if file.exists() else None

    def close(self, kind: Kind, volume: str) -> None:
        """End the export until `reopen`; on return no write is in progress.

        The server has closed all files once the volume can be unmounted.
        """
        name = _name(kind, volume)
        with self._locks.locked(name):
            records.remove(self._file(name))
            number = self._numbers.find(name)
            if number is not None:
                self._server.remove(number)
            self._unmount_idle(name)

    def reopen(self, kind: Kind, volume: str, source: pathlib.Path, text: str) -> None:
        """Export a volume again as `listed` has said."""
        name = _name(kind, volume)
        with self._locks.locked(name):
            number = self._numbers.find(name)
            if number is not None:
                records.write_text(self._file(name), text, durable=True)
                self._mount(name, number, source)
                self._apply(name, number)

    def remove_export_record(self, kind: Kind, volume: str) -> None:
        """Remove the record by which a server would export a volume.

        `reconcile` ends the export of a server that is running already.
        """
        name = _name(kind, volume)
        with self._locks.locked(name):
            records.remove(self._file(name))

    def withdraw(self, kind: Kind, volume: str) -> None:
        """End an export; files that clients have open are closed."""
        name = _name(kind, volume)
        with self._locks.locked(name):
            self._withdraw(name)

    def is_published(self, kind: Kind, volume: str, source: pathlib.Path) -> bool:
        """Return whether the files and the mount are as they should be."""
        name = _name(kind, volume)
        return not self._is_begun(name) or (
            self._numbers.find(name) is not None
            and self._file(name).exists()
            and kernel.is_mount_of(source, self._mounts / name)
        )

    def _is_begun(self, name: str) -> bool:
        """Return whether a volume is exported, or was while it ended."""
        return self._file(name).exists() or self._numbers.find(name) is not None

    def _publish(
        self,
        name: str,
        source: pathlib.Path,
        pseudo: str,
        clients: Sequence[Client],
        of: str | None = None,
    ) -> None:
        is_new = self._numbers.find(name) is None
        number = self._numbers.allocate(name)
        export = ganesha.Export(number, self._mounts / name, pseudo, clients)
        text = catalog.origin_comment(of) + ganesha.export_config(export)
        records.write_text(self._file(name), text, durable=True)
        self._mount(name, number, source)
        self._apply(name, number, is_new)

    def _apply(self, name: str, number: int, is_new: bool = False) -> None:
        """Let the server export a volume as its file says."""
        self._server.apply(
            self._file(name),
            number,
            lambda: self._table.add(
                self._mounts / name, lambda: self._are_added(besides=name)
            ),
            is_new,
        )

    def _are_added(self, besides: str) -> bool:
        """Return whether the server exports all others that it should."""
        return self._server.numbers().issuperset(
            number
            for name, number in self._numbers.all().items()
            if name != besides
            and self._file(name).exists()
            and os.path.ismount(self._mounts / name)
        )

    def _withdraw(self, name: str) -> None:
        records.remove(self._file(name))
        number = self._numbers.find(name)
        if number is not None:
            self._server.remove(number)
        self._unmount(name)
        with contextlib.suppress(FileNotFoundError):
            (self._mounts / name).rmdir()
        self._numbers.release(name)

    # Start

    def restore_mounts(
        self, find: Callable[[Kind, str], pathlib.Path | None]
    ) -> list[str]:
        """Mount the volumes of all exports, after a start of the machine.

        What is mounted there of another file system, which was lost, is
        replaced. An error of one volume does not affect the others. Returns
        what was mounted.
        """
        mounted = []
        for name in self._names():
            try:
                if self._restore_mount(name, find):
                    mounted.append(name)
            except OSError as error:
                LOG.error(
                    '%(name)s is not exported: %(error)s',
                    {'name': name, 'error': error},
                )
        return mounted

    def _restore_mount(
        self, name: str, find: Callable[[Kind, str], pathlib.Path | None]
    ) -> bool:
        kind, _, volume = name.partition('.')
        source, target = find(Kind(kind), volume), self._mounts / name
        if source is None:
            if not os.path.ismount(target):
                LOG.warning('%s is not exported: no volume', name)
            return False
        if kernel.is_mount_of(source, target):
            return False
        with self._locks.locked(name):
            source = find(Kind(kind), volume)
            if (
                source is None
                or not self._file(name).exists()
                or kernel.is_mount_of(source, target)
            ):
                return False
            self._detach(name)
            _cover(source, target)
            return True

    def detach_lost(self, tops: Iterable[pathlib.Path]) -> bool:
        """Unmount file systems other than those of the mounted pools.

        They cannot be mounted again before. What is exported from them is
        exported again by `restore_mounts` and `reconcile`. Returns whether
        there were any.
        """
        lost = kernel.lost_mounts(self._mounts, tops)
        for target in lost:
            LOG.warning('%s is no longer exported: it is lost', target.name)
            with self._locks.locked(target.name):
                self._detach(target.name)
        return bool(lost)

    def _detach(self, name: str) -> None:
        """Withdraw all volumes from clients; a restarted server exports none."""
        number = self._numbers.find(name)
        if (
            number is not None
            and os.path.ismount(self._mounts / name)
            and self._server.is_answering()
        ):
            self._server.remove(number)
        self._unmount(name)

    def reconcile(self) -> None:
        """Make the running server export what it should, and nothing else.

        Other processes may change exports meanwhile: a number that is in use
        was in the table before. If the server refuses an export, the error is
        raised once it has the others.
        """
        running = self._server.numbers()
        numbers = self._numbers.all()
        errors: list[exception.ShareBackendException] = []
        for number in running - set(numbers.values()):
            self._server.remove(number)
        for name, number in numbers.items():
            try:
                self._reconcile(name, number, running)
            except exception.ShareBackendException as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def _reconcile(self, name: str, number: int, running: set[int]) -> None:
        if number not in running or not self._file(name).exists():
            with self._locks.locked(name):
                self._export_as_listed(number, name, number in running)

    def _export_as_listed(self, number: int, name: str, is_running: bool) -> bool:
        """Make the server export a volume, or not, as its file says.

        Returns whether it did something else.
        """
        if not self._file(name).exists():
            if is_running:
                self._server.remove(number)
            return is_running
        if (
            is_running
            or self._numbers.find(name) != number
            or not os.path.ismount(self._mounts / name)
        ):
            return False
        self._apply(name, number)
        return True

    def restore(self, find: Callable[[Kind, str], pathlib.Path | None]) -> list[str]:
        """Undo changes that others have made while the server runs.

        That is: an export is missing, or there is one too many, or its volume
        is not mounted. What is being changed is left alone. An export whose
        file was removed ends, since its clients are not known any more; they
        are when its rules are applied again. Returns what was restored.
        """
        found = self._differing()  # raises an error if it does not answer
        restored = set(self.restore_mounts(find))
        if found:
            # What another process has changed meanwhile does not differ twice.
            found &= self._differing()
        for each in found:
            if self._restore(each):
                restored.add(each.name or f'export {each.number}')
                _log_lost_clients(each)
        return sorted(restored)

    def _differing(self) -> set['_Difference']:
        running = self._server.numbers()
        names = {number: name for name, number in self._numbers.all().items()}
        found = {
            _Difference(number, names.get(number), number in running)
            for number in running | names.keys()
        }
        return {
            each
            for each in found
            if each.is_running
            != (each.name is not None and self._file(each.name).exists())
        }

    def _restore(self, found: '_Difference') -> bool:
        """Restore an export; return False if it is being changed, or was."""
        if found.name is None:
            self._server.remove(found.number)
            return True
        with self._locks.try_locked(found.name) as is_locked:
            return is_locked and self._export_as_listed(
                found.number, found.name, found.is_running
            )

    def _names(self) -> list[str]:
        return sorted(file.stem for file in self._folder.glob('*.conf'))

    def _file(self, name: str) -> pathlib.Path:
        return self._folder / f'{name}.conf'

    # Mounts

    def _mount(self, name: str, number: int, source: pathlib.Path) -> None:
        target = self._mounts / name
        if not self.is_in_place():
            raise exception.StorageUnavailable(
                reason=f'{self._mounts} was unmounted: nothing is exported '
                'before the NFS server has been started again'
            )
        if kernel.is_mount_of(source, target):
            return
        if os.path.ismount(target):
            # It shows what was there before: no client may keep it.
            self._server.remove(number)
            self._unmount(name)
        _cover(source, target)

    def _unmount_idle(self, name: str) -> None:
        deadline = time.monotonic() + _CLOSE_TIMEOUT
        while os.path.ismount(self._mounts / name):
            if kernel.unmount_idle(self._mounts / name):
                continue
            if time.monotonic() > deadline:
                raise exception.ShareBackendException(
                    msg=f'the NFS server does not close the files of {name}'
                )
            time.sleep(_CLOSE_INTERVAL)

    def _unmount(self, name: str) -> None:
        while os.path.ismount(self._mounts / name):
            kernel.unmount(self._mounts / name)


def _cover(source: pathlib.Path, target: pathlib.Path) -> None:
    """Mount a volume on a directory that clients cannot use without it."""
    target.mkdir(mode=0, exist_ok=True)
    if not os.path.ismount(target):
        os.chown(target, _NOBODY, _NOBODY)
        target.chmod(0)
    kernel.bind_mount(source, target)


def _log_lost_clients(found: '_Difference') -> None:
    if found.is_running and found.name is not None:
        LOG.error(
            '%s is no longer exported: the file with its clients is gone; '
            'they are let in when the shares are ensured',
            found.name,
        )


def _name(kind: Kind, volume: str) -> str:
    return records.checked_file_name(f'{kind}.{volume}')
