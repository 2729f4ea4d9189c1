"""Shares that the CephFS driver replicates to other file systems or clusters.

Each back end copies what its own replicas need, from a snapshot of the active one.
Both sides keep this snapshot: the next difference is based on it, and a replica that
is promoted while a copy is incomplete goes back to it.
"""

from collections.abc import Callable, Iterator
import contextlib
import dataclasses
import time

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.cephfs.access import CephfsAccess
from manila_lite.share.drivers.cephfs.backend import NFS, CephfsBackend, quota_gib
from manila_lite.share.drivers.cephfs.copies import CephfsCopies, Snapshot
from manila_lite.share.drivers.cephfs.records import REPLICA
from manila_lite.share.drivers.cephfs.replicas import (
    CephfsPeers,
    CephfsRoles,
    Replica,
    ReplicaState,
    reaching,
    resume_unless_replaced,
)
from manila_lite.share.drivers.cephfs.shares import CephfsShares
from manila_lite.share.drivers.cephfs.snapshots import CephfsSnapshots, location_of
from manila_lite.share.drivers.contract.access import RuleChanges
from manila_lite.share.drivers.contract.replication import (
    IN_SYNC,
    OUT_OF_SYNC,
    ReplicaList,
    SnapshotList,
)
from manila_lite.share.drivers.files.promotion import Promotion, Takeover
from manila_lite.share.drivers.files.replicated_snapshots import ReplicatedSnapshots
from manila_lite.share.drivers.files.replication import (
    Replication,
    ReplicaUnreachable,
    Role,
    format_time,
)

LOG = log.getLogger(__name__)

_MOST_BASES = 4
"""So many snapshots may be compared to spare the comparison of content."""


class CephfsSyncing:
    """Replicas get the content of snapshots of the active one."""

    def __init__(
        self, backend: CephfsBackend, copies: CephfsCopies, shares: CephfsShares
    ):
        self._backend = backend
        self._copies = copies
        self._shares = shares

    def register(
        self, own: Replica, leader: Replica, share: base.ShareForDriver
    ) -> None:
        """Let both replicas know what is needed to change their roles."""
        values = {
            'share_proto': share['share_proto'].upper(),
            'project_id': share['project_id'],
        }
        for one, other in ((own, leader), (leader, own)):
            hosts = {other.name: other.host} if other.host else {}

            def decide(
                state: ReplicaState, hosts: dict[str, str] = hosts
            ) -> ReplicaState:
                others = state.others | hosts
                return dataclasses.replace(state, others=others, **values)

            with reaching(one.name):
                one.change_state(decide)

    def follow(self, own: Replica, leader: Replica) -> None:
        """Give a replica the content that the leader has.

        Raises ReplicaUnreachable if that has none that may be copied.
        """
        began_at = self._backend.clock()
        with reaching(leader.name):
            before = leader.state()
            if (
                before.role == Role.PASSIVE
                or before.generation < own.state().generation
            ):  # a promotion was interrupted and will be repeated
                raise ReplicaUnreachable(msg=f'{leader.name} is not active')
            source = leader.record()
            info = leader.backend.get_info(leader.name, source['subvolume'])
            # What copies that have failed do not need any more.
            needed = own.state()
            leader.discard(
                leader.snapshots(own.prefix) - {*needed.bases, needed.copy or ''}
            )
            name = f'{own.prefix}{time.time_ns():x}'
            leader.backend.order(
                'subvolume snapshot create',
                sub_name=source['subvolume'],
                snap_name=name,
            )
        self.copy(own, leader, name)
        subvolume = own.record()['subvolume']
        self._backend.order(
            'subvolume snapshot create', sub_name=subvolume, snap_name=name
        )
        with reaching(leader.name):
            after = leader.state()
        if after.term != before.term:
            raise ReplicaUnreachable(msg=f'{leader.name} has changed its role')

        def decide(state: ReplicaState) -> ReplicaState:
            return dataclasses.replace(
                state,
                role=Role.PASSIVE,
                generation=after.generation,
                source=leader.name,
                source_host=leader.host,
                copy=name,
                bases=[name],
                synced_at=began_at,
            )

        own.change_state(decide)
        if (size := quota_gib(info)) is not None:
            self._shares.set_size(own.name, size)
        own.discard(own.snapshots() - {name})
        with contextlib.suppress(ReplicaUnreachable), reaching(leader.name):
            for one in (own, leader):
                leader.discard(leader.snapshots(one.prefix) - {name})

    def copy(self, own: Replica, leader: Replica, name: str) -> None:
        """Give a replica the content of a snapshot of the leader.

        Raises ReplicaUnreachable if it is not passive: clients write to it.
        """
        bases = self._bases(own, leader)

        def begin(state: ReplicaState) -> ReplicaState:
            _require_passive(own, state)
            known = [*bases, *([] if name in bases else [name])]
            return dataclasses.replace(
                state,
                source=leader.name,
                source_host=leader.host,
                bases=known if bases and len(known) <= _MOST_BASES else [],
            )

        with reaching(leader.name):
            source = leader.record()
        snapshot = Snapshot(leader.backend, source, name)
        with self._copies.prepared(own.record(), snapshot, bases) as copy:
            own.change_state(begin)
            copy.run()
        own.update_state(bases=[name])

    def _bases(self, own: Replica, leader: Replica) -> list[str]:
        """Return snapshots of the leader that our replica consists of."""
        state = own.state()
        if state.source == leader.name and state.bases:
            return state.bases
        common = leader.state().copy
        if common is None or common not in own.snapshots(common):
            return []
        # Both had this content when the leader took over.
        self.restore(own, common)
        return [common]

    def restore(self, own: Replica, name: str) -> None:
        """Give a passive replica the content of a snapshot of its own."""

        def begin(state: ReplicaState) -> ReplicaState:
            _require_passive(own, state)
            return dataclasses.replace(state, bases=[])

        own.change_state(begin)
        record = own.record()
        snapshot = Snapshot(self._backend, record, name)
        with self._copies.prepared(record, snapshot) as copy:
            copy.run()


