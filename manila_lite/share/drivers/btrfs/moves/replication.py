"""Shares that the btrfs driver replicates in several pools.

Each back end copies what its own replicas need. At another one it changes
only what the promotion of a replica ends there, and the copies that are sent.
"""

import contextlib

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.exports.access import BtrfsAccess
from manila_lite.share.drivers.btrfs.moves.peers import BtrfsPeers
from manila_lite.share.drivers.btrfs.moves.promotion import BtrfsPromotion
from manila_lite.share.drivers.btrfs.moves.replicas import Replica, ReplicaState
from manila_lite.share.drivers.btrfs.moves.roles import BtrfsRoles
from manila_lite.share.drivers.btrfs.moves.syncing import BtrfsSyncing
from manila_lite.share.drivers.btrfs.moves.transfer import TransferFailed
from manila_lite.share.drivers.btrfs.volumes.shares import BtrfsShares
from manila_lite.share.drivers.btrfs.volumes.snapshots import BtrfsSnapshots
from manila_lite.share.drivers.contract import replication
from manila_lite.share.drivers.contract.access import RuleChanges
from manila_lite.share.drivers.files.replicated_snapshots import ReplicatedSnapshots
from manila_lite.share.drivers.files.replication import (
    Replication,
    ReplicaUnreachable,
    Role,
    format_time,
)
from manila_lite.share.drivers.space import is_out_of_space


class BtrfsReplicatedSnapshots(ReplicatedSnapshots[Replica]):
    def __init__(
        self,
        backend: BtrfsBackend,
        peers: BtrfsPeers,
        snapshots: BtrfsSnapshots,
        syncing: BtrfsSyncing,
    ):
        super().__init__(peers, snapshots)
        self._backend = backend
        self._own = snapshots
        self._peers = peers
        self._syncing = syncing

    def _copy(
        self,
        share_replica: base.ShareForDriver,
        active: Replica | None,
        source: base.SnapshotForDriver | None,
        snapshot: base.SnapshotForDriver,
    ) -> bool:
        own = self._peers.own_replica(share_replica)
        with self._backend.try_lock_copies(own.name) as is_locked:
            return is_locked and self.ensure_snapshot(own, active, source, snapshot)

    def _has_snapshot(self, replica: Replica, name: str) -> bool:
        return replica.backend.find(Kind.SNAPSHOT, name) is not None

    def _place(self, snapshot: base.SnapshotForDriver) -> base.SnapshotReply:
        return self._own.reply(*self._backend.get_snapshot(snapshot))

    def ensure_snapshot(
        self,
        own: Replica,
        leader: Replica | None,
        source: base.SnapshotForDriver | None,
        snapshot: base.SnapshotForDriver,
    ) -> bool:
        """Return whether a snapshot exists here; copy it if possible.

        The caller has locked the copies of our replica.
        """
        name = snapshot['name']
        if self._backend.find(Kind.SNAPSHOT, name) is not None:
            return True
        if leader is None or source is None or own.find() is None:
            return False
        try:
            return self._syncing.copy_snapshot(own, leader, source['name'], name)
        except (OSError, exception.ShareBackendException) as error:
            LOG.warning(
                'Cannot copy snapshot %(name)s: %(error)s',
                {'name': name, 'error': error},
            )
        return False


LOG = log.getLogger(__name__)


