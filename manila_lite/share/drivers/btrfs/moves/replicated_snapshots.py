"""Snapshots of shares that the btrfs driver replicates.

A snapshot is created on the back end of the active replica; each of the
others copies it from there.
"""

from collections.abc import Sequence

from oslo_log import log

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.moves.peers import BtrfsPeers
from manila_lite.share.drivers.btrfs.moves.replicas import Replica
from manila_lite.share.drivers.btrfs.moves.syncing import BtrfsSyncing
from manila_lite.share.drivers.btrfs.volumes.snapshots import BtrfsSnapshots
from manila_lite.share.drivers.replica_lists import (
    ReplicaList,
    SnapshotList,
    instances_on_active,
)

LOG = log.getLogger(__name__)


class BtrfsReplicatedSnapshots:
    """Snapshots that the back ends of a share copy from the active one."""

    def __init__(
        self,
        backend: BtrfsBackend,
        peers: BtrfsPeers,
        snapshots: BtrfsSnapshots,
        syncing: BtrfsSyncing,
    ):
        self._backend = backend
        self._peers = peers
        self._snapshots = snapshots
        self._syncing = syncing

    def create_replicated_snapshot(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica_snapshots: SnapshotList,
        share_server: base.ShareServerMapping | None = None,
    ) -> Sequence[base.ReplicatedSnapshotReply]:
        """Create it on the active replica; the other back ends copy it."""
        replies = []
        for snapshot in instances_on_active(replica_snapshots, replica_list):
            self._snapshots.create_snapshot(context, snapshot)
            replies.append(self._available_reply(snapshot))
        return replies

    def delete_replicated_snapshot(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica_snapshots: SnapshotList,
        share_server: base.ShareServerMapping | None = None,
    ) -> Sequence[base.ReplicatedSnapshotReply]:
        replies: list[base.ReplicatedSnapshotReply] = []
        for snapshot in instances_on_active(replica_snapshots, replica_list):
            self._snapshots.delete_snapshot(context, snapshot)
            replies.append({'id': snapshot['id'], 'status': 'deleted'})
        return replies

    def update_replicated_snapshot(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        share_replica: base.ShareForDriver,
        replica_snapshots: SnapshotList,
        replica_snapshot: base.SnapshotForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.ReplicatedSnapshotReply:
        """Copy or delete it; nothing runs in the background."""
        missing = exception.SnapshotResourceNotFound(snapshot_id=replica_snapshot['id'])
        if replica_snapshot['status'] == 'deleting':
            self._snapshots.delete_snapshot(context, replica_snapshot)
            raise missing
        own = self._peers.own_replica(share_replica)
        leader = self._peers.reachable_active(replica_list)
        source = next(iter(instances_on_active(replica_snapshots, replica_list)), None)
        with self._backend.try_copying(own.name) as is_locked:
            if is_locked and self.ensure_snapshot(
                own, leader, source, replica_snapshot
            ):
                return self._available_reply(replica_snapshot)
        if (
            leader is not None
            and source is not None
            and source['status'] == 'available'
            and leader.backend.find(Kind.SNAPSHOT, source['name']) is None
        ):
            raise missing
        return {'id': replica_snapshot['id'], 'status': 'creating'}

    def revert_to_replicated_snapshot(
        self,
        context: RequestContext,
        active_replica: base.ShareForDriver,
        replica_list: ReplicaList,
        active_replica_snapshot: base.SnapshotForDriver,
        replica_snapshots: SnapshotList,
        share_access_rules: base.AccessRules,
        snapshot_access_rules: base.AccessRules,
        share_server: base.ShareServerMapping | None = None,
    ) -> int | None:
        """Revert the active replica; the others copy the changes as usual."""
        return self._snapshots.revert_to_snapshot(
            context, active_replica_snapshot, share_access_rules, snapshot_access_rules
        )

    def _available_reply(
        self, snapshot: base.SnapshotForDriver
    ) -> base.ReplicatedSnapshotReply:
        pool, record = self._backend.get_snapshot(snapshot)
        volume = record['volume']
        return {
            'id': snapshot['id'],
            'status': 'available',
            'progress': '100%',
            'provider_location': volume,
            'size': pool.size_gib(Kind.SNAPSHOT, volume),
            'export_locations': self._backend.locations(Kind.SNAPSHOT, record),
        }

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
