"""The files of a replica, on this back end or on another one.

Beside the data of a share that has or had replicas:

    root/shares/<share>/replica.json   its role, its source, and since
                                       when it has been a copy of it
    root/shares/<share>/known.json     inodes copied from the source
    root/shares/<share>/incoming/      changes being applied to the data
    root/shares/<share>/follower-<other>.json    a replica that copies
                                       it, to be asked after an outage

A share without `replica.json` is active.
"""

from collections.abc import Iterator
import contextlib
import dataclasses
import errno
import os
import pathlib
import threading
import time
import typing
from typing import Self
import uuid

from manila_lite.share.drivers import records, trees
from manila_lite.share.drivers.files import replicas
from manila_lite.share.drivers.files.replicas import (
    READABLE,
    ReplicaUnreachable,
    Role,
    ignoring_read_only,
    require_leading,
)
from manila_lite.share.drivers.local import tree_changes, tree_sync
from manila_lite.share.drivers.local.store import (
    FOLLOWER,
    KNOWN,
    REPLICA,
    SNAPSHOTS,
    LocalItem,
    LocalStore,
)

_INCOMING = 'incoming'

_LOST_DISK_ERRNOS = frozenset(
    {
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EIO,
        errno.ESTALE,
        errno.ENOTCONN,
        errno.ENXIO,
        errno.ENODEV,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.ETIMEDOUT,
    }
)
"""Errors of a missing directory or a broken disk."""


@dataclasses.dataclass(frozen=True)
class ReplicaRecord(replicas.ReplicaState):
    """The content of `replica.json`.

    A replica that is not whole has never been a complete copy.
    """

    is_whole: bool = True

    @property
    def has_content(self) -> bool:
        return self.is_whole


_FLUSH_VALID_NS = 10**9
"""A flush is reused for so long, however many replicas need one."""

_flush_lock = threading.Lock()
_flushed_ns: dict[int, int] = {}  # by device


def _flush_disk(path: pathlib.Path) -> int:
    """Flush the disk of a directory; return the time at which that began.

    Until then a page that is mapped and written to again shows no change.
    """
    with _flush_lock, trees.opened_directory(path) as directory:
        device = os.fstat(directory).st_dev
        now = time.time_ns()
        if not 0 <= now - _flushed_ns.get(device, 0) < _FLUSH_VALID_NS:
            trees.sync_file_system(directory)
            _flushed_ns[device] = now
        return _flushed_ns[device]


@contextlib.contextmanager
def raising_unreachable() -> Iterator[None]:
    """Turn errors of a lost disk into ReplicaUnreachable."""
    try:
        yield
    except OSError as error:
        if error.errno in _LOST_DISK_ERRNOS:
            raise ReplicaUnreachable(msg=str(error)) from error
        raise