def _require_passive(own: Replica, state: ReplicaState) -> None:
    if state.role != Role.PASSIVE:
        raise ReplicaUnreachable(msg=f'{own.name} is {state.role} and is not replaced')


class CephfsReplicatedSnapshots(ReplicatedSnapshots[Replica]):
    def __init__(
        self,
        backend: CephfsBackend,
        peers: CephfsPeers,
        snapshots: CephfsSnapshots,
        syncing: CephfsSyncing,
    ):
        super().__init__(peers, snapshots)
        self._backend = backend
        self._peers = peers
        self._own = snapshots
        self._syncing = syncing

    def _copy(
        self,
        share_replica: base.ShareForDriver,
        active: Replica | None,
        source: base.SnapshotForDriver | None,
        snapshot: base.SnapshotForDriver,
    ) -> bool:
        own = self._peers.own_replica(share_replica)
        return self.ensure_snapshot(own, active, source, snapshot)

    def _has_snapshot(self, replica: Replica, name: str) -> bool:
        return replica.find_snapshot(name) is not None

    def _place(self, snapshot: base.SnapshotForDriver) -> base.SnapshotReply:
        record = self._backend.get_snapshot(snapshot)
        return {'provider_location': location_of(record), 'size': record['size']}

    def ensure_snapshot(
        self,
        own: Replica,
        leader: Replica | None,
        source: base.SnapshotForDriver | None,
        snapshot: base.SnapshotForDriver,
    ) -> bool:
        """Return whether a snapshot exists here; copy it if possible.

        Our replica has the content of the snapshot then, until it is synchronised.
        """
        name = snapshot['name']
        if own.find_snapshot(name) is not None:
            return True
        if leader is None or source is None or own.find() is None:
            return False
        try:
            with reaching(leader.name):
                found = leader.find_snapshot(source['name'])
            if found is None:
                return False
            self._syncing.copy(own, leader, found['snapshot'])
            self._own.create(snapshot, found['size'])
        except exception.StaleFencingToken:
            raise
        except exception.DriverError as error:
            LOG.warning(
                'Cannot copy snapshot %(name)s: %(error)s',
                {'name': name, 'error': error},
            )
            return False
        return True


