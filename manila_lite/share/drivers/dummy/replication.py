"""Replicas of shares of the dummy back end, in all three styles.

What is written to a writable replica is written to all of them at once.
Of the others one is active; those that are not get its content and
snapshots when they are asked how they are. It does not answer for what
cannot be known: a promotion broken half-way leaves no replica active, and
is taken back, if not repeated, when a replica is next asked.
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


class DummyReplication(DummyManaging):
    _last_quiesce_wait: int | None = None

    # What tests look at

    @property
    def last_quiesce_wait(self) -> int | None:
        """How long clients were given at the last promotion."""
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
        self._replicating()
        with self._lock:
            relation = self._gathered(replica_list, new_replica)
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
                answers = self._change_access(
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
                told = _told_rules(answers)
            else:
                # Those of one that is there may have changed since.
                told = {}
            state = self._brought_up(new_replica, relation, replica_snapshots)
        return told | {
            'export_locations': share_exports(record),
            'replica_state': ACTIVE if self._is_complete(state) else state,
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
        self._replicating()
        with self._lock:
            record = self._state.shares.find(replica['id'])
            if record is not None:
                self._state.shares.put(
                    replica['id'], record | {'status': 'error'}
                )
            for number, snapshot in enumerate(replica_snapshots):
                if number == len(replica_snapshots) // 2:
                    self.faults.midway()
                self._forget_snapshot(snapshot)
            if not replica_snapshots:
                self.faults.midway()
            self._state.access.forget(replica['id'])
            self._state.shares.drop(replica['id'])
            self._leave(replica)

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
        domain, id = self._replicating(), replica['id']
        if self._style == WRITABLE:
            raise NotImplementedError
        self._last_quiesce_wait = quiesce_wait_time
        with self._lock:
            record = self._sound(replica)
            relation = self._gathered(replica_list, replica)
            if relation.active != id:
                if relation.active is not None:
                    # From now on nobody writes.
                    relation = relation._replace(
                        active=None, previous=relation.active
                    )
                    domain.put(replica['share_id'], relation)
                source = self._source_of(relation)
                if source is not None and not record.get('updates_left'):
                    record = with_replicated_fields(
                        record, self._found(source)
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
                relation = relation._replace(
                    active=id, previous=None, epoch=relation.epoch + 1
                )
                domain.put(replica['share_id'], relation)
            record = self._record(id)
            if record['epoch'] != relation.epoch:
                self._state.shares.put(id, record | {'epoch': relation.epoch})
        return [
            {
                'id': id,
                'replica_state': ACTIVE,
                'export_locations': share_exports(record),
            },
            *(
                base.ReplicaReply(id=one['id'], replica_state=OUT_OF_SYNC)
                for one in replica_list
                if one['id'] != id
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
        self._replicating()
        with self._lock:
            record = self._record(replica['id'])
            if record['status'] == 'error':
                return ERROR
            relation = self._gathered(replica_list, replica)
            if relation.active == replica['id']:
                return ERROR  # it is not what it is taken for
            if record.get('updates_left'):
                self._state.shares.put(
                    replica['id'],
                    record | {'updates_left': record['updates_left'] - 1},
                )
            state = self._brought_up(replica, relation, replica_snapshots)
        return ACTIVE if self._is_complete(state) else state

    @faults.instrumented
    def get_replica_status(
        self,
        replica: base.ShareForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.StatusReply:
        """As for a share; one that should be active and is not is broken."""
        self._replicating()
        with self._lock:
            self._catch_up(replica['id'])
            record = self._record(replica['id'])
            self._gathered([replica], replica)
            role = self._role(replica['id'], record)
        broken = replica['replica_state'] == ACTIVE and role != ACTIVE
        return {
            'status': 'error' if broken else record['status'],
            'size': record['size'],
            'share_proto': record['share_proto'],
            'export_locations': share_exports(record),
        }

    def _is_complete(self, state: str) -> bool:
        return self._style == WRITABLE and state == IN_SYNC

    def _brought_up(
        self,
        replica: base.ShareForDriver,
        relation: ReplicaSet,
        snapshots: list[base.ReplicaSnapshot],
    ) -> str:
        """Have a replica follow, if it can; what state it is in then."""
        record = self._record(replica['id'])
        source = self._source_of(relation)
        if record.get('updates_left') or source is None:
            return OUT_OF_SYNC
        home, _ = source
        new = with_replicated_fields(record, self._found(source))
        if new != record:
            self._state.shares.put(replica['id'], new)
        self.faults.midway()
        there = [
            self._copied_snapshot(
                home,
                pair['active_replica_snapshot'],
                pair['share_replica_snapshot'],
            )
            for pair in snapshots
        ]
        if not all(there):
            return OUT_OF_SYNC
        if new['epoch'] != relation.epoch:
            self._state.shares.put(
                replica['id'], new | {'epoch': relation.epoch}
            )
        return IN_SYNC

    def _sound(self, replica: base.ShareForDriver) -> records.Record:
        """The record of a replica that was not left half made."""
        record = self._record(replica['id'])
        if record['status'] != 'available':
            raise exception.ShareBackendException(
                msg=f'replica {replica["id"]} is broken'
            )
        return record

    # Their snapshots

    @faults.instrumented
    def create_replicated_snapshot(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica_snapshots: SnapshotList,
        share_server: base.ShareServerMapping | None = None,
    ) -> list[base.ReplicatedSnapshotReply]:
        self._replicating()
        with self._lock:
            first = self._on_active(replica_list, replica_snapshots)
            others = self._on_others(replica_list, replica_snapshots, first)
            record = self._taken(first)
            answers = [_available(first, record)]
            self.faults.midway()
            for one, home in others:
                if self._copied_snapshot(self._state, first, one, home):
                    answers.append(_available(one, _snapshot(home, one)))
        return answers

    def _taken(self, snapshot: base.SnapshotForDriver) -> records.Record:
        record = self._state.snapshots.find(snapshot['id'])
        if record is None or record['status'] == 'error':
            record = self._new_snapshot(snapshot) | {'status': 'available'}
            self._state.snapshots.put(snapshot['id'], record)
        return record

    def _copied_snapshot(
        self,
        source: DummyState,
        from_: base.SnapshotForDriver,
        to: base.SnapshotForDriver,
        target: DummyState | None = None,
    ) -> bool:
        """Whether a replica has a snapshot, which it is given if it can be."""
        target = target or self._state
        there = target.snapshots.find(to['id'])
        if there is not None and there['status'] == 'available':
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
        self._replicating()
        with self._lock:
            first = self._on_active(replica_list, replica_snapshots)
            others = self._on_others(replica_list, replica_snapshots, first)
            for one, home in others:
                self._forget_snapshot(one, home)
            self.faults.midway()
            self._forget_snapshot(first)
        return [
            {'id': one['id'], 'status': 'deleted'}
            for one in (first, *(one for one, _ in others))
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
        self._replicating()
        with self._lock:
            if replica_snapshot['status'] in ('deleting', 'error_deleting'):
                self._snapshot_record(id)
                self._forget_snapshot(replica_snapshot)
                return {'id': id, 'status': 'deleted'}
            if self._state.shares.find(share_replica['id']) is None:
                raise exception.SnapshotResourceNotFound(snapshot_id=id)
            source = self._source_of(
                self._gathered(replica_list, share_replica)
            )
            leading = source and next(
                (
                    one
                    for one in replica_snapshots
                    if one['share_instance_id'] == source[1]
                ),
                None,
            )
            if source is None or leading is None or leading['id'] == id:
                return {'id': id, 'status': 'creating'}
            if not self._copied_snapshot(source[0], leading, replica_snapshot):
                raise exception.SnapshotResourceNotFound(snapshot_id=id)
            return _available(
                replica_snapshot, _snapshot(self._state, replica_snapshot)
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
        self._replicating()
        with self._lock:
            return self._revert(active_replica_snapshot)

    def _on_active(
        self, replica_list: ReplicaList, snapshots: SnapshotList
    ) -> base.SnapshotForDriver:
        """The instance on the active replica that is here."""
        active = {
            one['id']
            for one in replica_list
            if one['replica_state'] == ACTIVE
            and self._state.shares.find(one['id']) is not None
        }
        found = next(
            (one for one in snapshots if one['share_instance_id'] in active),
            None,
        )
        if found is None:
            raise exception.ShareBackendException(
                msg='the active replica is not on this back end'
            )
        self._current(found['share_instance_id'])
        return found

    def _on_others(
        self,
        replica_list: ReplicaList,
        snapshots: SnapshotList,
        first: base.SnapshotForDriver,
    ) -> list[tuple[base.SnapshotForDriver, DummyState]]:
        """The instances on writable replicas, which are had all at once.

        One out of reach would be left without, or with, the snapshot.
        """
        if self._style != WRITABLE:
            return []
        active = {
            one['id'] for one in replica_list if one['replica_state'] == ACTIVE
        }
        found = []
        for one in snapshots:
            home = self._replicating().find_state_of(one['share_instance_id'])
            if home is None and one['share_instance_id'] in active:
                raise exception.ShareBackendException(
                    msg=f'replica {one["share_instance_id"]} is out of reach'
                )
            if home is not None and one['id'] != first['id']:
                found.append((one, home))
        return found


def _told_rules(answers: base.AccessReplies) -> base.ReplicaReply:
    refused = any(
        answer.get('state') == 'error' for answer in answers.values()
    )
    return {
        'access_rules_status': 'error' if refused else 'active',
        'share_access_rules': answers,
    }


def _snapshot(
    home: DummyState, snapshot: base.SnapshotForDriver
) -> records.Record:
    record = home.snapshots.find(snapshot['id'])
    if record is None:
        raise exception.SnapshotResourceNotFound(snapshot_id=snapshot['id'])
    return record


def _available(
    snapshot: base.SnapshotForDriver, record: records.Record
) -> base.ReplicatedSnapshotReply:
    return {
        'id': snapshot['id'],
        'status': 'available',
        'provider_location': record['export'],
        'size': record['size'],
        'export_locations': snapshot_exports(record),
    }
