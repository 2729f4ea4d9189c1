"""Snapshots of the local driver, also of shares that it replicates."""

import pathlib

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import base, trees
from manila_lite.share.drivers.files.replicated_snapshots import ReplicatedSnapshots
from manila_lite.share.drivers.files.replication import ReplicaUnreachable
from manila_lite.share.drivers.local.backend import LocalBackend
from manila_lite.share.drivers.local.peers import LocalPeers
from manila_lite.share.drivers.local.replica import LocalReplica, raising_unreachable
from manila_lite.share.drivers.local.store import LocalItem
from manila_lite.share.drivers.space import is_out_of_space


class LocalSnapshots:
    """Copies of the directories of shares."""

    def __init__(self, backend: LocalBackend):
        self._backend = backend

    def create_snapshot(self, snapshot: base.SnapshotForDriver) -> base.SnapshotReply:
        item = self._backend.store.snapshot(snapshot['name'])
        with self._backend.store.locked_work_directory(item.name) as work:
            record = item.find()
            if record is None:
                share, now = self._backend.get_share(snapshot['share_name'])
                trees.copy_tree(share.data_path(now), work / 'data')
                record = {
                    'size': now['size'],
                    'of': share.relative_data_path(now),
                    'share_proto': now['share_proto'],
                }
                item.publish(work, record)
        return {
            'provider_location': item.name,
            'size': record['size'],
            'export_locations': self._backend.export_locations(item, record),
        }

    def delete_snapshot(self, snapshot: base.SnapshotForDriver) -> None:
        self._backend.store.remove(self._backend.store.snapshot(snapshot['name']))

    def get_snapshot_status(self, snapshot: base.SnapshotForDriver) -> base.StatusReply:
        item, record = self._backend.get_snapshot(snapshot)
        data = item.data_path(record)
        return {
            'status': 'available' if data.is_dir() else 'error',
            'size': record['size'],
            'share_proto': record['share_proto'],
            'provider_location': snapshot['provider_location'] or item.name,
            'export_locations': self._backend.export_locations(item, record),
        }

    def revert_to_snapshot(self, snapshot: base.SnapshotForDriver) -> int:
        """Move the content of the snapshot into the share's directory.

        The copy is made first: if there is no room for it, nothing has
        changed. The share's status is error until the last file is in place.
        """
        item, record = self._backend.get_share(snapshot['share_name'])
        source_item, source_record = self._backend.get_snapshot(snapshot)
        data, source = (item.data_path(record), source_item.data_path(source_record))
        with self._backend.store.locked_work_directory(item.name) as work:
            trees.copy_tree(source, work / 'data')
            (work / 'old').mkdir()
            item.write_record(record | {'reverting_to': snapshot['name']})
            trees.move_content(data, work / 'old')
            trees.move_content(work / 'data', data)
            trees.copy_attributes(source, data)
            item.write_record(
                {
                    name: value
                    for name, value in record.items()
                    if name != 'reverting_to'
                }
                | {'size': source_record['size']}
            )
        return source_record['size']


LOG = log.getLogger(__name__)


class LocalReplicatedSnapshots(ReplicatedSnapshots[LocalReplica]):
    def __init__(
        self, backend: LocalBackend, peers: LocalPeers, snapshots: LocalSnapshots
    ):
        super().__init__(peers, snapshots)
        self._backend = backend
        self._peers = peers

    def _copy(
        self,
        share_replica: base.ShareForDriver,
        active: LocalReplica | None,
        source: base.SnapshotForDriver | None,
        snapshot: base.SnapshotForDriver,
    ) -> bool:
        return self.ensure_snapshot(active, source, snapshot)

    def _place(self, snapshot: base.SnapshotForDriver) -> base.SnapshotReply:
        item = self._backend.store.snapshot(snapshot['name'])
        record = item.find()
        if record is None:  # deleted meanwhile
            raise exception.SnapshotResourceNotFound(snapshot_id=snapshot['id'])
        return {
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

    def _has_snapshot(self, replica: LocalReplica, name: str) -> bool:
        with raising_unreachable():
            return replica.store.snapshot(name).find() is not None

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
