"""Snapshots of the local driver."""

from manila_lite.share.drivers import base, trees
from manila_lite.share.drivers.local.backend import LocalBackend


class LocalSnapshots:
    """Copies of the directories of shares."""

    def __init__(self, backend: LocalBackend):
        self._backend = backend

    def create_snapshot(self, snapshot: base.SnapshotForDriver) -> base.SnapshotReply:
        item = self._backend.store.snapshot(snapshot['name'])
        with self._backend.store.locked_work_directory(item.name) as work:
            if item.find() is None:
                share, now = self._backend.get_share(snapshot['share_name'])
                trees.copy_tree(share.data_path(now), work / 'data')
                record = {
                    'size': now['size'],
                    'of': share.relative_data_path(now),
                    'share_proto': now['share_proto'],
                }
                item.publish(work, record)
        return self.reply(snapshot)

    def reply(self, snapshot: base.SnapshotForDriver) -> base.SnapshotReply:
        """Return where a snapshot is, and its size."""
        item, record = self._backend.get_snapshot(snapshot)
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
            **self.reply(snapshot),
            'status': 'available' if data.is_dir() else 'error',
            'share_proto': record['share_proto'],
            'provider_location': snapshot['provider_location'] or item.name,
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
