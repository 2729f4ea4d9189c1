"""Replicas of shares of the dummy back end, of all three types.

A write to a writable replica changes all of them at once. With the other
types one replica is active; the others get its content and snapshots when
their state is updated. The driver does not guess: an interrupted promotion
leaves no replica active. If it is not repeated, it is undone when a replica
is next updated.
"""

import datetime

from manila_lite import exception
from manila_lite.share.drivers import base, records
from manila_lite.share.drivers.contract.access import RuleChanges
from manila_lite.share.drivers.dummy.access import DummyAccess
from manila_lite.share.drivers.dummy.backend import DummyBackend
from manila_lite.share.drivers.dummy.domain_member import (
    DomainMember,
    with_replicated_fields,
)
from manila_lite.share.drivers.dummy.replication_domain import (
    ACTIVE,
    WRITABLE,
    ReplicaSet,
)
from manila_lite.share.drivers.dummy.shares import DummyShares
from manila_lite.share.drivers.dummy.snapshots import DummySnapshots
from manila_lite.share.drivers.dummy.state import share_exports

IN_SYNC, OUT_OF_SYNC, ERROR = 'in_sync', 'out_of_sync', 'error'

ReplicaList = list[base.ShareForDriver]
SnapshotList = list[base.SnapshotForDriver]


