"""Directory layout of the local driver, and the locks on it.

    root/shares/<share>/data            what users see and use
    root/shares/<share>/share.json      size and protocol, beside the data
    root/snapshots/<snapshot>/data, snapshot.json
    root/exports/<share or snapshot>.exports     for an NFS server
    root/exports/<share or snapshot>.smb         for Samba
    root/exports/smb.conf                        includes the Samba files
    root/work/<share or snapshot>/      being created or removed
    root/fencing/                       tokens of the last calls
    root/.manila_lite, .manila_lite_disk    mark the root, see `disk`

See `replica` for the additional files of replicas.

A share or snapshot appears and disappears by one rename from or to `work`,
so it is complete or absent at any moment. What a killed process left in
`work` is removed by the next operation on the same name.

A managed share stays where it was: its record names the directory. When it
is unmanaged, `unmanaged.json` keeps the record.
"""

from collections.abc import Iterator
import contextlib
import os
import pathlib

from manila_lite.share.drivers import file_locks, records, samba, tree_removal, trees
from manila_lite.share.drivers.fencing import FencingTokens
from manila_lite.share.drivers.local.disk import IDENTITY, MARKER, LocalDisk

SHARES, SNAPSHOTS = 'shares', 'snapshots'
REPLICA, KNOWN, FOLLOWER = 'replica.json', 'known.json', 'follower-'

_RECORDS = {SHARES: 'share.json', SNAPSHOTS: 'snapshot.json'}
_UNMANAGED = 'unmanaged.json'
# No share has such names.
_LOCK = '.managing'
_SAMBA_LOCK = '.samba'
_FENCING = 'fencing'
_PARTS = (SHARES, SNAPSHOTS, 'exports', 'work', _FENCING)


class LocalItem:
    """The paths of one share or snapshot, whether or not it exists."""

    def __init__(self, root: pathlib.Path, kind: str, name: str):
        self._root = root
        self.kind = kind
        self.name = records.checked_file_name(name)
        self.path = root / kind / self.name
        self.exports = root / 'exports' / f'{self.name}.exports'
        self.samba = root / 'exports' / f'{self.name}.smb'

    def find(self) -> records.Record | None:
        """Return the record of a managed item, or None."""
        return records.find(self.path / _RECORDS[self.kind])

    def find_unmanaged(self) -> records.Record | None:
        """Return the record of an unmanaged item, or None."""
        return records.find(self.path / _UNMANAGED)

    def write_record(self, record: records.Record) -> None:
        """Write the record durably."""
        records.write(self.path / _RECORDS[self.kind], record, durable=True)

    def publish(self, work: pathlib.Path, record: records.Record) -> None:
        """Move a finished work directory here, durably."""
        records.write(work / _RECORDS[self.kind], record, durable=True)
        work.rename(self.path)
        records.sync_directory(self.path.parent)

    def relative_data_path(self, record: records.Record) -> str:
        """Return the path of the data, relative to the root."""
        return record.get('directory') or f'{self.kind}/{self.name}/data'

    def data_path(self, record: records.Record) -> pathlib.Path:
        return self._root / self.relative_data_path(record)

    def unmanage(self) -> None:
        """Stop managing the item; its data stays in place."""
        with contextlib.suppress(FileNotFoundError):
            (self.path / _RECORDS[self.kind]).rename(self.path / _UNMANAGED)
            records.sync_directory(self.path)

    def remove_unmanaged(self) -> None:
        """Remove the files of an unmanaged item, now managed elsewhere.

        Its exports are removed as well.
        """
        self.exports.unlink(missing_ok=True)
        self.samba.unlink(missing_ok=True)
        for path in (
            self.path / _UNMANAGED,
            self.path / REPLICA,
            self.path / KNOWN,
            *self.path.glob(f'{FOLLOWER}*'),
        ):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # there may be data in it
            self.path.rmdir()


