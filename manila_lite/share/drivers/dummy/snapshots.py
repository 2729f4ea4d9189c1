"""Snapshots of the dummy back end, and their use."""

from manila_lite.share.drivers import base, records
from manila_lite.share.drivers.dummy.backend import DummyBackend
from manila_lite.share.drivers.dummy.domain_member import DomainMember
from manila_lite.share.drivers.dummy.state import DummyState, snapshot_exports


class DummySnapshots:
    def __init__(self, backend: DummyBackend, member: DomainMember):
        self._backend = backend
        self._member = member
        self._revert_to_size: int | None = None

    def revert_to_size_next(self, size: int) -> None:
        """Make the next revert end with this size."""
        self._revert_to_size = size

    def create_snapshot(self, snapshot: base.SnapshotForDriver) -> base.SnapshotReply:
        with self._backend.lock:
            record = self._backend.state.snapshots.find(snapshot['id'])
            if record is None or record['status'] == 'error':
                record = self.new_record(snapshot)
                self._backend.state.snapshots.put(
                    snapshot['id'], record | {'status': 'error'}
                )
                self._backend.faults.midway()
                self._backend.state.snapshots.put(
                    snapshot['id'], record | {'status': 'available'}
                )
        return {
            'provider_location': record['export'],
            'size': record['size'],
            'export_locations': snapshot_exports(record),
        }

    def new_record(self, snapshot: base.SnapshotForDriver) -> records.Record:
        share = self._backend.get_share(snapshot['share_instance_id'])
        return {
            'size': share['size'],
            'share': share['export'],
            'share_proto': share['share_proto'],
            'content': share['content'],
            'used_gb': share['used_gb'],
            'export': snapshot['name'],
            'replica': snapshot['share_instance_id'],
        }

    def delete_snapshot(self, snapshot: base.SnapshotForDriver) -> None:
        with self._backend.lock:
            record = self._backend.state.snapshots.find(snapshot['id'])
            if record is not None:
                self._backend.state.snapshots.put(
                    snapshot['id'], record | {'status': 'error'}
                )
                self._backend.faults.midway()
            self.remove(snapshot)

    def remove(
        self, snapshot: base.SnapshotForDriver, backend: DummyState | None = None
    ) -> None:
        backend = backend or self._backend.state
        backend.snapshot_access.remove(snapshot['id'])
        backend.snapshots.drop(snapshot['id'])

    def get_snapshot_status(self, snapshot: base.SnapshotForDriver) -> base.StatusReply:
        record = self._backend.get_snapshot(snapshot['id'])
        return {
            'status': record['status'],
            'size': record['size'],
            'share_proto': record['share_proto'],
            'provider_location': record['export'],
            'export_locations': snapshot_exports(record),
        }

    def revert_to_snapshot(self, snapshot: base.SnapshotForDriver) -> int:
        with self._backend.lock:
            return self.revert(snapshot)

    def revert(self, snapshot: base.SnapshotForDriver) -> int:
        share_id = snapshot['share_instance_id']
        share = self._member.current_record(share_id)
        snapshot_record = self._backend.get_snapshot(snapshot['id'])
        size, self._revert_to_size = (
            self._revert_to_size or snapshot_record['size'],
            None,
        )
        share |= {
            'size': size,
            'content': snapshot_record['content'],
            'used_gb': snapshot_record['used_gb'],
            **self._member.next_version(share),
        }
        self._backend.state.shares.put(share_id, share | {'status': 'error'})
        self._backend.faults.midway()
        self._member.put_replicated(share_id, share | {'status': 'available'})
        return size

    def copy(
        self,
        source: DummyState,
        from_: base.SnapshotForDriver,
        to: base.SnapshotForDriver,
        target: DummyState | None = None,
    ) -> bool:
        """Return whether a replica has a snapshot; copy it if possible."""
        target = target or self._backend.state
        copied = target.snapshots.find(to['id'])
        if copied is not None and copied['status'] == 'available':
            return True
        found = source.snapshots.find(from_['id'])
        share = target.shares.find(to['share_instance_id'])
        if found is None or found['status'] != 'available' or share is None:
            return False
        where = {
            name: value
            for name, value in share.items()
            if name in ('addresses', 'admin_addresses')
        }
        target.snapshots.put(
            to['id'],
            found
            | {
                'share': share['export'],
                'export': to['name'],
                'replica': to['share_instance_id'],
            }
            | where,
        )
        return True