class LocalReplica(replicas.Replica):
    """One replica, which has a directory to work in while it is locked."""

    def __init__(self, store: LocalStore, name: str, host: str | None = None):
        self.store, self.name, self.host = store, name, host
        self.item: LocalItem = store.share(name)
        self._work: pathlib.Path | None = None

    def find(self) -> records.Record | None:
        """Return the record of the share, or None if it does not exist."""
        with raising_unreachable():
            return self.item.find()

    def record(self) -> records.Record:
        """Return the record of the share; raises ReplicaUnreachable."""
        record = self.find()
        if record is None:
            raise ReplicaUnreachable(msg=f'{self.item.path} does not exist')
        return record

    def complete_record(self) -> records.Record:
        """Do the same, for a replica whose data is complete."""
        record = self.record()
        if 'reverting_to' in record or not self.state().is_whole:
            raise ReplicaUnreachable(msg=f'{self.item.path} is incomplete')
        return record

    def data_path(self) -> pathlib.Path:
        return self.item.data_path(self.record())

    def state(self) -> ReplicaRecord:
        with raising_unreachable():
            record = records.find(self.item.path / REPLICA)
        return ReplicaRecord(**record) if record is not None else ReplicaRecord()

    def write_state(self, state: ReplicaRecord) -> None:
        records.write(self.item.path / REPLICA, dataclasses.asdict(state), durable=True)

    def has_snapshot(self, name: str) -> bool:
        with raising_unreachable():
            return self.store.snapshot(name).find() is not None

    @contextlib.contextmanager
    def copying(self) -> Iterator[bool]:
        with self.store.try_locked_work_directory(self.name) as self._work:
            yield self._work is not None

    @property
    def work(self) -> pathlib.Path:
        assert self._work is not None
        return self._work

    def has_pending_changes(self) -> bool:
        """Return whether changes to its data are incomplete."""
        return (self.item.path / _INCOMING).exists()

    def publish(self, record: records.Record) -> None:
        """Create an empty passive replica."""
        (self.work / 'data').mkdir()
        records.write(
            self.work / REPLICA,
            dataclasses.asdict(ReplicaRecord(role=Role.PASSIVE, is_whole=False)),
            durable=True,
        )
        self.item.publish(self.work, record)

    # Copying another replica

    def apply_pending_changes(self) -> None:
        """Apply the changes that a killed process left."""
        incoming = self.item.path / _INCOMING
        plan = tree_changes.find_plan(incoming)
        if plan is None:
            return
        tree_changes.apply(self.data_path(), incoming, plan['changes'])
        with contextlib.suppress(FileNotFoundError):  # already done
            (incoming / KNOWN).replace(self.item.path / KNOWN)
        self._flush()
        self.write_state(ReplicaRecord(**plan['state']))
        incoming.rename(self.work / f'done-{uuid.uuid4().hex}')
        records.sync_directory(self.item.path)

    def _flush(self) -> None:
        with trees.opened_directory(self.item.path) as directory:
            trees.sync_file_system(directory)

    def follow(self, other: Self, now: float) -> int:
        """Copy the other replica; return the number of changes.

        Raises ReplicaUnreachable without changing anything if the other
        replica is incomplete or becomes a follower meanwhile.
        """
        self.apply_pending_changes()
        before, leader = self.state(), other.state()
        require_leading(other.name, leader, before)
        record = other.complete_record()
        with raising_unreachable(), ignoring_read_only():
            self.register_with(other)
        with raising_unreachable():
            flushed_ns = _flush_disk(other.item.data_path(record))
        known = self._read_known_inodes() if before.source == other.name else {}
        with raising_unreachable():
            staged = tree_sync.stage(
                other.item.data_path(record),
                self.data_path(),
                self.work / _INCOMING,
                known,
                flushed_ns,
            )
        record = other.complete_record()
        if other.state() != leader:
            raise ReplicaUnreachable(msg=f'{other.item.path} has changed its role')
        after = ReplicaRecord(
            role=Role.PASSIVE,
            generation=leader.generation,
            source=other.name,
            source_host=other.host,
            synced_at=now,
        )
        self._install(staged, after, known)
        mine = self.record()
        if mine['size'] != record['size']:
            self.item.write_record(mine | {'size': record['size']})
        return len(staged.changes)

    def _install(
        self,
        staged: tree_sync.Staged,
        after: ReplicaRecord,
        known: tree_sync.KnownInodes,
    ) -> None:
        incoming = self.work / _INCOMING
        if not staged.changes:
            if staged.known != known:
                records.write(self.item.path / KNOWN, staged.known)
            self.write_state(after)
            return
        records.write(incoming / KNOWN, staged.known)
        self._flush()
        tree_changes.write_plan(
            incoming, {'changes': staged.changes, 'state': dataclasses.asdict(after)}
        )
        incoming.rename(self.item.path / _INCOMING)
        records.sync_directory(self.item.path)
        self.apply_pending_changes()

    def _read_known_inodes(self) -> tree_sync.KnownInodes:
        return typing.cast(
            tree_sync.KnownInodes, records.find(self.item.path / KNOWN) or {}
        )

    # Followers

    def register_with(self, other: Self) -> None:
        """Record at another replica that this one follows it."""
        file = other.item.path / f'{FOLLOWER}{self.name}.json'
        if not file.exists():
            records.write(file, {'name': self.name, 'host': self.host}, durable=True)

    def unregister_from(self, other: Self) -> None:
        """Remove that record; a missing one is success."""
        file = other.item.path / f'{FOLLOWER}{self.name}.json'
        file.unlink(missing_ok=True)

    def followers(self) -> Iterator[records.Record]:
        """Yield name and host of the replicas that have followed it."""
        for file in sorted(self.item.path.glob(f'{FOLLOWER}*.json')):
            record = records.find(file)
            if record is not None:
                yield record

    # Changing roles

    def become_active(self, generation: int) -> None:
        """Become the active replica with a generation of its own."""
        (self.item.path / KNOWN).unlink(missing_ok=True)
        self.write_state(ReplicaRecord(generation=generation))

    def become_passive(self, leader: Self, replication_type: str | None) -> None:
        self.write_state(
            ReplicaRecord(
                role=Role.PASSIVE,
                generation=self.state().generation,
                source=leader.name,
                source_host=leader.host,
            )
        )
        (self.item.path / KNOWN).unlink(missing_ok=True)
        self.store.remove_exports(self.item)
        if replication_type != READABLE:
            directory = self.item.relative_data_path(self.record())
            for snapshot in self.store.list_items(SNAPSHOTS):
                record = snapshot.find()
                if record is not None and record.get('of') == directory:
                    self.store.remove_exports(snapshot)

    @contextlib.contextmanager
    def retiring(self, successor: Self) -> Iterator[None]:
        """Deny all access; restore it if the body fails."""
        before = self.state()
        texts = {
            file: file.read_text(errors='surrogateescape')
            for file in (self.item.exports, self.item.samba)
            if file.exists()
        }
        with ignoring_read_only():
            self.write_state(
                dataclasses.replace(
                    before,
                    role=Role.RETIRING,
                    source=successor.name,
                    source_host=successor.host,
                )
            )
            self.store.remove_exports(self.item)
        try:
            yield
        except BaseException:
            with contextlib.suppress(OSError):
                self.write_state(before)
                for file, text in texts.items():
                    self.store.write_export(self.item, file, text)
            raise

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        with self.store.locked_work_directory(self.name) as self._work:
            yield