class DummyReplication:
    def __init__(
        self,
        backend: DummyBackend,
        member: DomainMember,
        shares: DummyShares,
        snapshots: DummySnapshots,
        access: DummyAccess,
    ):
        self._backend, self._member, self._access = backend, member, access
        self._shares, self._snapshots = shares, snapshots
        self._last_quiesce_wait: int | None = None

    # Inspection by tests

    @property
    def last_quiesce_wait(self) -> int | None:
        """Return the quiesce wait time of the last promotion."""
        return self._last_quiesce_wait

    # Replicas

    def create_replica(
        self,
        replica_list: ReplicaList,
        new_replica: base.ShareForDriver,
        access_rules: base.AccessRules,
        replica_snapshots: list[base.ReplicaSnapshot],
        share_server: base.ShareServerMapping | None = None,
    ) -> base.ReplicaReply:
        id = new_replica['id']
        self._member.require_domain()
        with self._backend.lock:
            replica_set = self._member.join_replica_set(replica_list, new_replica)
            record = self._backend.state.shares.find(id)
            if record is None or record['status'] == 'error':
                record = self._shares.new_record(new_replica, share_server) | {
                    'replica_of': new_replica['share_id'],
                    'version': 0,
                    'epoch': None,
                    'updates_left': (self._backend.options.dummy_driver_replica_steps),
                }
                self._backend.state.shares.put(id, record)
                self._backend.faults.midway()
                replies = self._access.change(
                    'create_replica',
                    self._backend.state.access,
                    id,
                    RuleChanges(access_rules=access_rules),
                )
                record |= {'status': 'available'}
                self._backend.state.shares.put(id, record)
                access_reply = _access_rules_reply(replies)
            else:
                # The rules of an existing replica may have changed.
                access_reply = {}
            state = self._update_replica(new_replica, replica_set, replica_snapshots)
        return access_reply | {
            'export_locations': share_exports(record),
            'replica_state': ACTIVE if self._is_active_state(state) else state,
        }

    def delete_replica(
        self, replica_snapshots: SnapshotList, replica: base.ShareForDriver
    ) -> None:
        self._member.require_domain()
        with self._backend.lock:
            record = self._backend.state.shares.find(replica['id'])
            if record is not None:
                self._backend.state.shares.put(
                    replica['id'], record | {'status': 'error'}
                )
            for number, snapshot in enumerate(replica_snapshots):
                if number == len(replica_snapshots) // 2:
                    self._backend.faults.midway()
                self._snapshots.remove(snapshot)
            if not replica_snapshots:
                self._backend.faults.midway()
            self._backend.state.access.remove(replica['id'])
            self._backend.state.shares.drop(replica['id'])
            self._member.leave(replica)

    def promote_replica(
        self,
        replica_list: ReplicaList,
        replica: base.ShareForDriver,
        access_rules: base.AccessRules,
        quiesce_wait_time: int | None = None,
    ) -> list[base.ReplicaReply]:
        domain, id = self._member.require_domain(), replica['id']
        if self._member.replication_type == WRITABLE:
            raise NotImplementedError
        self._last_quiesce_wait = quiesce_wait_time
        with self._backend.lock:
            record = self._usable_record(replica)
            replica_set = self._member.join_replica_set(replica_list, replica)
            if replica_set.active != id:
                if replica_set.active is not None:
                    # From now on no replica is writable.
                    replica_set = replica_set._replace(
                        active=None, previous=replica_set.active
                    )
                    domain.put(replica['share_id'], replica_set)
                source = self._member.source_of(replica_set)
                if source is not None and not record.get('updates_left'):
                    record = with_replicated_fields(
                        record, self._member.source_record(source)
                    )
                self._backend.state.shares.put(id, record | {'updates_left': 0})
                self._access.change(
                    'promote_replica',
                    self._backend.state.access,
                    id,
                    RuleChanges(access_rules=access_rules),
                )
                self._backend.faults.midway()
                replica_set = replica_set._replace(
                    active=id, previous=None, epoch=replica_set.epoch + 1
                )
                domain.put(replica['share_id'], replica_set)
            record = self._backend.get_share(id)
            if record['epoch'] != replica_set.epoch:
                self._backend.state.shares.put(
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

    def update_replica_state(
        self,
        replica_list: ReplicaList,
        replica: base.ShareForDriver,
        replica_snapshots: list[base.ReplicaSnapshot],
    ) -> base.ReplicaStateReply:
        self._member.require_domain()
        began_at = datetime.datetime.now(datetime.UTC)
        with self._backend.lock:
            record = self._backend.get_share(replica['id'])
            if record['status'] == 'error':
                return {'replica_state': ERROR}
            replica_set = self._member.join_replica_set(replica_list, replica)
            if replica_set.active == replica['id']:
                # A passive replica was expected.
                return {'replica_state': ACTIVE}
            if record.get('updates_left'):
                self._backend.state.shares.put(
                    replica['id'], record | {'updates_left': record['updates_left'] - 1}
                )
            state = self._update_replica(replica, replica_set, replica_snapshots)
        if self._is_active_state(state):
            return {'replica_state': ACTIVE}
        if state == IN_SYNC:
            return {'replica_state': state, 'synced_at': began_at}
        return {'replica_state': state}

    def get_replica_status(self, replica: base.ShareForDriver) -> base.StatusReply:
        """Return status and role; error if it should be active but is not."""
        self._member.require_domain()
        with self._backend.lock:
            self._member.catch_up(replica['id'])
            record = self._backend.get_share(replica['id'])
            self._member.join_replica_set([replica], replica)
            role = self._member.role(replica['id'], record)
        broken = replica['replica_state'] == ACTIVE and role != ACTIVE
        return {
            'status': 'error' if broken else record['status'],
            'replica_state': ACTIVE if role == ACTIVE else OUT_OF_SYNC,
            'size': record['size'],
            'share_proto': record['share_proto'],
            'export_locations': share_exports(record),
        }

    def _is_active_state(self, state: str) -> bool:
        return self._member.replication_type == WRITABLE and state == IN_SYNC

    def _update_replica(
        self,
        replica: base.ShareForDriver,
        replica_set: ReplicaSet,
        snapshots: list[base.ReplicaSnapshot],
    ) -> str:
        """Update a replica if possible; return its new state."""
        record = self._backend.get_share(replica['id'])
        source = self._member.source_of(replica_set)
        if record.get('updates_left') or source is None:
            return OUT_OF_SYNC
        new = with_replicated_fields(record, self._member.source_record(source))
        if new != record:
            self._backend.state.shares.put(replica['id'], new)
        self._backend.faults.midway()
        copied = [self._copy_snapshot(pair) for pair in snapshots]
        if not all(copied):
            return OUT_OF_SYNC
        if new['epoch'] != replica_set.epoch:
            self._backend.state.shares.put(
                replica['id'], new | {'epoch': replica_set.epoch}
            )
        return IN_SYNC

    def _copy_snapshot(self, pair: base.ReplicaSnapshot) -> bool:
        """Return whether the replica has a snapshot; copy it if possible."""
        active = pair['active_replica_snapshot']
        source = self._member.require_domain().find_state_of(
            active['share_instance_id']
        )
        return source is not None and self._snapshots.copy(
            source, active, pair['share_replica_snapshot']
        )

    def _usable_record(self, replica: base.ShareForDriver) -> records.Record:
        """Return the record of a replica that was created completely."""
        record = self._backend.get_share(replica['id'])
        if record['status'] != 'available':
            raise exception.ShareBackendException(
                msg=f'replica {replica["id"]} is broken'
            )
        return record


def _access_rules_reply(replies: base.AccessReplies) -> base.ReplicaReply:
    refuses = any(reply.get('state') == 'error' for reply in replies.values())
    return {
        'access_rules_status': 'error' if refuses else 'active',
        'share_access_rules': replies,
    }
