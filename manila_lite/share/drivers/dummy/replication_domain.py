"""What the dummy back ends of one replication domain know together.

It lies in a directory all of them reach, each with a state of its own. It
says of each share which of its replicas is active, like a witness at a
third site: who comes back from a failure is active only if it still says
so. A back end whose state holds a file `away` is out of reach.
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
from manila_lite.share.drivers.dummy.state import Client
from manila_lite.share.drivers.dummy.state import Clients
from manila_lite.share.drivers.dummy.state import DummyState

WRITABLE, READABLE, DR = STYLES = ('writable', 'readable', 'dr')
ACTIVE, PASSIVE = 'active', 'passive'

_READ_ONLY = 'ro'


class ReplicaSet(typing.NamedTuple):
    """What replicas a share has, and which of them is active.

    While one is promoted none is; `previous` was it before, and has what
    was written last. `epoch` counts what replicas must have seen to be up
    to date. Of the writable style all are active, none is named here.
    """

    active: str | None
    previous: str | None = None
    epoch: int = 0
    members: Sequence[str] = ()


class DummyReplica(typing.NamedTuple):
    """One that is really there.

    `version` counts the changes of its content. It is `synced` when it
    has been brought up to date since the last promotion.
    """

    role: str
    version: int
    synced: bool


class ReplicationDomain:
    """The directory of a domain."""

    def __init__(self, path: pathlib.Path):
        self.path = path
        self.lock = DomainLock(path / 'lock')
        self._homes = records.RecordFolder(path / 'homes')
        self._relations = records.RecordFolder(path / 'relations')

    def settle(self, state: DummyState, style: str) -> None:
        """Let others find what this back end has."""
        name = hashlib.sha256(str(state.path).encode()).hexdigest()
        home = {'path': str(state.path)}
        if self._homes.find(name) != home:
            self._homes.put(name, home)
        link = {'path': str(self.path), 'style': style}
        if state.domain() != link:
            records.write(state.path / 'domain.json', link)

    def find_state_of(self, replica_id: str) -> DummyState | None:
        """The back end that has a replica; None when none can be reached."""
        for _, home in self._homes.records():
            state = DummyState(home['path'])
            if (
                not state.is_unreachable()
                and state.shares.find(replica_id) is not None
            ):
                return state
        return None

    def find(self, share_id: str) -> ReplicaSet | None:
        record = self._relations.find(share_id)
        return ReplicaSet(**record) if record is not None else None

    def put(self, share_id: str, relation: ReplicaSet) -> None:
        if self.find(share_id) != relation:
            self._relations.put(share_id, relation._asdict())

    def leave(self, share_id: str, replica_id: str) -> None:
        """A replica is no more; with the last one the relation ends."""
        relation = self.find(share_id)
        if relation is None or replica_id not in relation.members:
            return
        members = [one for one in relation.members if one != replica_id]
        if not members:
            self._relations.drop(share_id)
            return
        self.put(
            share_id,
            relation._replace(
                members=members,
                active=_but(relation.active, replica_id),
                previous=_but(relation.previous, replica_id),
            ),
        )


class DomainLock:
    """Held by one thread of one process on this machine; reentrant.

    It goes with the process that holds it.
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
    """The replicas a back end has, by their ids."""
    link = state.domain()
    if link is None:
        return {}
    domain = ReplicationDomain(pathlib.Path(link['path']))
    return {
        id: describe_replica(
            domain.find(record['replica_of']), id, record, link['style']
        )
        for id, record in state.shares.records()
        if 'replica_of' in record
    }


def describe_replica(
    relation: ReplicaSet | None, id: str, record: records.Record, style: str
) -> DummyReplica:
    """What a record says, with what its domain does."""
    synced = relation is None or is_synced(record, relation)
    if style == WRITABLE:
        active = synced
    else:
        active = relation is None or relation.active == id
    return DummyReplica(
        ACTIVE if active else PASSIVE,
        record.get('version', 0),
        synced or active,
    )


def is_synced(record: records.Record, relation: ReplicaSet) -> bool:
    epoch = record.get('epoch')
    return epoch is not None and epoch >= relation.epoch


def effective_clients(state: DummyState, clients: Clients) -> Clients:
    """Out of the clients that were told those who really get in, and how."""
    there = list_replicas(state)
    if not there:
        return clients
    style = (state.domain() or {})['style']
    found = {}
    for id, told in clients.items():
        replica = there.get(id)
        if replica is None or replica.role == ACTIVE or style == WRITABLE:
            found[id] = told
        elif style == READABLE:
            found[id] = set(_read_only(told))
    return found


def effective_snapshot_clients(state: DummyState, clients: Clients) -> Clients:
    """The same of snapshots, which are out of use like their replica."""
    kept = {
        id
        for id, replica in list_replicas(state).items()
        if replica.role == PASSIVE
    }
    if not kept or (state.domain() or {})['style'] != DR:
        return clients
    return {
        id: told
        for id, told in clients.items()
        if (state.snapshots.find(id) or {}).get('replica') not in kept
    }


def _read_only(clients: set[Client]) -> Iterator[Client]:
    for kind, to, _ in clients:
        yield kind, to, _READ_ONLY


def _but(id: str | None, gone: str) -> str | None:
    return None if id == gone else id
