"""Snapshots of the dummy back end, and their use."""

from manila_lite.context import RequestContext
from manila_lite.share.drivers import base
from manila_lite.share.drivers import records
from manila_lite.share.drivers.dummy import faults
from manila_lite.share.drivers.dummy.domain_member import DummyDomainMember
from manila_lite.share.drivers.dummy.instrumentation import export_locations
from manila_lite.share.drivers.dummy.state import DummyState


class DummySnapshots(
    DummyDomainMember, base.RevertSupport, base.MountSnapshotSupport
):
    _revert_to_size: int | None = None

    def revert_to_size_next(self, size: int) -> None:
        """Make the next revert end with this size."""
        self._revert_to_size = size

    @faults.instrumented
    def create_snapshot(
        self,
        context: RequestContext,
        snapshot: base.SnapshotForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.SnapshotReply:
        with self._lock:
            record = self._state.snapshots.find(snapshot['id'])
            if record is None or record['status'] == 'error':
                record = self._new_snapshot(snapshot)
                self._state.snapshots.put(
                    snapshot['id'], record | {'status': 'error'}
                )
                self.faults.midway()
                self._state.snapshots.put(
                    snapshot['id'], record | {'status': 'available'}
                )
        return {
            'provider_location': record['export'],
            'size': record['size'],
            'export_locations': snapshot_exports(record),
        }

    def _new_snapshot(
        self, snapshot: base.SnapshotForDriver
    ) -> records.Record:
        share = self._record(snapshot['share_instance_id'])
        return {
            'size': share['size'],
            'share': share['export'],
            'share_proto': share['share_proto'],
            'content': share['content'],
            'used_gb': share['used_gb'],
            'export': snapshot['name'],
            'replica': snapshot['share_instance_id'],
        }

    @faults.instrumented
    def delete_snapshot(
        self,
        context: RequestContext,
        snapshot: base.SnapshotForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> None:
        with self._lock:
            record = self._state.snapshots.find(snapshot['id'])
            if record is not None:
                self._state.snapshots.put(
                    snapshot['id'], record | {'status': 'error'}
                )
                self.faults.midway()
            self._remove_snapshot(snapshot)

    def _remove_snapshot(
        self,
        snapshot: base.SnapshotForDriver,
        backend: DummyState | None = None,
    ) -> None:
        backend = backend or self._state
        backend.snapshot_access.remove(snapshot['id'])
        backend.snapshots.drop(snapshot['id'])

    @faults.instrumented
    def get_snapshot_status(
        self,
        snapshot: base.SnapshotForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.StatusReply:
        record = self._snapshot_record(snapshot['id'])
        return {
            'status': record['status'],
            'size': record['size'],
            'share_proto': record['share_proto'],
            'provider_location': record['export'],
            'export_locations': snapshot_exports(record),
        }

    @faults.instrumented
    def revert_to_snapshot(
        self,
        context: RequestContext,
        snapshot: base.SnapshotForDriver,
        share_access_rules: list[base.AccessRuleForDriver],
        snapshot_access_rules: list[base.AccessRuleForDriver],
        share_server: base.ShareServerMapping | None = None,
    ) -> int:
        with self._lock:
            return self._revert(snapshot)

    def _revert(self, snapshot: base.SnapshotForDriver) -> int:
        share_id = snapshot['share_instance_id']
        share = self._current_record(share_id)
        snapshot_record = self._snapshot_record(snapshot['id'])
        size, self._revert_to_size = (
            self._revert_to_size or snapshot_record['size'],
            None,
        )
        share |= {
            'size': size,
            'content': snapshot_record['content'],
            'used_gb': snapshot_record['used_gb'],
            **self._next_version(share),
        }
        self._state.shares.put(share_id, share | {'status': 'error'})
        self.faults.midway()
        self._put_replicated(share_id, share | {'status': 'available'})
        return size

    @faults.instrumented
    def snapshot_update_access(
        self,
        context: RequestContext,
        snapshot: base.SnapshotForDriver,
        access_rules: list[base.AccessRuleForDriver],
        add_rules: list[base.AccessRuleForDriver],
        delete_rules: list[base.AccessRuleForDriver],
        share_server: base.ShareServerMapping | None = None,
    ) -> base.AccessReplies:
        with self._lock:
            if access_rules:
                self._snapshot_record(snapshot['id'])
            return self._change_access(
                'snapshot_update_access',
                self._state.snapshot_access,
                snapshot['id'],
                access_rules,
                add=add_rules,
                delete=delete_rules,
                update=[],
            )


def snapshot_exports(record: records.Record) -> list[base.ExportLocation]:
    """Return the export locations of a snapshot."""
    return export_locations(record, 'snapshots')
