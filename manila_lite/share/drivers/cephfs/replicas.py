"""Replicas on CephFS, what is recorded of them, and where others are.

    replica:NAME    in the records: the role of a share, and what it is a copy of

A share without that record is active, and has never had replicas.
"""

from collections.abc import Callable
import contextlib
import dataclasses
import functools
import hashlib
import math
import time
from typing import Any, Self

from oslo_log import log

from manila_lite import exception
from manila_lite.host import Host
from manila_lite.share.drivers import base
from manila_lite.share.drivers.cephfs.backend import NFS, CephfsBackend, State
from manila_lite.share.drivers.cephfs.exports import CephfsExports
from manila_lite.share.drivers.cephfs.records import (
    IDENTITY,
    REPLICA,
    SHARE,
    SNAPSHOT,
    Record,
    Values,
)
from manila_lite.share.drivers.cephfs.snapshots import SYNC, list_snapshots
from manila_lite.share.drivers.cephfs.users import (
    allow_writing,
    deny_writing,
    list_writers,
    revoke_clients,
)
from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.drivers.files import replicas
from manila_lite.share.drivers.files.replicas import (
    READABLE,
    Peers,
    ReplicaUnreachable,
    Role,
    Roles,
    ignoring_failures,
    is_superseded,
    reaching,
    warn_of_successor,
)

LOG = log.getLogger(__name__)

LOST_SECONDS = 10.0
"""A back end that did not answer within its limit is not asked for this time."""


@dataclasses.dataclass(frozen=True)
class ReplicaState(replicas.ReplicaState):
    """The content of the record.

    A passive replica consists of what `bases` have, snapshots of `source`; without
    any, it is not known what it has. `copy` is the last snapshot that it was a
    complete copy of, as of `synced_at`, and has one of this name itself.

    The successor of a retiring replica is to be active with the generation `until`.
    Promotions up to the generation `barred` were given up.
    `suspended` has who could write before. `others` has the hosts of known replicas.
    """

    copy: str | None = None
    bases: list[str] = dataclasses.field(default_factory=list)
    until: int = 0
    barred: int = 0
    suspended: list[Any] = dataclasses.field(default_factory=list)
    share_proto: str | None = None
    project_id: str | None = None
    others: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def has_content(self) -> bool:
        return self.role != Role.PASSIVE or self.copy is not None

    @property
    def term(self) -> tuple[object, ...]:
        """What changes with the role, or with who is to take over."""
        return self.role, self.generation, self.source, self.until

    @property
    def is_whole(self) -> bool:
        """Whether the content is that of the last complete copy."""
        return self.copy is not None and self.bases == [self.copy]


