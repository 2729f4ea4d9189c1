"""Shares that the CephFS driver replicates to other file systems or clusters.

Each back end copies what its own replicas need, from a snapshot of the active one.
Both sides keep this snapshot: the next difference is based on it, and a replica that
is promoted while a copy is incomplete goes back to it.
"""

from collections.abc import Callable, Iterator
import contextlib
import dataclasses
import time

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
    resume_unless_replaced,
)
from manila_lite.share.drivers.cephfs.shares import CephfsShares
from manila_lite.share.drivers.cephfs.snapshots import CephfsSnapshots
from manila_lite.share.drivers.contract.access import RuleChanges
from manila_lite.share.drivers.files.promotion import Takeover
from manila_lite.share.drivers.files.replicas import (
    ReplicaUnreachable,
    Role,
    reaching,
    require_leading,
)
from manila_lite.share.drivers.files.replication import Creation, Replication, Update

_MOST_BASES = 4
"""So many snapshots may be compared to spare the comparison of content."""


class CephfsSyncing:
    """Replicas get the content of snapshots of the active one."""

    def __init__(
        self, backend: CephfsBackend, copies: CephfsCopies, shares: CephfsShares
    ):
        self._backend, self._copies, self._shares = backend, copies, shares

    def register(
        self, own: Replica, leader: Replica, share: base.ShareForDriver
    ) -> None:
        """Let both replicas know what is needed to change their roles."""
        values = {
            'share_proto': share['share_proto'].upper(),
            'project_id': share['project_id'],
        }
        for one, other in ((own, leader), (leader, own)):
            with reaching(one.name):
                one.register(other, **values)

    def follow(self, own: Replica, leader: Replica) -> None:
        """Give a replica the content that the leader has.

        Raises ReplicaUnreachable if that has none that may be copied.
        """
        began_at = self._backend.clock()
        with reaching(leader.name):
            before = leader.state()
            require_leading(leader.name, before, own.state())
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

        own.update_state(
            role=Role.PASSIVE,
            generation=after.generation,
            source=leader.name,
            source_host=leader.host,
            copy=name,
            bases=[name],
            synced_at=began_at,
        )
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
        known = [*bases, *([] if name in bases else [name])]
        with reaching(leader.name):
            source = leader.record()
        snapshot = Snapshot(leader.backend, source, name)
        with self._copies.prepared(own.record(), snapshot, bases) as copy:
            own.update_passive(
                source=leader.name,
                source_host=leader.host,
                bases=known if bases and len(known) <= _MOST_BASES else [],
            )
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
        own.update_passive(bases=[])
        record = own.record()
        snapshot = Snapshot(self._backend, record, name)
        with self._copies.prepared(record, snapshot) as copy:
            copy.run()


class CephfsReplication(Replication[Replica]):
    """The roles are in the records of both back ends."""

    _snapshots_first = True
    _snapshots: CephfsSnapshots

    def __init__(
        self,
        backend: CephfsBackend,
        peers: CephfsPeers,
        roles: CephfsRoles,
        shares: CephfsShares,
        snapshots: CephfsSnapshots,
        access: CephfsAccess,
        copies: CephfsCopies,
    ):
        status_of = shares.get_share_status
        super().__init__(
            peers, roles, snapshots, status_of, backend.clock, backend.sleep
        )
        self._backend = backend
        self._syncing = CephfsSyncing(backend, copies, shares)
        self._shares, self._access, self._copies = shares, access, copies

    def _create(self, own: Replica, new: Creation) -> None:
        if own.find() is None:
            # Without a role it would be an active replica.
            own.change_state(_begin)
        self._shares.create_share(new.new_replica)

    def _remove(self, own: Replica, share: base.ShareForDriver) -> None:
        if own.find() is not None:
            self._shares.delete_share(share)
        self._backend.records.update(REPLICA + own.name, lambda state: None)

    def _forget(self, own: Replica, other: Replica) -> None:
        other.discard(other.snapshots(own.prefix))
        if own.name in other.state().others:
            other.change_state(_without(own.name))

    def _synchronise(self, own: Replica, leader: Replica, update: Update) -> bool:
        self._syncing.register(own, leader, update.replica)
        self._syncing.follow(own, leader)
        return False  # it is not known

    def _locations(self, share: base.ShareForDriver) -> list[base.ExportLocation]:
        """Do so without the manager, which may not answer after a promotion."""
        record = self._backend.get_share(share)
        return self._backend.export_locations(share['share_proto'], record['path'])

    def _restore_access(self, own: Replica, update: Update, was_active: bool) -> None:
        if update.replica['share_proto'].upper() == NFS:
            rules = RuleChanges(access_rules=update.access_rules)
            self._access.update_access(update.replica, rules)

    def _copy_snapshot(
        self,
        own: Replica,
        leader: Replica,
        source: str,
        snapshot: base.SnapshotForDriver,
    ) -> bool:
        """Do so; our replica has its content until it is synchronised."""
        with reaching(leader.name):
            found = leader.find_snapshot(source)
        if found is None:
            return False
        self._syncing.copy(own, leader, found['snapshot'])
        self._snapshots.create(snapshot, found['size'])
        return True

    # Promotion

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

    def _reinstate(self, replica: Replica, generation: int) -> None:
        replica.resume(replica.state(), generation)


def _begin(state: ReplicaState) -> ReplicaState:
    return ReplicaState(role=Role.PASSIVE) if state == ReplicaState() else state


def _without(name: str) -> Callable[[ReplicaState], ReplicaState]:
    def decide(state: ReplicaState) -> ReplicaState:
        others = {key: host for key, host in state.others.items() if key != name}
        return dataclasses.replace(state, others=others)

    return decide
