"""The state that dummy back ends of a replication domain share.

It is in a directory that all of them can reach; each also has a state of its
own. Like a witness at a third site it records which replica of a share is
active: a replica that recovers from a failure is active only if the domain
still says so. A back end whose state has a file `away` is unreachable.
"""

from collections.abc import Iterator, Sequence
import fcntl
import hashlib
import os
import pathlib
import threading
import types
import typing

from manila_lite.share.drivers import records
from manila_lite.share.drivers.dummy.state import Client, Clients, DummyState

WRITABLE, READABLE, DR = STYLES = ('writable', 'readable', 'dr')
ACTIVE, PASSIVE = 'active', 'passive'

_READ_ONLY = 'ro'


class ReplicaSet(typing.NamedTuple):
    """The replicas of a share, and which of them is active.

    During a promotion none is active; `previous` was active before and has
    the latest writes. `epoch` is the change that replicas must have seen to
    be up to date. With the writable type all are active and none is named
    here.
    """

    active: str | None
    previous: str | None = None
    epoch: int = 0
    members: Sequence[str] = ()


class DummyReplica(typing.NamedTuple):
    """A replica that exists on a back end.

    `version` counts the changes of its content. It is `synced` if it has
    been updated since the last promotion.
    """

    role: str
    version: int
    synced: bool


class ReplicationDomain:
    """The directory of a domain."""

    def __init__(self, path: pathlib.Path):
        self.path = path
        self.lock = DomainLock(path / 'lock')
        self._backends = records.RecordFolder(path / 'homes')
        self._replica_sets = records.RecordFolder(path / 'relations')

    def register(self, state: DummyState, replication_type: str) -> None:
        """Register a back end, so that the others find its shares."""
        name = hashlib.sha256(str(state.path).encode()).hexdigest()
        backend = {'path': str(state.path)}
        if self._backends.find(name) != backend:
            self._backends.put(name, backend)
        membership = {'path': str(self.path), 'style': replication_type}
        if state.domain() != membership:
            records.write(state.path / 'domain.json', membership)

    def find_state_of(self, replica_id: str) -> DummyState | None:
        """Return the reachable back end with a replica, or None."""
        for _, backend in self._backends.records():
            state = DummyState(backend['path'])
            if not state.is_unreachable() and state.shares.find(replica_id) is not None:
                return state
        return None

    def find_snapshot(self, snapshot_id: str) -> records.Record | None:
        """Return the record of a snapshot on a reachable back end."""
        for _, backend in self._backends.records():
            state = DummyState(backend['path'])
            if state.is_unreachable():
                continue
            record = state.snapshots.find(snapshot_id)
            if record is not None:
                return record
        return None

    def find(self, share_id: str) -> ReplicaSet | None:
        record = self._replica_sets.find(share_id)
        return ReplicaSet(**record) if record is not None else None

    def put(self, share_id: str, replica_set: ReplicaSet) -> None:
        if self.find(share_id) != replica_set:
            self._replica_sets.put(share_id, replica_set._asdict())

    def remove_replica(self, share_id: str, replica_id: str) -> None:
        """Remove a replica, and the replica set with its last one."""
        replica_set = self.find(share_id)
        if replica_set is None or replica_id not in replica_set.members:
            return
        members = [member for member in replica_set.members if member != replica_id]
        if not members:
            self._replica_sets.drop(share_id)
            return
        self.put(
            share_id,
            replica_set._replace(
                members=members,
                active=_unless(replica_set.active, replica_id),
                previous=_unless(replica_set.previous, replica_id),
            ),
        )


class DomainLock:
    """A reentrant lock for one thread of one process on this machine.

    It is released when the process ends.
    """

    def __init__(self, path: pathlib.Path):
        self._path = path
        self._thread = threading.RLock()
        self._depth = 0
        self._file = -1

    def __enter__(self) -> None:
        self._thread.acquire()
        try:
            if self._depth == 0:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
                fcntl.flock(self._file, fcntl.LOCK_EX)
            self._depth += 1
        except BaseException:
            self._thread.release()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self._depth -= 1
        if self._depth == 0:
            os.close(self._file)
        self._thread.release()


def list_replicas(state: DummyState) -> dict[str, DummyReplica]:
    """Return the replicas of a back end by their ids."""
    membership = state.domain()
    if membership is None:
        return {}
    domain = ReplicationDomain(pathlib.Path(membership['path']))
    return {
        id: describe_replica(
            domain.find(record['replica_of']), id, record, membership['style']
        )
        for id, record in state.shares.records()
        if 'replica_of' in record
    }


def describe_replica(
    replica_set: ReplicaSet | None,
    id: str,
    record: records.Record,
    replication_type: str,
) -> DummyReplica:
    """Combine the record of a replica with that of its domain."""
    synced = replica_set is None or is_synced(record, replica_set)
    if replication_type == WRITABLE:
        active = synced
    else:
        active = replica_set is None or replica_set.active == id
    return DummyReplica(
        ACTIVE if active else PASSIVE, record.get('version', 0), synced or active
    )


def is_synced(record: records.Record, replica_set: ReplicaSet) -> bool:
    epoch = record.get('epoch')
    return epoch is not None and epoch >= replica_set.epoch


def effective_clients(state: DummyState, clients: Clients) -> Clients:
    """Return which of the given clients have access, and at what level."""
    replicas = list_replicas(state)
    if not replicas:
        return clients
    replication_type = (state.domain() or {})['style']
    effective = {}
    for id, granted in clients.items():
        replica = replicas.get(id)
        if replica is None or replica.role == ACTIVE or replication_type == WRITABLE:
            effective[id] = granted
        elif replication_type == READABLE:
            effective[id] = set(_read_only(granted))
    return effective


def effective_snapshot_clients(state: DummyState, clients: Clients) -> Clients:
    """Do the same for snapshots, which are unusable if their replica is."""
    passive = {
        id for id, replica in list_replicas(state).items() if replica.role == PASSIVE
    }
    if not passive or (state.domain() or {})['style'] != DR:
        return clients
    return {
        id: granted
        for id, granted in clients.items()
        if (state.snapshots.find(id) or {}).get('replica') not in passive
    }


def _read_only(clients: set[Client]) -> Iterator[Client]:
    for kind, to, _ in clients:
        yield kind, to, _READ_ONLY


def _unless(id: str | None, gone: str) -> str | None:
    return None if id == gone else id