class Replica(replicas.Replica):
    """One replica in a file system."""

    def __init__(
        self,
        backend: CephfsBackend,
        exports: CephfsExports,
        name: str,
        host: str | None,
    ):
        self.backend, self.name, self.host, self._exports = backend, name, host, exports

    @property
    def prefix(self) -> str:
        """The prefix of the snapshots that are made to copy other replicas here.

        Names are short: Ceph 16 truncates those of 80 bytes, with what it adds to
        them where clients look.
        """
        digest = hashlib.blake2s(self.name.encode(), digest_size=6).hexdigest()
        return f'{SYNC}{digest}-'

    def find(self) -> Record | None:
        """Return the record of the share, or None if it does not exist."""
        record = self.backend.records.get(SHARE + self.name)
        return None if record is None or record['state'] == State.UNMANAGED else record

    def record(self) -> Record:
        """Return the record of a share that is complete.

        Raises ReplicaUnreachable.
        """
        record = self.find()
        if record is None or record['state'] != State.AVAILABLE:
            state = record['state'] if record else 'missing'
            raise ReplicaUnreachable(msg=f'{self.name} is {state}')
        return record

    @property
    def _subvolume(self) -> str:
        """The subvolume of a share, whatever its content."""
        record = self.find()
        if record is None:
            raise ReplicaUnreachable(msg=f'{self.name} is missing')
        return record['subvolume']

    def find_snapshot(self, name: str) -> Record | None:
        """Return the record of a snapshot that is complete, or None."""
        record = self.backend.records.get(SNAPSHOT + name)
        return record if record and record['state'] == State.AVAILABLE else None

    def has_snapshot(self, name: str) -> bool:
        return self.find_snapshot(name) is not None

    def state(self) -> ReplicaState:
        return _state_of(self.backend.records.get(REPLICA + self.name))

    def change_state(
        self, decide: Callable[[ReplicaState], ReplicaState]
    ) -> ReplicaState:
        """Change what is recorded as `decide` says, and return it."""
        return _state_of(
            self.backend.records.update(
                REPLICA + self.name,
                lambda record: dataclasses.asdict(decide(_state_of(record))),
            )
        )

    def update_state(self, **values: Any) -> ReplicaState:
        return self.change_state(lambda state: dataclasses.replace(state, **values))

    def update_passive(self, **values: Any) -> None:
        """Do the same before the content is replaced.

        Raises ReplicaUnreachable if it is not passive: clients write to it.
        """

        def decide(state: ReplicaState) -> ReplicaState:
            if state.role != Role.PASSIVE:
                raise ReplicaUnreachable(
                    msg=f'{self.name} is {state.role} and is not replaced'
                )
            return dataclasses.replace(state, **values)

        self.change_state(decide)

    def register(self, other: Self, **values: Any) -> None:
        """Do the same, and record where another replica is."""
        hosts = {other.name: other.host} if other.host else {}
        self.change_state(
            lambda state: dataclasses.replace(
                state, others=state.others | hosts, **values
            )
        )

    def snapshots(self, prefix: str = SYNC) -> set[str]:
        """Return the names of those that synchronisation has made."""
        found = list_snapshots(self.backend, self._subvolume)
        return {name for name in found if name.startswith(prefix)}

    def discard(self, names: set[str]) -> None:
        """Remove such snapshots."""
        subvolume = self._subvolume
        for name in sorted(names):
            self.backend.order(
                'subvolume snapshot rm', sub_name=subvolume, snap_name=name, force=True
            )

    # Changing roles

    def retire(self, successor: Self, generation: int) -> None:
        """Deny writing until the successor is active with this generation."""
        subvolume = self.record()['subvolume']
        is_nfs = self.state().share_proto == NFS
        writers = (
            self._exports.clients_of(subvolume)
            if is_nfs
            else list_writers(self.backend, subvolume)
        )

        def decide(state: ReplicaState) -> ReplicaState:
            if state.role == Role.PASSIVE:
                raise ReplicaUnreachable(msg=f'{self.name} is not active')
            return dataclasses.replace(
                state,
                role=Role.RETIRING,
                source=successor.name,
                source_host=successor.host,
                until=generation,
                suspended=writers or state.suspended,
            )

        # With the clients, before they are denied: another call gives it back.
        state = self.change_state(decide)
        if is_nfs:
            self._exports.withdraw(subvolume)
        else:
            deny_writing(self.backend, subvolume, state.project_id)

    def resume(self, found: ReplicaState, generation: int | None = None) -> None:
        """Be active again, with the clients that could write before.

        Raises ReplicaUnreachable if its role is not the one found.
        """

        def decide(state: ReplicaState) -> ReplicaState:
            if state.term != found.term:
                raise ReplicaUnreachable(msg=f'{self.name} has changed its role')
            return dataclasses.replace(
                state,
                role=Role.ACTIVE,
                generation=state.generation if generation is None else generation,
                source=None,
                source_host=None,
            )

        self.change_state(decide)
        self.restore_clients()

    def restore_clients(self) -> None:
        """Let those write who could before an active replica was to retire."""
        state = self.state()
        record = self.find() if state.suspended else None
        if record is None or state.role != Role.ACTIVE:
            return
        if state.share_proto == NFS:
            self._exports.restore(self.name, record, state.suspended)
        else:
            allow_writing(
                self.backend, record['subvolume'], state.suspended, state.project_id
            )

        def decide(now: ReplicaState) -> ReplicaState:
            is_same = now.term == state.term
            return dataclasses.replace(now, suspended=[]) if is_same else now

        if self.change_state(decide).term != state.term:  # it is to retire again
            self._deny_clients(state, READABLE)

    def become_passive(self, leader: Self, replication_type: str | None) -> None:
        """Do so, and end a revert that is incomplete.

        Raises ReplicaUnreachable if the other one is not newer.
        """
        found = self.state()
        if found.role == Role.PASSIVE and found.source == leader.name:
            return
        generation = leader.state().generation
        key, share_key = REPLICA + self.name, SHARE + self.name

        def require_older(state: ReplicaState) -> None:
            if state.role == Role.ACTIVE and state.generation > generation:
                raise ReplicaUnreachable(msg=f'{self.name} is active again')

        def decide(values: Values) -> Values:
            state, record = _state_of(values[key]), values[share_key]
            require_older(state)
            new = ReplicaState(
                role=Role.PASSIVE,
                generation=state.generation,
                barred=state.barred,
                source=leader.name,
                source_host=leader.host,
                share_proto=state.share_proto,
                project_id=state.project_id,
                others=state.others,
            )
            changes = {key: dataclasses.asdict(new)}
            if record is not None and record['state'] == State.REVERTING:
                changes[share_key] = record | {'state': State.AVAILABLE}
            return changes

        require_older(found)
        # Before the record: no later call denies the clients of a passive replica.
        self._deny_clients(found, replication_type)
        self.backend.records.change(key, share_key, decide=decide)

    def _deny_clients(self, state: ReplicaState, replication_type: str | None) -> None:
        """Let clients not write, or without READABLE not even read."""
        subvolume = self._subvolume
        if state.share_proto == NFS:
            self._exports.withdraw(subvolume)
        elif replication_type == READABLE:
            deny_writing(self.backend, subvolume, state.project_id)
        else:
            revoke_clients(self.backend, subvolume)


def _state_of(record: Record | None) -> ReplicaState:
    return ReplicaState(**record) if record else ReplicaState()


