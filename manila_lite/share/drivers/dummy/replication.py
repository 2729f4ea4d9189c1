"""Replicas of shares of the dummy back end, of all three types.

A write to a writable replica changes all of them at once. With the other
types one replica is active; the others get its content and snapshots when
their state is updated. The driver does not guess: an interrupted promotion
leaves no replica active. If it is not repeated, it is undone when a replica
is next updated.
"""

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.share.drivers import base
from manila_lite.share.drivers import records
from manila_lite.share.drivers.dummy import faults
from manila_lite.share.drivers.dummy.domain_member import (
    with_replicated_fields,
)
from manila_lite.share.drivers.dummy.managing import DummyManaging
from manila_lite.share.drivers.dummy.managing import share_exports
from manila_lite.share.drivers.dummy.replication_domain import ACTIVE
from manila_lite.share.drivers.dummy.replication_domain import WRITABLE
from manila_lite.share.drivers.dummy.replication_domain import ReplicaSet
from manila_lite.share.drivers.dummy.snapshots import snapshot_exports
from manila_lite.share.drivers.dummy.state import DummyState

IN_SYNC, OUT_OF_SYNC, ERROR = 'in_sync', 'out_of_sync', 'error'

ReplicaList = list[base.ShareForDriver]
SnapshotList = list[base.SnapshotForDriver]


