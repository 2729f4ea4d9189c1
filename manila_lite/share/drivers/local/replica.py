"""What of a replica lies on disk, on this back end or on another one.

Beside the data of a share that has replicas, or has had them:

    root/shares/<share>/replica.json   its role, what it is a copy of, and
                                       since when it has been that
    root/shares/<share>/known.json     what was copied, as the other had it
    root/shares/<share>/incoming/      changes that are made to the data
    root/shares/<share>/follower-<other>.json    who has copied it, to be
                                       asked when it comes back from afar

A share without `replica.json` is active. Of several that say they are
active the one with the highest generation is.
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
import uuid

from manila_lite import exception
from manila_lite.share.drivers import records
from manila_lite.share.drivers.local import tree_sync as tree_changes
from manila_lite.share.drivers.local.store import FOLLOWER
from manila_lite.share.drivers.local.store import KNOWN
from manila_lite.share.drivers.local.store import REPLICA
from manila_lite.share.drivers.local.store import SNAPSHOTS
from manila_lite.share.drivers.local.store import LocalItem
from manila_lite.share.drivers.local.store import LocalStore

READABLE, DR = 'readable', 'dr'

_INCOMING = 'incoming'

_LOST = frozenset(
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
"""Errors of a directory that is not there, or of a disk that is broken."""


class ReplicaRole:
    """What a replica says it is.

    A retiring one was active, and is nobody's to write to: it is known
    by the other one what has become of that.
    """

    ACTIVE = 'active'
    RETIRING = 'retiring'
    PASSIVE = 'passive'


@dataclasses.dataclass(frozen=True)
class ReplicaRecord:
    """What `replica.json` says.

    A passive replica is what `source` was at `synced_at`; of a retiring
    one `source` is who is to follow it. One that is not whole has never
    been a full copy.
    """

    role: str = ReplicaRole.ACTIVE
    generation: int = 0
    source: str | None = None
    source_host: str | None = None
    synced_at: float | None = None
    is_whole: bool = True


class ReplicaUnreachable(exception.ShareBackendException):
    """The other replica is not there, or not what it was taken for."""


NO_SPACE_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT})

_FLUSHED_FOR_NS = 10**9
"""Nobody flushes all disks again for so long, however many replicas ask."""

_flushing = threading.Lock()
_flushed_ns = 0


def _flush() -> int:
    """Have all on disk that is written; as it was when that began.

    Until then a page that is mapped and written to again shows no change.
    """
    global _flushed_ns
    with _flushing:
        now = time.time_ns()
        if not 0 <= now - _flushed_ns < _FLUSHED_FOR_NS:
            os.sync()
            _flushed_ns = now
        return _flushed_ns


@contextlib.contextmanager
def raising_unreachable() -> Iterator[None]:
    """Whatever says that a disk is lost is raised as OutOfReach."""
    try:
        yield
    except OSError as error:
        if error.errno in _LOST:
            raise ReplicaUnreachable(msg=str(error)) from error
        raise


class LocalReplica:
    """One replica, by the name that the share instance has."""

    def __init__(self, places: LocalStore, name: str, host: str | None = None):
        self.places = places
        self.name = name
        self.host = host
        self.home: LocalItem = places.share(name)

    def record(self) -> records.Record:
        """The record of the share; raises OutOfReach."""
        with raising_unreachable():
            record = self.home.find()
        if record is None:
            raise ReplicaUnreachable(msg=f'{self.home.path} is not there')
        return record

    def whole_record(self) -> records.Record:
        """The same of one whose data is all there."""
        record = self.record()
        if 'reverting_to' in record or not self.state().is_whole:
            raise ReplicaUnreachable(msg=f'{self.home.path} is not whole')
        return record

    def data(self) -> pathlib.Path:
        return self.home.data(self.record())

    def state(self) -> ReplicaRecord:
        with raising_unreachable():
            record = records.find(self.home.path / REPLICA)
        return (
            ReplicaRecord(**record) if record is not None else ReplicaRecord()
        )

    def note(self, state: ReplicaRecord) -> None:
        records.write(
            self.home.path / REPLICA, dataclasses.asdict(state), durable=True
        )

    def is_settled(self) -> bool:
        """Whether no changes are being made to its data."""
        return not (self.home.path / _INCOMING).exists()

    def publish(self, work: pathlib.Path, record: records.Record) -> None:
        """Have an empty one be there that is to follow another."""
        (work / 'data').mkdir()
        records.write(
            work / REPLICA,
            dataclasses.asdict(
                ReplicaRecord(role=ReplicaRole.PASSIVE, is_whole=False)
            ),
            durable=True,
        )
        self.home.publish(work, record)

    # Being what another is

    def settle(self, work: pathlib.Path) -> None:
        """Make the changes that somebody was killed at."""
        incoming = self.home.path / _INCOMING
        plan = tree_changes.find_plan(incoming)
        if plan is None:
            return
        tree_changes.apply(self.data(), incoming, plan['changes'])
        with contextlib.suppress(FileNotFoundError):  # done already
            (incoming / KNOWN).replace(self.home.path / KNOWN)
        os.sync()
        self.note(ReplicaRecord(**plan['state']))
        incoming.rename(work / f'done-{uuid.uuid4().hex}')
        records.sync_directory(self.home.path)

    def follow(
        self, other: 'LocalReplica', work: pathlib.Path, now: float
    ) -> int:
        """Be what the other replica is; how many changes that took.

        Raises OutOfReach, having changed nothing, when it is not there in
        full, or becomes another's follower meanwhile.
        """
        self.settle(work)
        before, leader = self.state(), other.state()
        record = other.whole_record()
        with raising_unreachable(), ignoring_read_only():
            self.tell(other)
        flushed_ns = _flush()
        known = self._known() if before.source == other.name else {}
        with raising_unreachable():
            staged = tree_changes.stage(
                other.home.data(record),
                self.data(),
                work / _INCOMING,
                known,
                flushed_ns,
            )
        record = other.whole_record()
        if other.state() != leader:
            raise ReplicaUnreachable(
                msg=f'{other.home.path} has changed its role'
            )
        after = ReplicaRecord(
            role=ReplicaRole.PASSIVE,
            generation=leader.generation,
            source=other.name,
            source_host=other.host,
            synced_at=now,
        )
        self._take(staged, after, work, known)
        mine = self.record()
        if mine['size'] != record['size']:
            self.home.note(mine | {'size': record['size']})
        return len(staged.changes)

    def _take(
        self,
        staged: tree_changes.Staged,
        after: ReplicaRecord,
        work: pathlib.Path,
        known: tree_changes.KnownInodes,
    ) -> None:
        incoming = work / _INCOMING
        if not staged.changes:
            if staged.known != known:
                records.write(self.home.path / KNOWN, staged.known)
            self.note(after)
            return
        records.write(incoming / KNOWN, staged.known)
        os.sync()
        tree_changes.write_plan(
            incoming,
            {'changes': staged.changes, 'state': dataclasses.asdict(after)},
        )
        incoming.rename(self.home.path / _INCOMING)
        records.sync_directory(self.home.path)
        self.settle(work)

    def _known(self) -> tree_changes.KnownInodes:
        return typing.cast(
            tree_changes.KnownInodes,
            records.find(self.home.path / KNOWN) or {},
        )

    # Who follows whom

    def tell(self, other: 'LocalReplica') -> None:
        """Let another know that it is followed, wherever it is."""
        note = other.home.path / f'{FOLLOWER}{self.name}.json'
        if not note.exists():
            records.write(
                note, {'name': self.name, 'host': self.host}, durable=True
            )

    def take_leave(self, other: 'LocalReplica') -> None:
        """Follow another no longer; gone is fine."""
        note = other.home.path / f'{FOLLOWER}{self.name}.json'
        note.unlink(missing_ok=True)

    def followers(self) -> Iterator[records.Record]:
        """Name and host of those that have followed it."""
        for note in sorted(self.home.path.glob(f'{FOLLOWER}*.json')):
            record = records.find(note)
            if record is not None:
                yield record

    # Who is active

    def lead(self, generation: int) -> None:
        """Be the active one, of a generation of its own."""
        (self.home.path / KNOWN).unlink(missing_ok=True)
        self.note(ReplicaRecord(generation=generation))

    def step_back(self, leader: 'LocalReplica', style: str | None) -> None:
        """Be one that is to follow another, and is not up to date."""
        self.note(
            ReplicaRecord(
                role=ReplicaRole.PASSIVE,
                generation=self.state().generation,
                source=leader.name,
                source_host=leader.host,
            )
        )
        (self.home.path / KNOWN).unlink(missing_ok=True)
        self.places.shut(self.home)
        if style != READABLE:
            directory = self.home.directory(self.record())
            for snapshot in self.places.homes(SNAPSHOTS):
                record = snapshot.find()
                if record is not None and record.get('of') == directory:
                    self.places.shut(snapshot)

    @contextlib.contextmanager
    def retiring(self, successor: 'LocalReplica') -> Iterator[None]:
        """Let nobody in; whoever was let in is so again after an error."""
        before = self.state()
        texts = {
            file: file.read_text(errors='surrogateescape')
            for file in (self.home.exports, self.home.samba)
            if file.exists()
        }
        with ignoring_read_only():
            self.note(
                dataclasses.replace(
                    before,
                    role=ReplicaRole.RETIRING,
                    source=successor.name,
                    source_host=successor.host,
                )
            )
            self.places.shut(self.home)
        try:
            yield
        except BaseException:
            with contextlib.suppress(OSError):
                self.note(before)
                for file, text in texts.items():
                    self.places.open(self.home, file, text)
            raise

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Nobody else changes its role, if anybody can."""
        with contextlib.ExitStack() as stack:
            with raising_unreachable(), ignoring_read_only():
                stack.enter_context(self.places.work(self.name))
            yield


@contextlib.contextmanager
def ignoring_read_only() -> Iterator[None]:
    """What cannot be written to needs nobody to keep others from it."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