def resume_unless_replaced(retiring: Replica, successor: Replica) -> bool:
    """Let a replica be active again if its successor is not, and will not be.

    Raises ReplicaUnreachable if the successor cannot be asked.
    """
    state = retiring.state()
    if state.role != Role.RETIRING or state.source != successor.name:
        return False

    def bar(found: ReplicaState) -> ReplicaState:
        if found.role == Role.ACTIVE and found.generation > state.generation:
            return found
        return dataclasses.replace(found, barred=max(found.barred, state.until))

    with reaching(successor.name):
        is_barred = successor.change_state(bar).barred >= state.until
    if is_barred:
        retiring.resume(state)
    return is_barred


class CephfsPeers(Peers[Replica]):
    """This back end and the others of its replication domain.

    Their sections are in the same configuration.
    """

    def __init__(self, backend: CephfsBackend, exports: CephfsExports):
        self._backend = backend
        self._exports = exports
        self._others: dict[str, tuple[CephfsBackend, CephfsExports]] = {}
        self._lost: dict[str, float] = {}  # since when, by section

    def at(self, host: str | None) -> tuple[CephfsBackend, CephfsExports] | None:
        """Return the back end of a host, or None if it cannot be reached."""
        section = Host.parse(host or '').backend
        own = self._backend.configuration
        if section in ('', own.config_group):
            return self._backend, self._exports
        found = own.for_backend(section)
        if (
            found is None
            or found.share_driver != own.share_driver
            or not own.replication_domain
            or found.replication_domain != own.replication_domain
        ):
            return None
        if time.monotonic() - self._lost.get(section, -math.inf) < LOST_SECONDS:
            return None
        try:
            return self._reach(section, found)
        except exception.StaleFencingToken:
            raise
        except exception.DriverError as error:
            LOG.warning(
                'Back end %(name)s is out of reach: %(error)s',
                {'name': section, 'error': error},
            )
            if isinstance(error, exception.FileServerUnresponsive):
                self._lost[section] = time.monotonic()
            return None

    def _reach(
        self, section: str, found: Configuration
    ) -> tuple[CephfsBackend, CephfsExports]:
        if section not in self._others:
            backend = CephfsBackend(found, self._backend.clock, self._backend.sleep)
            backend.find_filesystem()
            identity = backend.records.find_identity()
            if identity is None:
                raise ReplicaUnreachable(msg='it was never started')
            backend.records.keep_to(identity)
            self._others[section] = backend, CephfsExports(backend)
        backend, exports = self._others[section]
        backend.records.get(IDENTITY)  # whether it answers
        return backend, exports

    def own_replica(self, share: base.ShareForDriver) -> Replica:
        return Replica(self._backend, self._exports, share['name'], share['host'])

    def _address(self, host: str, name: str) -> Replica | None:
        found = self.at(host)
        return None if found is None else Replica(*found, name, host)


class CephfsRoles(Roles[Replica]):
    def __init__(self, backend: CephfsBackend, peers: CephfsPeers):
        super().__init__(peers)
        self._backend = backend
        self._peers = peers

    def role_of(self, share: base.ShareForDriver) -> str:
        role = super().role_of(share)
        if role == Role.ACTIVE:
            self._peers.own_replica(share).restore_clients()
        return role

    def _resumes(self, own: Replica, successor: Replica) -> bool:
        return resume_unless_replaced(own, successor)

    def is_read_only(self, share: base.ShareForDriver) -> bool:
        """Return whether clients may only read, whatever the rules say."""
        return share['replication_type'] is not None and (
            self.role_of(share) != Role.ACTIVE
        )

    def demote_superseded(self, replication_type: str | None) -> None:
        """Stop clients from writing to replicas that others have replaced.

        That happened while this back end was out of reach. The number of calls does
        not depend on that of the shares that still have their roles.
        """
        states_at = functools.cache(self._states_at)
        for name, record in self._backend.records.get_all(REPLICA).items():
            here = _state_of(record)
            for other, host in here.others.items():
                there = states_at(host).get(other)
                if there is not None and is_superseded(here, there):
                    self._demote(name, other, host, replication_type)
                    break

    def _demote(
        self, name: str, other: str, host: str, replication_type: str | None
    ) -> None:
        successor = self._peers.replica_at(host, other)
        if successor is not None:
            own = Replica(*self._own, name, None)
            warn_of_successor(own, successor)
            with ignoring_failures(name, 'become passive'):
                own.become_passive(successor, replication_type)

    @property
    def _own(self) -> tuple[CephfsBackend, CephfsExports]:
        found = self._peers.at(None)
        assert found is not None
        return found

    def _states_at(self, host: str) -> dict[str, ReplicaState]:
        """Return the replicas of another back end; none if it is out of reach."""
        found = self._peers.at(host)
        if found is None:
            return {}
        with contextlib.suppress(ReplicaUnreachable), reaching(host):
            records = found[0].records.get_all(REPLICA)
            return {name: _state_of(record) for name, record in records.items()}
        return {}
