"""Shares that the local driver replicates on several back ends.

Each back end copies what its own replicas need. It writes to the root of
another back end only to make the previously active replica passive and to
register as its follower.
"""

import contextlib
import pathlib

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.contract.replication import (
    IN_SYNC,
    OUT_OF_SYNC,
    ReplicaList,
    SnapshotList,
    find_active,
)
from manila_lite.share.drivers.files.replication import (
    Replication,
    ReplicaUnreachable,
    Role,
    format_time,
    ignoring_read_only,
)
from manila_lite.share.drivers.local.access import LocalAccess
from manila_lite.share.drivers.local.backend import LocalBackend
from manila_lite.share.drivers.local.peers import LocalPeers, LocalRoles
from manila_lite.share.drivers.local.promotion import LocalPromotion
from manila_lite.share.drivers.local.replica import LocalReplica, raising_unreachable
from manila_lite.share.drivers.local.shares import LocalShares
from manila_lite.share.drivers.local.snapshots import (
    LocalReplicatedSnapshots,
    LocalSnapshots,
)
from manila_lite.share.drivers.space import is_out_of_space

LOG = log.getLogger(__name__)


class LocalReplication(Replication):
    def __init__(
        self,
        backend: LocalBackend,
        peers: LocalPeers,
        roles: LocalRoles,
        shares: LocalShares,
        snapshots: LocalSnapshots,
        access: LocalAccess,
        promotion: LocalPromotion,
        replicated_snapshots: LocalReplicatedSnapshots,
    ):
        super().__init__(peers, roles.role_of, shares.get_share_status)
        self._backend = backend
        self._peers = peers
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
        self._backend.require_replication()
        own = self._peers.own_replica(new_replica)
        with self._backend.store.locked_work_directory(own.name) as work:
            if own.item.find() is None:
                active = self._peers.reachable_active(replica_list)
                if active is None:
                    raise _active_unreachable(new_replica)
                own.publish(
                    work,
                    {
                        'size': new_replica['size'],
                        'share_proto': new_replica['share_proto'],
                    },
                )
        replica_state = self._update(
            replica_list, new_replica, access_rules, replica_snapshots
        )
        return {
            'replica_state': replica_state,
            'export_locations': self._backend.export_locations(own.item, own.record()),
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
        if own.item.find() is not None:
            self._promotion.return_active_role(own, replica_list)
        self._backend.store.remove(own.item)
        active = self._peers.reachable_active(replica_list)
        if active is not None:
            with (
                contextlib.suppress(ReplicaUnreachable),
                raising_unreachable(),
                ignoring_read_only(),
            ):
                own.unregister_from(active)

    def _update(
        self,
        replica_list: ReplicaList,
        replica: base.ShareForDriver,
        access_rules: base.AccessRules,
        replica_snapshots: list[base.ReplicaSnapshot],
    ) -> str:
        self._backend.require_replication()
        own = self._peers.own_replica(replica)
        if own.item.find() is None:
            raise exception.ShareResourceNotFound(share_id=replica['id'])
        active = self._peers.reachable_active(replica_list)
        was_active = own.state().role != Role.PASSIVE
        is_synced = False
        with self._backend.store.try_locked_work_directory(own.name) as work:
            if work is not None and active is not None:
                is_synced = self._follow(replica, own, active, work)
        if was_active and own.state().role == Role.PASSIVE:
            # It may have been unreachable when the roles changed.
            self._access.update_access(replica, access_rules)
        missing = [
            pair
            for pair in replica_snapshots
            if not self._replicated_snapshots.ensure_snapshot(
                active, pair['active_replica_snapshot'], pair['share_replica_snapshot']
            )
        ]
        is_recent = is_synced or self._is_within_recovery_point(own, replica_list)
        return IN_SYNC if is_recent and not missing else OUT_OF_SYNC

    def _follow(
        self,
        replica: base.ShareForDriver,
        own: LocalReplica,
        active: LocalReplica,
        work: pathlib.Path,
    ) -> bool:
        """Bring a replica up to date; return whether that succeeded."""
        started_at = self._backend.clock()
        before = own.state()
        try:
            leader = active.state()
            if leader.role == Role.PASSIVE or (leader.generation < before.generation):
                # A promotion was interrupted and will be repeated.
                raise ReplicaUnreachable(
                    msg=f'{active.item.path} is not recorded as active'
                )
            if before.role != Role.PASSIVE:
                LOG.warning(
                    'Replica %(name)s is no longer active; changes that '
                    '%(other)s does not have will be lost',
                    {'name': own.name, 'other': active.name},
                )
                own.become_passive(active, replica['replication_type'])
            changes = own.follow(active, work, started_at)
        except ReplicaUnreachable as error:
            LOG.warning(
                'Cannot update replica %(name)s, last synchronised at '
                '%(at)s: %(error)s',
                {'name': own.name, 'error': error, 'at': format_time(before.synced_at)},
            )
        except OSError as error:
            if not is_out_of_space(error):
                raise
            LOG.error(
                'No space left to update replica %(name)s, last '
                'synchronised at %(at)s: %(error)s',
                {'name': own.name, 'error': error, 'at': format_time(before.synced_at)},
            )
        else:
            LOG.log(
                log.INFO if changes else log.DEBUG,
                'Replica %(name)s is synchronised with %(other)s as of '
                '%(at)s after %(changes)s changes',
                {
                    'name': own.name,
                    'other': active.name,
                    'at': format_time(started_at),
                    'changes': changes,
                },
            )
            return True
        return False

    def _is_within_recovery_point(
        self, own: LocalReplica, replica_list: ReplicaList
    ) -> bool:
        """Return whether potential data loss is within the recovery point."""
        state = own.state()
        leader = find_active(replica_list)
        oldest = (
            self._backend.clock()
            - self._backend.configuration.local_replication_recovery_point
        )
        return (
            leader is not None
            and state.role == Role.PASSIVE
            and state.source == leader['name']
            and not own.has_pending_changes()
            and state.synced_at is not None
            and state.synced_at >= oldest
        )


def _active_unreachable(
    replica: base.ShareForDriver,
) -> exception.ShareBackendException:
    return exception.ShareBackendException(
        msg=f'replica {replica["name"]} cannot be created: the active '
        'replica is unreachable'
    )