class BtrfsReplication(Replication):
    def __init__(
        self,
        backend: BtrfsBackend,
        peers: BtrfsPeers,
        roles: BtrfsRoles,
        syncing: BtrfsSyncing,
        shares: BtrfsShares,
        snapshots: BtrfsSnapshots,
        access: BtrfsAccess,
        promotion: BtrfsPromotion,
        replicated_snapshots: BtrfsReplicatedSnapshots,
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
        replica_list: replication.ReplicaList,
        new_replica: base.ShareForDriver,
        access_rules: base.AccessRules,
        replica_snapshots: list[base.ReplicaSnapshot],
        share_server: base.ShareServerMapping | None = None,
    ) -> base.ReplicaReply:
        """Create a replica and copy everything, which may take a while."""
        own = self._peers.own_replica(new_replica)
        if own.find() is None:
            leader = self._peers.reachable_active(replica_list)
            if leader is None:
                raise exception.ShareBackendException(
                    msg=f'replica {own.name} cannot be created: the active '
                    'replica is out of reach'
                )
            if leader.pool.top == own.pool.top:
                raise exception.ShareBackendException(
                    msg=f'pool {own.pool.name} has a replica of the share'
                )
            self._create(own, new_replica, share_server)
        replica_state = self._update(
            replica_list, new_replica, access_rules, replica_snapshots
        )
        return {
            'replica_state': replica_state or replication.OUT_OF_SYNC,
            'export_locations': own.locations(),
        }

    def _create(
        self,
        own: Replica,
        share: base.ShareForDriver,
        share_server: base.ShareServerMapping | None,
    ) -> None:
        """Create the volume of a replica, or leave nothing behind."""
        # Without the state it would be an active replica.
        own.write_state(ReplicaState(role=Role.PASSIVE))
        try:
            self._shares.create_share(share, share_server)
        except (OSError, exception.DriverError):
            with (
                contextlib.suppress(OSError, exception.DriverError),
                # A stale call is refused here: the state belongs to another
                # call.
                self._backend.changing(own.name),
            ):
                if own.find() is None:
                    own.forget_state()
            raise

    def delete_replica(
        self,
        replica_list: replication.ReplicaList,
        replica_snapshots: replication.SnapshotList,
        replica: base.ShareForDriver,
    ) -> None:
        for snapshot in replica_snapshots:
            self._snapshots.delete_snapshot(snapshot)
        own = self._peers.own_replica(replica)
        with self._backend.lock_copies(own.name):
            if own.find() is not None:
                self._promotion.return_active_role(own, replica_list)
            with self._backend.changing(own.name):
                self._backend.remove(Kind.SHARE, own.name)
        for other in self._peers.reachable(replica_list):
            with contextlib.suppress(OSError, exception.ShareBackendException):
                other.copies.discard(own.name)
                other.copies.remove_empty()

    def _update(
        self,
        replica_list: replication.ReplicaList,
        replica: base.ShareForDriver,
        access_rules: base.AccessRules,
        replica_snapshots: list[base.ReplicaSnapshot],
    ) -> str | None:
        own = self._peers.own_replica(replica)
        if own.find() is None:
            raise exception.ShareResourceNotFound(share_id=replica['id'])
        with self._backend.try_lock_copies(own.name) as is_locked:
            if not is_locked:
                return None
            self._backend.fencing.check_call()
            leader = self._peers.reachable_active(replica_list)
            replica_state = replication.OUT_OF_SYNC
            if leader is not None:
                replica_state = self._follow(own, leader, replica['replication_type'])
                self._syncing.forget_others(own, leader, replica_list)
            # All are tried, although one may be missing.
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
        if (
            own.state().role == Role.PASSIVE
            and self._backend.exports.listed(Kind.SHARE, own.record()) is None
        ):
            # It may have been out of reach when the rules were applied.
            self._access.update_access(replica, RuleChanges(access_rules=access_rules))
        if replica_state == replication.IN_SYNC and missing:
            return replication.OUT_OF_SYNC
        return replica_state

    def _follow(
        self, own: Replica, leader: Replica, replication_type: str | None
    ) -> str:
        """Bring a replica up to date; return its state."""
        before = own.state()
        try:
            if before.role != Role.PASSIVE:
                self._follow_again(own, leader, replication_type)
            is_new = self._syncing.follow(own, leader)
        except (OSError, exception.ShareBackendException) as error:
            LOG.warning(
                'Cannot update replica %(name)s, last synchronised at '
                '%(at)s: %(error)s',
                {'name': own.name, 'error': error, 'at': format_time(before.synced_at)},
            )
            return replication.ERROR if _is_full(error) else replication.OUT_OF_SYNC
        LOG.log(
            log.INFO if is_new else log.DEBUG,
            'Replica %(name)s is synchronised with %(other)s',
            {'name': own.name, 'other': leader.name},
        )
        return replication.IN_SYNC

    def _follow_again(
        self, own: Replica, leader: Replica, replication_type: str | None
    ) -> None:
        """Make a replica passive whose successor was promoted without it."""
        state = leader.state()
        if state.role == Role.PASSIVE or (state.generation < own.state().generation):
            return
        LOG.warning(
            'Replica %(name)s is no longer active; changes that %(other)s '
            'does not have will be lost',
            {'name': own.name, 'other': leader.name},
        )
        with self._backend.changing(own.name):
            own.become_passive(leader, replication_type)


def _is_full(error: Exception) -> bool:
    """Return whether our own pool has no space for what is new."""
    if isinstance(error, ReplicaUnreachable):
        return False
    if isinstance(error, TransferFailed):
        return error.is_out_of_space
    cause = error if isinstance(error, OSError) else error.__cause__
    return isinstance(cause, OSError) and is_out_of_space(cause)