class CephfsPromotion(Promotion[Replica]):
    """The roles are in the records of both back ends."""

    def __init__(
        self,
        backend: CephfsBackend,
        peers: CephfsPeers,
        syncing: CephfsSyncing,
        copies: CephfsCopies,
    ):
        super().__init__(peers, backend.clock, backend.sleep)
        self._syncing = syncing
        self._copies = copies

    @contextlib.contextmanager
    def _locked(self, takeover: Takeover[Replica]) -> Iterator[Takeover[Replica]]:
        """Late calls are fenced instead, and cut off from what they write to."""
        yield takeover

    def _hand_over(
        self, takeover: Takeover[Replica], active: Replica, generation: int
    ) -> None:
        own = takeover.own
        generation = max(generation, own.state().barred + 1)
        share = next(each for each in takeover.replica_list if each['name'] == own.name)
        self._syncing.register(own, active, share)
        try:
            with reaching(active.name):
                active.retire(own, generation)
            if own.state().role != Role.PASSIVE:  # it was replaced, out of reach
                own.become_passive(active, takeover.replication_type)
            self._syncing.follow(own, active)
            self._make_active(own, generation)
        except BaseException:
            with contextlib.suppress(exception.DriverError):
                resume_unless_replaced(active, own)
            raise

    def _activate(self, takeover: Takeover[Replica], generation: int) -> None:
        own = takeover.own
        self._copies.cut_off(own.record())
        state = own.state()
        is_passive = state.role == Role.PASSIVE
        if is_passive and not state.is_whole and state.copy is not None:
            self._syncing.restore(own, state.copy)
        # What was given up is that the active one hands over.
        self._make_active(own, max(generation, state.barred + 1))

    def _make_active(self, own: Replica, generation: int) -> None:
        def decide(state: ReplicaState) -> ReplicaState:
            if state.barred >= generation:
                raise exception.ShareBackendException(
                    msg=f'the promotion of {own.name} was given up'
                )
            return dataclasses.replace(
                state,
                role=Role.ACTIVE,
                generation=generation,
                source=None,
                source_host=None,
                bases=[],
            )

        own.change_state(decide)

    def _demote(self, takeover: Takeover[Replica], active: Replica) -> None:
        with self._reaching(active, 'become passive'):
            state = active.state()
            if state.role != Role.PASSIVE or state.source != takeover.own.name:
                active.become_passive(takeover.own, takeover.replication_type)

    def _reinstate(self, replica: Replica, generation: int) -> None:
        replica.resume(replica.state(), generation)

    @contextlib.contextmanager
    def _reaching(self, replica: Replica, action: str) -> Iterator[None]:
        try:
            yield
        except exception.StaleFencingToken:
            raise
        except exception.DriverError as error:
            LOG.warning(
                'Replica %(name)s cannot %(action)s: %(error)s',
                {'name': replica.name, 'action': action, 'error': error},
            )

    def _locations(self, own: Replica) -> list[base.ExportLocation]:
        return own.locations()


