"""Snapshots of shares that the local driver replicates.

A snapshot is created on the back end of the active replica; each of the
others copies it from there.
"""

from collections.abc import Sequence
import pathlib

from oslo_log import log

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.share.drivers import base, trees
from manila_lite.share.drivers.local.backend import LocalBackend
from manila_lite.share.drivers.local.peers import LocalPeers
from manila_lite.share.drivers.local.replica import (
    LocalReplica,
    ReplicaUnreachable,
    raising_unreachable,
)
from manila_lite.share.drivers.local.snapshots import LocalSnapshots
from manila_lite.share.drivers.local.store import LocalItem
from manila_lite.share.drivers.replica_lists import (
    ReplicaList,
    SnapshotList,
    instances_on_active,
)
from manila_lite.share.drivers.space import is_out_of_space

LOG = log.getLogger(__name__)


class LocalReplicatedSnapshots:
    """Snapshots that the back ends of a share copy from the active one."""

    def __init__(
        self, backend: LocalBackend, peers: LocalPeers, snapshots: LocalSnapshots
    ):
        self._backend = backend
        self._peers = peers
        self._snapshots = snapshots

    def create_replicated_snapshot(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica_snapshots: SnapshotList,
        share_server: base.ShareServerMapping | None = None,
    ) -> Sequence[base.ReplicatedSnapshotReply]:
        """Create it on the active replica; the other back ends copy it."""
        self._backend.require_replication()
        replies = []
        for snapshot in instances_on_active(replica_snapshots, replica_list):
            self._snapshots.create_snapshot(context, snapshot, share_server)
            replies.append(self._available_reply(snapshot))
        return replies

    def delete_replicated_snapshot(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica_snapshots: SnapshotList,
        share_server: base.ShareServerMapping | None = None,
    ) -> Sequence[base.ReplicatedSnapshotReply]:
        self._backend.require_replication()
        replies: list[base.ReplicatedSnapshotReply] = []
        for snapshot in instances_on_active(replica_snapshots, replica_list):
            self._snapshots.delete_snapshot(context, snapshot, share_server)
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
        self._backend.require_replication()
        if replica_snapshot['status'] == 'deleting':
            self._snapshots.delete_snapshot(context, replica_snapshot, share_server)
            raise exception.SnapshotResourceNotFound(snapshot_id=replica_snapshot['id'])
        active = self._peers.reachable_active(replica_list)
        source = next(iter(instances_on_active(replica_snapshots, replica_list)), None)
        if self.ensure_snapshot(active, source, replica_snapshot):
            return self._available_reply(replica_snapshot)
        if (
            active is not None
            and source is not None
            and (source['status'] == 'available')
            and not self._has_snapshot(active, source)
        ):
            raise exception.SnapshotResourceNotFound(snapshot_id=replica_snapshot['id'])
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
        self._backend.require_replication()
        return self._snapshots.revert_to_snapshot(
            context,
            active_replica_snapshot,
            share_access_rules,
            snapshot_access_rules,
            share_server,
        )

    def _available_reply(
        self, snapshot: base.SnapshotForDriver
    ) -> base.ReplicatedSnapshotReply:
        item = self._backend.store.snapshot(snapshot['name'])
        record = item.find()
        if record is None:  # deleted meanwhile
            raise exception.SnapshotResourceNotFound(snapshot_id=snapshot['id'])
        return {
            'id': snapshot['id'],
            'status': 'available',
            'progress': '100%',
            'provider_location': item.name,
            'size': record['size'],
            'export_locations': self._backend.export_locations(item, record),
        }

    def ensure_snapshot(
        self,
        active: LocalReplica | None,
        source: base.SnapshotForDriver | None,
        snapshot: base.SnapshotForDriver,
    ) -> bool:
        """Return whether a snapshot exists here; copy it if possible."""
        item = self._backend.store.snapshot(snapshot['name'])
        exists = item.find() is not None
        if exists and not self._backend.store.has_work_directory(item.name):
            return True
        try:
            with self._backend.store.try_locked_work_directory(item.name) as work:
                if work is None:
                    return exists
                if active is None or source is None:
                    return item.find() is not None
                return item.find() is not None or self._copy_snapshot(
                    active.store.snapshot(source['name']), item, snapshot, work
                )
        except ReplicaUnreachable as error:
            LOG.warning(
                'Cannot copy snapshot %(name)s: %(error)s',
                {'name': item.name, 'error': error},
            )
        except OSError as error:
            if not is_out_of_space(error):
                raise
            LOG.error(
                'No space left to copy snapshot %(name)s: %(error)s',
                {'name': item.name, 'error': error},
            )
        return False

    def _has_snapshot(
        self, replica: LocalReplica, snapshot: base.SnapshotForDriver
    ) -> bool:
        with raising_unreachable():
            return replica.store.snapshot(snapshot['name']).find() is not None

    def _copy_snapshot(
        self,
        source_item: LocalItem,
        item: LocalItem,
        snapshot: base.SnapshotForDriver,
        work: pathlib.Path,
    ) -> bool:
        replica = self._peers.own_replica(snapshot['share'])
        record = replica.record()
        with raising_unreachable():
            source_record = source_item.find()
            if source_record is None:  # not yet created, or deleted
                return False
            trees.copy_tree(source_item.data_path(source_record), work / 'data')
            if source_item.find() is None:  # the copy may be incomplete
                return False
        item.publish(
            work,
            {
                'size': source_record['size'],
                'of': replica.item.relative_data_path(record),
                'share_proto': source_record['share_proto'],
            },
        )
        return True