class LocalStore:
    """All shares and snapshots below one root.

    What a call changes is changed only if no later call has come.
    """

    def __init__(self, root: pathlib.Path):
        self.root = root
        self.disk = LocalDisk(root)
        self.fencing = FencingTokens(root / _FENCING)

    def has_directories(self) -> bool:
        """Whether `create_directories` was called, in any release."""
        return (self.root / SHARES).is_dir() and (self.root / 'work').is_dir()

    def is_on(self, device: int) -> bool:
        """Whether the shares are on a device; false before the first start."""
        try:
            return (self.root / SHARES).stat().st_dev == device
        except OSError:
            return False

    def create_directories(self) -> None:
        """Create all directories; raises OSError if one is not writable."""
        for part in _PARTS:
            (self.root / part).mkdir(parents=True, exist_ok=True)
            probe = self.root / part / f'.probe-{os.getpid()}'
            probe.touch()
            probe.unlink(missing_ok=True)
        # Users must not reach trees that are being removed there.
        for part in ('work', _FENCING):
            (self.root / part).chmod(0o700)
        # New shares are open to all users of their clients, not to those of
        # this machine, who cannot learn their names.
        for part in (SHARES, SNAPSHOTS):
            (self.root / part).chmod(0o711)

    def share(self, name: str) -> LocalItem:
        return LocalItem(self.root, SHARES, name)

    def snapshot(self, name: str) -> LocalItem:
        return LocalItem(self.root, SNAPSHOTS, name)

    def list_items(self, kind: str) -> Iterator[LocalItem]:
        for name in sorted(os.listdir(self.root / kind)):
            if not name.startswith('.'):
                yield LocalItem(self.root, kind, name)

    # Work

    @contextlib.contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Lock a share or snapshot by its name, to change it.

        Raises StaleFencingToken if a later call came before.
        """
        with self._locked(records.checked_file_name(name)):
            self.fencing.check_call()
            yield

    @contextlib.contextmanager
    def locked_work_directory(self, name: str) -> Iterator[pathlib.Path]:
        """Do the same and provide an empty directory to work in."""
        top = self._work_directory(name)
        with file_locks.locked(top, file_locks.opened_directory):
            self.fencing.check_call()
            with _empty_subdirectory(top) as work:
                yield work

    @contextlib.contextmanager
    def try_locked_work_directory(self, name: str) -> Iterator[pathlib.Path | None]:
        """Do the same without waiting; None if the name is locked."""
        top = self._work_directory(name)
        descriptor = file_locks.open_locked(
            top, file_locks.opened_directory, wait=False
        )
        if descriptor is None:
            yield None
            return
        try:
            self.fencing.check_call()
            with _empty_subdirectory(top) as work:
                yield work
        finally:
            os.close(descriptor)

    def has_work_directory(self, name: str) -> bool:
        """Return whether work on a name is in progress or was killed."""
        return self._work_directory(name).exists()

    def _work_directory(self, name: str) -> pathlib.Path:
        return self.root / 'work' / records.checked_file_name(name)

    @contextlib.contextmanager
    def managing_locked(self) -> Iterator[None]:
        """Serialise taking over existing directories."""
        with self._locked(_LOCK):
            yield

    @contextlib.contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        top = self.root / 'work' / name
        with file_locks.locked(top, file_locks.opened_directory):
            try:
                yield
            finally:
                with contextlib.suppress(OSError):  # of a killed process
                    top.rmdir()

    def remove(self, item: LocalItem) -> bool:
        """Remove a managed item; return whether there was one.

        What a killed process has left of it is removed in any case.
        """
        if self.disk.is_deleted():
            return True
        with self.locked_work_directory(item.name) as work:
            record = item.find()
            if record is not None:
                if 'directory' in record:
                    with contextlib.suppress(FileNotFoundError):
                        trees.move(
                            self._removable_directory(record['directory']),
                            work / 'data',
                        )
                item.path.rename(work / 'removed')
        self.remove_exports(item)
        return record is not None

    def _removable_directory(self, directory: str) -> pathlib.Path:
        """Return the directory, or the whole item directory around it."""
        part, *_, last = pathlib.PurePath(directory).parts
        if part in _RECORDS and last == 'data':
            return (self.root / directory).parent
        return self.root / directory

    # Export files

    def remove_exports(self, item: LocalItem) -> None:
        """Remove the export files, so that servers deny all clients."""
        if self.disk.is_deleted():
            return
        self.fencing.check_call()
        item.exports.unlink(missing_ok=True)
        if item.samba.exists():
            item.samba.unlink(missing_ok=True)
            self._write_samba_index()

    def write_export(self, item: LocalItem, file: pathlib.Path, text: str) -> None:
        """Write the export file of a share or snapshot."""
        self.fencing.check_call()
        records.write_text(file, text, durable=True, temp_dir=item.path)
        if file == item.samba:
            self._write_samba_index()

    def _write_samba_index(self) -> None:
        """List every file by name: Samba cannot include a pattern."""
        folder = self.root / 'exports'
        with self._locked(_SAMBA_LOCK):
            files = sorted(folder.glob('*.smb'))
            if files:
                records.write_text(
                    folder / 'smb.conf',
                    samba.format_index(files),
                    durable=True,
                    temp_dir=self.root / 'work',
                )
            else:
                (folder / 'smb.conf').unlink(missing_ok=True)

    # Managing existing directories

    def manageable_directory(self, kind: str, path: str) -> str:
        """Return the path, relative to the root, of a manageable directory.

        Raises ValueError with the reason if it cannot be managed.
        """
        target = pathlib.PurePath(path)
        if not target.is_relative_to(self.root) or '..' in target.parts:
            raise ValueError(f'the path is not below {self.root}')
        parts = target.relative_to(self.root).parts
        if any(ord(letter) < ord(' ') for letter in path):
            raise ValueError('the path has control characters')
        if parts[:1] == (kind,):
            if len(parts) != 3 or parts[2] != 'data':
                raise ValueError(f'only the data in {kind} can be managed')
        elif not parts or parts[0] in (*_PARTS, MARKER, IDENTITY):
            raise ValueError('the directory is used by the driver')
        try:
            is_same_file_system = trees.is_one_file_system(self.root, parts)
        except OSError as error:
            raise ValueError(
                f'the path does not exist or has links: {error.strerror}'
            ) from error
        if not is_same_file_system:
            raise ValueError(f'it is not on the file system of {self.root}')
        directory = '/'.join(parts)
        self._check_overlap(directory)
        return directory

    def _check_overlap(self, directory: str) -> None:
        path_parts = pathlib.PurePath(directory)
        for kind in _RECORDS:
            for item in self.list_items(kind):
                record = item.find()
                if record is None:
                    continue
                other = pathlib.PurePath(item.relative_data_path(record))
                if path_parts.is_relative_to(other) or other.is_relative_to(path_parts):
                    raise ValueError(f'{other} is already managed')

    def list_unmanaged(self, kind: str, directory: str) -> list[LocalItem]:
        """Return the unmanaged items that used a directory."""
        found = []
        for item in self.list_items(kind):
            record = item.find_unmanaged()
            if record is not None and item.relative_data_path(record) == directory:
                found.append(item)
        return found


@contextlib.contextmanager
def _empty_subdirectory(top: pathlib.Path) -> Iterator[pathlib.Path]:
    """Create a directory inside a locked one; finally remove both."""
    for left_behind in top.iterdir():
        tree_removal.remove_tree(left_behind)
    try:
        work = top / 'new'
        work.mkdir()
        yield work
    finally:
        tree_removal.remove_tree(top)
