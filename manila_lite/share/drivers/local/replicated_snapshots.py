"""Snapshots of shares that the local driver keeps on several back ends.

One is taken where the active replica is. Each of the others fetches it.
"""

from collections.abc import Sequence
import pathlib

from oslo_log import log

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.share.drivers import base
from manila_lite.share.drivers.local import trees
from manila_lite.share.drivers.local.managing import export_locations
from manila_lite.share.drivers.local.peers import LocalPeers
from manila_lite.share.drivers.local.peers import ReplicaList
from manila_lite.share.drivers.local.peers import find_active
from manila_lite.share.drivers.local.replica import NO_SPACE_ERRNOS
from manila_lite.share.drivers.local.replica import LocalReplica
from manila_lite.share.drivers.local.replica import ReplicaUnreachable
from manila_lite.share.drivers.local.replica import raising_unreachable
from manila_lite.share.drivers.local.store import LocalItem

LOG = log.getLogger(__name__)

SnapshotList = list[base.SnapshotForDriver]


class LocalReplicatedSnapshots(LocalPeers, base.RevertSupport):
    def create_replicated_snapshot(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica_snapshots: SnapshotList,
        share_server: base.ShareServerMapping | None = None,
    ) -> Sequence[base.ReplicatedSnapshotReply]:
        """Take it of the active replica; the others fetch it by themselves."""
        self._needs_replication()
        answers = []
        for snapshot in _on_active(replica_snapshots, replica_list):
            self.create_snapshot(context, snapshot, share_server)
            answers.append(self._available(snapshot))
        return answers

    def delete_replicated_snapshot(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica_snapshots: SnapshotList,
        share_server: base.ShareServerMapping | None = None,
    ) -> Sequence[base.ReplicatedSnapshotReply]:
        self._needs_replication()
        answers: list[base.ReplicatedSnapshotReply] = []
        for snapshot in _on_active(replica_snapshots, replica_list):
            self.delete_snapshot(context, snapshot, share_server)
            answers.append({'id': snapshot['id'], 'status': 'deleted'})
        return answers

    def update_replicated_snapshot(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        share_replica: base.ShareForDriver,
        replica_snapshots: SnapshotList,
        replica_snapshot: base.SnapshotForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.ReplicatedSnapshotReply:
        """Fetch or remove it; there is nothing that goes on by itself."""
        self._needs_replication()
        if replica_snapshot['status'] == 'deleting':
            self.delete_snapshot(context, replica_snapshot, share_server)
            raise exception.SnapshotResourceNotFound(
                snapshot_id=replica_snapshot['id']
            )
        active = self._active(replica_list)
        source = next(iter(_on_active(replica_snapshots, replica_list)), None)
        if self._fetched(active, source, replica_snapshot):
            return self._available(replica_snapshot)
        if (
            active is not None
            and source is not None
            and (source['status'] == 'available')
            and not self._is_there(active, source)
        ):
            raise exception.SnapshotResourceNotFound(
                snapshot_id=replica_snapshot['id']
            )
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
        """The others copy what has changed by it, as they always do."""
        self._needs_replication()
        return self.revert_to_snapshot(
            context,
            active_replica_snapshot,
            share_access_rules,
            snapshot_access_rules,
            share_server,
        )

    def _available(
        self, snapshot: base.SnapshotForDriver
    ) -> base.ReplicatedSnapshotReply:
        home = self._places.snapshot(snapshot['name'])
        record = home.find()
        if record is None:  # removed meanwhile
            raise exception.SnapshotResourceNotFound(
                snapshot_id=snapshot['id']
            )
        return {
            'id': snapshot['id'],
            'status': 'available',
            'progress': '100%',
            'provider_location': home.name,
            'size': record['size'],
            'export_locations': export_locations(home.data(record)),
        }

    def _fetched(
        self,
        active: LocalReplica | None,
        source: base.SnapshotForDriver | None,
        snapshot: base.SnapshotForDriver,
    ) -> bool:
        """Whether a snapshot is here; it is copied if it can be."""
        home = self._places.snapshot(snapshot['name'])
        is_here = home.find() is not None
        if is_here and not self._places.is_at_work(home.name):
            return True
        try:
            with self._places.work_if_free(home.name) as work:
                if work is None:
                    return is_here
                if active is None or source is None:
                    return home.find() is not None
                return home.find() is not None or self._fetch(
                    active.places.snapshot(source['name']),
                    home,
                    snapshot,
                    work,
                )
        except ReplicaUnreachable as error:
            LOG.warning(
                'Snapshot %(name)s cannot be copied: %(error)s',
                {'name': home.name, 'error': error},
            )
        except OSError as error:
            if error.errno not in NO_SPACE_ERRNOS:
                raise
            LOG.error(
                'There is no room for snapshot %(name)s: %(error)s',
                {'name': home.name, 'error': error},
            )
        return False

    def _is_there(
        self, replica: LocalReplica, snapshot: base.SnapshotForDriver
    ) -> bool:
        with raising_unreachable():
            return replica.places.snapshot(snapshot['name']).find() is not None

    def _fetch(
        self,
        taken: LocalItem,
        home: LocalItem,
        snapshot: base.SnapshotForDriver,
        work: pathlib.Path,
    ) -> bool:
        replica = self._mine(snapshot['share'])
        record = replica.record()
        with raising_unreachable():
            saved = taken.find()
            if saved is None:  # not taken yet, or removed
                return False
            trees.copy_tree(taken.data(saved), work / 'data')
            if taken.find() is None:  # the copy need not be whole
                return False
        home.publish(
            work,
            {
                'size': saved['size'],
                'of': replica.home.directory(record),
                'share_proto': saved['share_proto'],
            },
        )
        return True


def _on_active(
    snapshots: SnapshotList, replica_list: ReplicaList
) -> SnapshotList:
    """The instances that are on the active replica."""
    leader = find_active(replica_list)
    return [
        one
        for one in snapshots
        if leader is not None and one['share_instance_id'] == leader['id']
    ]