class DummyReplication(DummyManaging, base.ReplicationSupport):
    _last_quiesce_wait: int | None = None

    # Inspection by tests

    @property
    def last_quiesce_wait(self) -> int | None:
        """Return the quiesce wait time of the last promotion."""
        return self._last_quiesce_wait

    # Replicas

    @faults.instrumented
    def create_replica(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        new_replica: base.ShareForDriver,
        access_rules: base.AccessRules,
        replica_snapshots: list[base.ReplicaSnapshot],
        share_server: base.ShareServerMapping | None = None,
    ) -> base.ReplicaReply:
        id = new_replica['id']
        self._require_domain()
        with self._lock:
            replica_set = self._join_replica_set(replica_list, new_replica)
            record = self._state.shares.find(id)
            if record is None or record['status'] == 'error':
                record = self._new_record(new_replica, share_server) | {
                    'replica_of': new_replica['share_id'],
                    'version': 0,
                    'epoch': None,
                    'updates_left': (
                        self.configuration.dummy_driver_replica_steps
                    ),
                }
                self._state.shares.put(id, record)
                self.faults.midway()
                replies = self._change_access(
                    'create_replica',
                    self._state.access,
                    id,
                    access_rules,
                    add=[],
                    delete=[],
                    update=[],
                )
                record |= {'status': 'available'}
                self._state.shares.put(id, record)
                access_reply = _access_rules_reply(replies)
            else:
                # The rules of an existing replica may have changed.
                access_reply = {}
            state = self._update_replica(
                new_replica, replica_set, replica_snapshots
            )
        return access_reply | {
            'export_locations': share_exports(record),
            'replica_state': ACTIVE if self._is_active_state(state) else state,
        }

    @faults.instrumented
    def delete_replica(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica_snapshots: SnapshotList,
        replica: base.ShareForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> None:
        self._require_domain()
        with self._lock:
            record = self._state.shares.find(replica['id'])
            if record is not None:
                self._state.shares.put(
                    replica['id'], record | {'status': 'error'}
                )
            for number, snapshot in enumerate(replica_snapshots):
                if number == len(replica_snapshots) // 2:
                    self.faults.midway()
                self._remove_snapshot(snapshot)
            if not replica_snapshots:
                self.faults.midway()
            self._state.access.remove(replica['id'])
            self._state.shares.drop(replica['id'])
            self._leave_domain(replica)

    @faults.instrumented
    def promote_replica(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica: base.ShareForDriver,
        access_rules: base.AccessRules,
        share_server: base.ShareServerMapping | None = None,
        quiesce_wait_time: int | None = None,
    ) -> list[base.ReplicaReply]:
        domain, id = self._require_domain(), replica['id']
        if self._replication_type == WRITABLE:
            raise NotImplementedError
        self._last_quiesce_wait = quiesce_wait_time
        with self._lock:
            record = self._usable_record(replica)
            replica_set = self._join_replica_set(replica_list, replica)
            if replica_set.active != id:
                if replica_set.active is not None:
                    # From now on no replica is writable.
                    replica_set = replica_set._replace(
                        active=None, previous=replica_set.active
                    )
                    domain.put(replica['share_id'], replica_set)
                source = self._source_of(replica_set)
                if source is not None and not record.get('updates_left'):
                    record = with_replicated_fields(
                        record, self._source_record(source)
                    )
                self._state.shares.put(id, record | {'updates_left': 0})
                self._change_access(
                    'promote_replica',
                    self._state.access,
                    id,
                    access_rules,
                    add=[],
                    delete=[],
                    update=[],
                )
                self.faults.midway()
                replica_set = replica_set._replace(
                    active=id, previous=None, epoch=replica_set.epoch + 1
                )
                domain.put(replica['share_id'], replica_set)
            record = self._record(id)
            if record['epoch'] != replica_set.epoch:
                self._state.shares.put(
                    id, record | {'epoch': replica_set.epoch}
                )
        return [
            {
                'id': id,
                'replica_state': ACTIVE,
                'export_locations': share_exports(record),
            },
            *(
                base.ReplicaReply(id=each['id'], replica_state=OUT_OF_SYNC)
                for each in replica_list
                if each['id'] != id
            ),
        ]

    @faults.instrumented
    def update_replica_state(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica: base.ShareForDriver,
        access_rules: base.AccessRules,
        replica_snapshots: list[base.ReplicaSnapshot],
        share_server: base.ShareServerMapping | None = None,
    ) -> str:
        self._require_domain()
        with self._lock:
            record = self._record(replica['id'])
            if record['status'] == 'error':
                return ERROR
            replica_set = self._join_replica_set(replica_list, replica)
            if replica_set.active == replica['id']:
                return ERROR  # a passive replica was expected
            if record.get('updates_left'):
                self._state.shares.put(
                    replica['id'],
                    record | {'updates_left': record['updates_left'] - 1},
                )
            state = self._update_replica(
                replica, replica_set, replica_snapshots
            )
        return ACTIVE if self._is_active_state(state) else state

    @faults.instrumented
    def get_replica_status(
        self,
        replica: base.ShareForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.StatusReply:
        """Return the status; error if it should be active but is not."""
        self._require_domain()
        with self._lock:
            self._catch_up(replica['id'])
            record = self._record(replica['id'])
            self._join_replica_set([replica], replica)
            role = self._role(replica['id'], record)
        broken = replica['replica_state'] == ACTIVE and role != ACTIVE
        return {
            'status': 'error' if broken else record['status'],
            'size': record['size'],
            'share_proto': record['share_proto'],
            'export_locations': share_exports(record),
        }

    def _is_active_state(self, state: str) -> bool:
        return self._replication_type == WRITABLE and state == IN_SYNC

    def _update_replica(
        self,
        replica: base.ShareForDriver,
        replica_set: ReplicaSet,
        snapshots: list[base.ReplicaSnapshot],
    ) -> str:
        """Update a replica if possible; return its new state."""
        record = self._record(replica['id'])
        source = self._source_of(replica_set)
        if record.get('updates_left') or source is None:
            return OUT_OF_SYNC
        backend, _ = source
        new = with_replicated_fields(record, self._source_record(source))
        if new != record:
            self._state.shares.put(replica['id'], new)
        self.faults.midway()
        copied = [
            self._copy_snapshot(
                backend,
                pair['active_replica_snapshot'],
                pair['share_replica_snapshot'],
            )
            for pair in snapshots
        ]
        if not all(copied):
            return OUT_OF_SYNC
        if new['epoch'] != replica_set.epoch:
            self._state.shares.put(
                replica['id'], new | {'epoch': replica_set.epoch}
            )
        return IN_SYNC

    def _usable_record(self, replica: base.ShareForDriver) -> records.Record:
        """Return the record of a replica that was created completely."""
        record = self._record(replica['id'])
        if record['status'] != 'available':
            raise exception.ShareBackendException(
                msg=f'replica {replica["id"]} is broken'
            )
        return record

    # Snapshots

    @faults.instrumented
    def create_replicated_snapshot(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica_snapshots: SnapshotList,
        share_server: base.ShareServerMapping | None = None,
    ) -> list[base.ReplicatedSnapshotReply]:
        self._require_domain()
        with self._lock:
            active_snapshot = self._instance_on_active(
                replica_list, replica_snapshots
            )
            others = self._instances_on_others(
                replica_list, replica_snapshots, active_snapshot
            )
            record = self._snapshot_active(active_snapshot)
            replies = [_available_reply(active_snapshot, record)]
            self.faults.midway()
            for each, backend in others:
                if self._copy_snapshot(
                    self._state, active_snapshot, each, backend
                ):
                    replies.append(
                        _available_reply(
                            each, _get_snapshot_record(backend, each)
                        )
                    )
        return replies

    def _snapshot_active(
        self, snapshot: base.SnapshotForDriver
    ) -> records.Record:
        record = self._state.snapshots.find(snapshot['id'])
        if record is None or record['status'] == 'error':
            record = self._new_snapshot(snapshot) | {'status': 'available'}
            self._state.snapshots.put(snapshot['id'], record)
        return record

    def _copy_snapshot(
        self,
        source: DummyState,
        from_: base.SnapshotForDriver,
        to: base.SnapshotForDriver,
        target: DummyState | None = None,
    ) -> bool:
        """Return whether a replica has a snapshot; copy it if possible."""
        target = target or self._state
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

    @faults.instrumented
    def delete_replicated_snapshot(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica_snapshots: SnapshotList,
        share_server: base.ShareServerMapping | None = None,
    ) -> list[base.ReplicatedSnapshotReply]:
        self._require_domain()
        with self._lock:
            active_snapshot = self._instance_on_active(
                replica_list, replica_snapshots
            )
            others = self._instances_on_others(
                replica_list, replica_snapshots, active_snapshot
            )
            for each, backend in others:
                self._remove_snapshot(each, backend)
            self.faults.midway()
            self._remove_snapshot(active_snapshot)
        return [
            {'id': each['id'], 'status': 'deleted'}
            for each in (active_snapshot, *(each for each, _ in others))
        ]

    @faults.instrumented
    def update_replicated_snapshot(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        share_replica: base.ShareForDriver,
        replica_snapshots: SnapshotList,
        replica_snapshot: base.SnapshotForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.ReplicatedSnapshotReply:
        id = replica_snapshot['id']
        self._require_domain()
        with self._lock:
            if replica_snapshot['status'] in ('deleting', 'error_deleting'):
                self._snapshot_record(id)
                self._remove_snapshot(replica_snapshot)
                return {'id': id, 'status': 'deleted'}
            if self._state.shares.find(share_replica['id']) is None:
                raise exception.SnapshotResourceNotFound(snapshot_id=id)
            source = self._source_of(
                self._join_replica_set(replica_list, share_replica)
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
            if not self._copy_snapshot(source[0], leading, replica_snapshot):
                raise exception.SnapshotResourceNotFound(snapshot_id=id)
            return _available_reply(
                replica_snapshot,
                _get_snapshot_record(self._state, replica_snapshot),
            )

    @faults.instrumented
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
    ) -> int:
        self._require_domain()
        with self._lock:
            return self._revert(active_replica_snapshot)

    def _instance_on_active(
        self, replica_list: ReplicaList, snapshots: SnapshotList
    ) -> base.SnapshotForDriver:
        """Return the instance on the active replica, which is here."""
        active = {
            each['id']
            for each in replica_list
            if each['replica_state'] == ACTIVE
            and self._state.shares.find(each['id']) is not None
        }
        found = next(
            (
                each
                for each in snapshots
                if each['share_instance_id'] in active
            ),
            None,
        )
        if found is None:
            raise exception.ShareBackendException(
                msg='the active replica is not on this back end'
            )
        self._current_record(found['share_instance_id'])
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
        if self._replication_type != WRITABLE:
            return []
        active = {
            each['id']
            for each in replica_list
            if each['replica_state'] == ACTIVE
        }
        found = []
        for each in snapshots:
            backend = self._require_domain().find_state_of(
                each['share_instance_id']
            )
            if backend is None and each['share_instance_id'] in active:
                raise exception.ShareBackendException(
                    msg=f'replica {each["share_instance_id"]} is unreachable'
                )
            if backend is not None and each['id'] != active_snapshot['id']:
                found.append((each, backend))
        return found


def _access_rules_reply(replies: base.AccessReplies) -> base.ReplicaReply:
    refuses = any(reply.get('state') == 'error' for reply in replies.values())
    return {
        'access_rules_status': 'error' if refuses else 'active',
        'share_access_rules': replies,
    }


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
