"""Snapshots of the dummy back end, of replicated shares too, and their use."""

from manila_lite import exception
from manila_lite.share.drivers import base, records
from manila_lite.share.drivers.dummy.backend import DummyBackend
from manila_lite.share.drivers.dummy.domain_member import DomainMember
from manila_lite.share.drivers.dummy.replication_domain import ACTIVE, WRITABLE
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


ReplicaList = list[base.ShareForDriver]
SnapshotList = list[base.SnapshotForDriver]


class DummyReplicatedSnapshots:
    """A snapshot of writable replicas is created on all of them at once."""

    def __init__(
        self, backend: DummyBackend, member: DomainMember, snapshots: DummySnapshots
    ):
        self._backend, self._member, self._snapshots = backend, member, snapshots

    def create_replicated_snapshot(
        self, replica_list: ReplicaList, replica_snapshots: SnapshotList
    ) -> list[base.ReplicatedSnapshotReply]:
        self._member.require_domain()
        with self._backend.lock:
            active_snapshot, others = self._instances(replica_list, replica_snapshots)
            record = self._snapshot_active(active_snapshot)
            replies = [_available_reply(active_snapshot, record)]
            self._backend.faults.midway()
            for each, backend in others:
                if self._snapshots.copy(
                    self._backend.state, active_snapshot, each, backend
                ):
                    replies.append(
                        _available_reply(each, _get_snapshot_record(backend, each))
                    )
        return replies

    def _snapshot_active(self, snapshot: base.SnapshotForDriver) -> records.Record:
        record = self._backend.state.snapshots.find(snapshot['id'])
        if record is None or record['status'] == 'error':
            record = self._snapshots.new_record(snapshot) | {'status': 'available'}
            self._backend.state.snapshots.put(snapshot['id'], record)
        return record

    def delete_replicated_snapshot(
        self, replica_list: ReplicaList, replica_snapshots: SnapshotList
    ) -> list[base.ReplicatedSnapshotReply]:
        self._member.require_domain()
        with self._backend.lock:
            active_snapshot, others = self._instances(replica_list, replica_snapshots)
            for each, backend in others:
                self._snapshots.remove(each, backend)
            self._backend.faults.midway()
            self._snapshots.remove(active_snapshot)
        return [
            {'id': each['id'], 'status': 'deleted'}
            for each in (active_snapshot, *(each for each, _ in others))
        ]

    def update_replicated_snapshot(
        self,
        replica_list: ReplicaList,
        share_replica: base.ShareForDriver,
        replica_snapshots: SnapshotList,
        replica_snapshot: base.SnapshotForDriver,
    ) -> base.ReplicatedSnapshotReply:
        id = replica_snapshot['id']
        self._member.require_domain()
        with self._backend.lock:
            if replica_snapshot['status'] in ('deleting', 'error_deleting'):
                self._backend.get_snapshot(id)
                self._snapshots.remove(replica_snapshot)
                return {'id': id, 'status': 'deleted'}
            if self._backend.state.shares.find(share_replica['id']) is None:
                raise exception.SnapshotResourceNotFound(snapshot_id=id)
            source = self._member.source_of(
                self._member.join_replica_set(replica_list, share_replica),
                excluding=share_replica['id'],
            )
            leading = source and next(
                (
                    each
                    for each in replica_snapshots
                    if each['share_instance_id'] == source[1]
                ),
                None,
            )
            if source is None or leading is None or leading['id'] == id:
                return {'id': id, 'status': 'creating'}
            if not self._snapshots.copy(source[0], leading, replica_snapshot):
                raise exception.SnapshotResourceNotFound(snapshot_id=id)
            return _available_reply(
                replica_snapshot,
                _get_snapshot_record(self._backend.state, replica_snapshot),
            )

    def revert_to_replicated_snapshot(
        self, active_replica_snapshot: base.SnapshotForDriver
    ) -> int:
        self._member.require_domain()
        with self._backend.lock:
            return self._snapshots.revert(active_replica_snapshot)

    def _instances(
        self, replica_list: ReplicaList, snapshots: SnapshotList
    ) -> tuple[base.SnapshotForDriver, list[tuple[base.SnapshotForDriver, DummyState]]]:
        """Return the instance on the active replica, and the others."""
        active = self._instance_on_active(replica_list, snapshots)
        return active, self._instances_on_others(replica_list, snapshots, active)

    def _instance_on_active(
        self, replica_list: ReplicaList, snapshots: SnapshotList
    ) -> base.SnapshotForDriver:
        """Return the instance on the active replica, which is here."""
        active = {
            each['id']
            for each in replica_list
            if each['replica_state'] == ACTIVE
            and self._backend.state.shares.find(each['id']) is not None
        }
        found = next(
            (each for each in snapshots if each['share_instance_id'] in active), None
        )
        if found is None:
            raise exception.ShareBackendException(
                msg='the active replica is not on this back end'
            )
        self._member.current_record(found['share_instance_id'])
        return found

    def _instances_on_others(
        self,
        replica_list: ReplicaList,
        snapshots: SnapshotList,
        active_snapshot: base.SnapshotForDriver,
    ) -> list[tuple[base.SnapshotForDriver, DummyState]]:
        """Return the instances on the other writable replicas.

        All replicas are changed at once, so every active one must be
        reachable.
        """
        if self._member.replication_type != WRITABLE:
            return []
        active = {
            each['id'] for each in replica_list if each['replica_state'] == ACTIVE
        }
        found = []
        for each in snapshots:
            backend = self._member.require_domain().find_state_of(
                each['share_instance_id']
            )
            if backend is None and each['share_instance_id'] in active:
                raise exception.ShareBackendException(
                    msg=f'replica {each["share_instance_id"]} is unreachable'
                )
            if backend is not None and each['id'] != active_snapshot['id']:
                found.append((each, backend))
        return found


def _get_snapshot_record(
    backend: DummyState, snapshot: base.SnapshotForDriver
) -> records.Record:
    record = backend.snapshots.find(snapshot['id'])
    if record is None:
        raise exception.SnapshotResourceNotFound(snapshot_id=snapshot['id'])
    return record


def _available_reply(
    snapshot: base.SnapshotForDriver, record: records.Record
) -> base.ReplicatedSnapshotReply:
    return {
        'id': snapshot['id'],
        'status': 'available',
        'provider_location': record['export'],
        'size': record['size'],
        'export_locations': snapshot_exports(record),
    }