class CephfsReplication(Replication):
    def __init__(
        self,
        backend: CephfsBackend,
        peers: CephfsPeers,
        roles: CephfsRoles,
        syncing: CephfsSyncing,
        shares: CephfsShares,
        snapshots: CephfsSnapshots,
        access: CephfsAccess,
        promotion: CephfsPromotion,
        replicated_snapshots: CephfsReplicatedSnapshots,
    ):
        super().__init__(peers, roles.role_of, shares.get_share_status)
        self._backend = backend
        self._peers = peers
        self._syncing = syncing
        self._shares = shares
        self._snapshots = snapshots
        self._access = access
        self._promotion = promotion
        self._replicated_snapshots = replicated_snapshots

    def create_replica(
        self,
        replica_list: ReplicaList,
        new_replica: base.ShareForDriver,
        access_rules: base.AccessRules,
        replica_snapshots: list[base.ReplicaSnapshot],
    ) -> base.ReplicaReply:
        """Create a replica and copy everything, which may take a while."""
        own = self._peers.own_replica(new_replica)
        if own.find() is None:
            if self._peers.reachable_active(replica_list) is None:
                raise exception.ShareBackendException(
                    msg=f'replica {own.name} cannot be created: the active '
                    'replica is out of reach'
                )
            # Without a role it would be an active replica.
            own.change_state(_begin)
        locations = self._shares.create_share(new_replica)
        replica_state = self._update(
            replica_list, new_replica, access_rules, replica_snapshots
        )
        return {
            'replica_state': replica_state or OUT_OF_SYNC,
            'export_locations': locations,
        }

    def delete_replica(
        self,
        replica_list: ReplicaList,
        replica_snapshots: SnapshotList,
        replica: base.ShareForDriver,
    ) -> None:
        for snapshot in replica_snapshots:
            self._snapshots.delete_snapshot(snapshot)
        own = self._peers.own_replica(replica)
        if own.find() is not None:
            self._promotion.return_active_role(own, replica_list)
            self._shares.delete_share(replica)
        key = REPLICA + own.name
        self._backend.records.change(key, decide=lambda values: {key: None})
        others = [each for each in replica_list if each['name'] != own.name]
        for other in self._peers.reachable(others):
            with contextlib.suppress(ReplicaUnreachable), reaching(other.name):
                other.discard(other.snapshots(own.prefix))
                if own.name in other.state().others:
                    other.change_state(_without(own.name))

    def _update(
        self,
        replica_list: ReplicaList,
        replica: base.ShareForDriver,
        access_rules: base.AccessRules,
        replica_snapshots: list[base.ReplicaSnapshot],
    ) -> str | None:
        own = self._peers.own_replica(replica)
        record = own.find()
        if record is None:
            raise exception.ShareResourceNotFound(share_id=replica['id'])
        leader = self._peers.reachable_active(replica_list)
        if leader is not None and own.state().role != Role.PASSIVE:
            self._follow_again(own, leader, replica['replication_type'])
        # The share follows what is newer than its snapshots.
        missing = [
            pair
            for pair in replica_snapshots
            if not self._replicated_snapshots.ensure_snapshot(
                own,
                leader,
                pair['active_replica_snapshot'],
                pair['share_replica_snapshot'],
            )
        ]
        is_synced = leader is not None and self._follow(own, leader, replica)
        if replica['share_proto'].upper() == NFS and own.state().role == Role.PASSIVE:
            # It may have been out of reach when the rules were applied.
            self._access.update_access(replica, RuleChanges(access_rules=access_rules))
        return IN_SYNC if is_synced and not missing else OUT_OF_SYNC

    def _follow(
        self, own: Replica, leader: Replica, share: base.ShareForDriver
    ) -> bool:
        """Bring a replica up to date; return whether that succeeded."""
        before = own.state()
        try:
            self._syncing.register(own, leader, share)
            self._syncing.follow(own, leader)
        except exception.StaleFencingToken:
            raise
        except exception.DriverError as error:
            LOG.warning(
                'Cannot update replica %(name)s, last synchronised at '
                '%(at)s: %(error)s',
                {'name': own.name, 'error': error, 'at': format_time(before.synced_at)},
            )
            return False
        LOG.debug(
            'Replica %(name)s is synchronised with %(other)s',
            {'name': own.name, 'other': leader.name},
        )
        return True

    def _follow_again(
        self, own: Replica, leader: Replica, replication_type: str | None
    ) -> None:
        """Make a replica passive whose successor was promoted without it."""
        state = leader.state()
        if state.role == Role.PASSIVE or state.generation < own.state().generation:
            return
        LOG.warning(
            'Replica %(name)s is no longer active; changes that %(other)s '
            'does not have will be lost',
            {'name': own.name, 'other': leader.name},
        )
        own.become_passive(leader, replication_type)


def _begin(state: ReplicaState) -> ReplicaState:
    return ReplicaState(role=Role.PASSIVE) if state == ReplicaState() else state


def _without(name: str) -> Callable[[ReplicaState], ReplicaState]:
    def decide(state: ReplicaState) -> ReplicaState:
        others = {key: host for key, host in state.others.items() if key != name}
        return dataclasses.replace(state, others=others)

    return decide
