"""Rescue of share instances, their transfers, migrations and backups.

Where the work of a transfer was lost, nothing has changed hands, so the share
is offered again.

The work of every step of a migration is idempotent and runs on the service of
the source. A step without work is submitted again. Where that leads nowhere,
the migration ends without another call of a driver.

Work on a backup is done once more, by a data service or by the back end that
has the backup.
"""

import dataclasses
import typing

from manila_lite import messages
from manila_lite.db.moves import shares as share_moves
from manila_lite.db.moves.snapshots import release_share
from manila_lite.db.queries import share_backups
from manila_lite.db.queries.access import share_rules
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.services import pools
from manila_lite.db.queries.shares import (
    instances as share_instances,
    migrations,
    transfers,
)
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.rows import (
    AcceptedTransferRow,
    InstanceRow,
    ShareBackupRow,
    ShareTaskRow,
)
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire, fire_matching
from manila_lite.messages import Action
from manila_lite.quota.shares import lock_instances, resize
from manila_lite.rpc.data import BackupsRpc
from manila_lite.rpc.share import TOPIC, AccessRpc, DriverBackupsRpc, ReplicaUpdatesRpc
from manila_lite.share.drivers.base import normalise_export_locations
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.driver_view.share_view import LoadedInstance
from manila_lite.share.manager.endpoint import owner_context
from manila_lite.share.manager.migrations.endpoint import ShareMigrationsEndpoint
from manila_lite.share.manager.recovery import base
from manila_lite.share.manager.recovery.base import Ending, RescueCase, ResourceRecovery
from manila_lite.share.manager.recovery.rule_sets import resync_of_failed
from manila_lite.share.manager.replication.replicas import (
    ReplicasEndpoint,
    ReportedReplica,
)
from manila_lite.share.manager.shares.provisioning import (
    PROGRESS_DONE,
    ProvisioningEndpoint,
)
from manila_lite.share.manager.shares.transfers import withdraw_acceptance
from manila_lite.states.machine import Ask, Repeat, Rescue
from manila_lite.states.share_backup import SHARE_BACKUP, BackupStatus
from manila_lite.states.share_instance import (
    HIDDEN_FROM_TENANTS,
    SHARE_INSTANCE,
    InstanceStatus,
)
from manila_lite.states.share_replica import PASSIVE, ReplicaState
from manila_lite.states.share_task import SHARE_TASK, ShareTask
from manila_lite.states.share_transfer import SHARE_TRANSFER
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE, SnapshotStatus
from manila_lite.work.table import Claim

_ACTIONS = {
    InstanceStatus.CREATING: Action.CREATE,
    InstanceStatus.CREATING_FROM_SNAPSHOT: Action.CREATE,
    InstanceStatus.EXTENDING: Action.EXTEND,
    InstanceStatus.SHRINKING: Action.SHRINK,
    InstanceStatus.DELETING: Action.DELETE,
    InstanceStatus.REVERTING: Action.REVERT_TO_SNAPSHOT,
    InstanceStatus.REPLICATION_CHANGE: Action.PROMOTE,
}
_CREATING = (InstanceStatus.CREATING, InstanceStatus.CREATING_FROM_SNAPSHOT)
_DELETE_REPLICA = 'replication.delete_share_replica'
_PASSIVE_REPLICA_RESCUES: dict[str, Rescue] = {
    InstanceStatus.CREATING: Ask('get_replica_status', 'created', 'create_failed'),
    InstanceStatus.DELETING: Repeat(_DELETE_REPLICA, 'deleted', 'delete_failed'),
}
"""Rescues of passive replicas where they differ from other instances."""


REVERT_ADVICE = (
    'the share may have the content of the snapshot in part: revert to the '
    'same snapshot again, or check the share and reset the status of both'
)

InstanceCase = base.RescueCase[InstanceRow, LoadedInstance]


@dataclasses.dataclass(eq=False)
class ShareInstanceRecovery(base.ProbedRecovery[InstanceRow, LoadedInstance]):
    machine = SHARE_INSTANCE
    work_kinds = (
        'replica_updates.update_share_replica',
        'replica_roles.reassert_active_replica',
    )

    provisioning: ProvisioningEndpoint
    replication: ReplicasEndpoint

    def find(self, session: Session, id: str) -> InstanceCase | None:
        if share_instances.find(session, id) is None:
            return None
        loaded = share_view.load_instance(session, id)
        return base.RescueCase(loaded.row, loaded)

    def rescue_of(self, case: InstanceCase) -> Rescue | None:
        if case.row.replica_state in PASSIVE:
            rescue = _PASSIVE_REPLICA_RESCUES.get(case.row.status)
            if rescue is not None:
                return rescue
        return super().rescue_of(case)

    def recheck(self, session: Session, case: InstanceCase, id: str) -> None:
        """Submit updates of all replicas, too: roles may have changed."""
        super().recheck(session, case, id)
        if case.row.replica_state is None:
            return
        updates = self.work_clients[ReplicaUpdatesRpc.name]
        for row in replicas.list_placed(session, case.row.share_id):
            updates.on(row.host).update_share_replica(
                session, owner_context(case.row), share_replica_id=row.id
            )

    def resubmit(self, session: Session, case: InstanceCase, kind: str) -> None:
        """Resubmit; an active replica among others is deleted as a replica."""
        row = case.row
        if (
            row.status == InstanceStatus.DELETING
            and row.replica_state is not None
            and replicas.count(session, row.share_id) > 1
        ):
            kind = _DELETE_REPLICA
        super().resubmit(session, case, kind)

    def driver_call(self, case: InstanceCase, name: str) -> base.DriverCall:
        return (
            getattr(self.provisioning.driver, name),
            share_view.share_for_driver(case.loaded, self.provisioning.name_template),
            case.loaded.share_server,
        )

    def interpret(self, case: InstanceCase, reply: typing.Any) -> base.Verdict:
        """Return size and exports if the reply is consistent with the row."""
        row = case.row
        try:
            status, size = reply['status'], reply.get('size')
            proto = reply.get('share_proto', row.share_proto)
            exports = normalise_export_locations(reply.get('export_locations'))
        except (TypeError, KeyError, AttributeError) as error:
            return base.Verdict(reason=f'the reply of the driver is invalid: {error!r}')
        if status in _CREATING and (
            InstanceStatus.CREATING_FROM_SNAPSHOT in (status, row.status)
            and row.status in _CREATING
        ):
            return base.Verdict(retry_after=self.provisioning.copy_interval)
        if status != InstanceStatus.AVAILABLE:
            return base.Verdict(reason=f'the back end reports status {status}')
        if proto != row.share_proto:
            return base.Verdict(reason=f'the back end reports protocol {proto}')
        if row.status in _CREATING and size not in (None, row.size):
            return base.Verdict(reason=f'the back end reports a size of {size} GiB')
        if _is_new_replica(row):
            return base.Verdict(ReportedReplica(reply.get('replica_state'), exports))
        if row.status not in _CREATING and not isinstance(size, int):
            return base.Verdict(reason='the back end does not report its size')
        return base.Verdict((size, exports))

    def converge(self, session: Session, case: InstanceCase, end: base.Ending) -> None:
        if _is_new_replica(case.row):
            self.replication.created(session, end.job, case.row, end.facts)
            return
        size, exports = end.facts
        if case.row.status in _CREATING:
            fire(
                session, SHARE_INSTANCE, case.row.id, end.event, progress=PROGRESS_DONE
            )
            share_instances.replace_export_locations(session, case.row.id, exports)
        else:
            self._resize(session, case.row, size, end.event)
            if end.job.args.get('new_size', size) != size:
                # At rest and healthy, but not of the requested size.
                said = (
                    f'{end.job.args["new_size"]} GiB were requested, and the '
                    f'back end has {size} GiB'
                )
                end = end._replace(explanation=said)
                self.notify(session, end, _ACTIONS[case.row.status])

    def give_up(self, session: Session, case: InstanceCase, end: base.Ending) -> None:
        row = case.row
        if row.status == InstanceStatus.SNAPSHOTTING:
            release_share(session, row.id)
            return
        if row.status == InstanceStatus.REPLICATION_CHANGE:
            self.replication.promotion.record_loss(session, row)
        else:
            self._give_up(session, row, end)
        if (
            SHARE_INSTANCE[end.event].target != InstanceStatus.AVAILABLE
            and row.status not in HIDDEN_FROM_TENANTS
        ):
            self.notify(session, end, _ACTIONS.get(row.status, Action.UPDATE))

    def _give_up(self, session: Session, row: InstanceRow, end: base.Ending) -> None:
        fire(session, SHARE_INSTANCE, row.id, end.event)
        if row.status == InstanceStatus.REVERTING:
            self._mark_restore_lost(session, row.id, end)
        if _is_new_replica(row):
            share_moves.mark_failed(session, row.id)

    def _mark_restore_lost(
        self, session: Session, instance_id: str, end: base.Ending
    ) -> None:
        """Fail the snapshot of a lost revert, and notify its user too."""
        for one in snapshots.list_on_share_instance(session, instance_id):
            if one.status == SnapshotStatus.RESTORING and fire_matching(
                session, SNAPSHOT_INSTANCE, 'restore_lost', {'id': one.id}
            ):
                messages.record(
                    session,
                    one.project_id,
                    Action.REVERT_TO_SNAPSHOT,
                    ('SHARE_SNAPSHOT', one.snapshot_id),
                    self.message_ttl,
                    request_id=end.job.request_id,
                    explanation=end.explanation,
                )

    def reason_of_loss(self, case: InstanceCase) -> str:
        reason = super().reason_of_loss(case)
        if case.row.status == InstanceStatus.REVERTING:
            return f'{reason}; {REVERT_ADVICE}'
        return reason

    def release_reservations(self, session: Session, job: Claim) -> None:
        """Release what lost work had reserved: quota and pool capacity."""
        super().release_reservations(session, job)
        if 'growth' in job.args:
            pools.adjust_allocated(session, job.args['host'], -job.args['growth'])

    # A slow holder may have resized a share that was given up

    def is_comparable(self, case: InstanceCase) -> bool:
        return (
            case.row.status == InstanceStatus.AVAILABLE
            and case.row.replica_state not in PASSIVE
        )

    def store_differences(
        self, session: Session, case: InstanceCase, facts: typing.Any
    ) -> bool:
        size, _ = facts
        if case.row.replica_state == ReplicaState.ACTIVE:
            # Its role may differ as well. As in requests, the work is locked
            # before the replicas.
            self.work_clients[ReplicaUpdatesRpc.name].on(
                case.row.host
            ).update_share_replica(
                session, owner_context(case.row), share_replica_id=case.row.id
            )
        if size == case.row.size:
            return False
        self._resize(session, case.row, size, 'ensure', 'ensured')
        return True

    def _resize(
        self, session: Session, row: InstanceRow, size: int, *events: str
    ) -> None:
        """Fire the events and set the size found on the back end."""
        instances = lock_instances(session, row)
        for event in events:
            fire(session, SHARE_INSTANCE, row.id, event)
        resize(session, row, size, instances)


def _is_new_replica(row: InstanceRow) -> bool:
    return row.status in _CREATING and row.replica_state in PASSIVE


TransferCase = base.RescueCase[AcceptedTransferRow, None]


@dataclasses.dataclass(eq=False)
class ShareTransferRecovery(base.ResourceRecovery[AcceptedTransferRow, None]):
    machine = SHARE_TRANSFER

    def find(self, session: Session, id: str) -> TransferCase | None:
        row = transfers.find_accepted(session, id)
        return None if row is None else base.RescueCase(row, None)

    def give_up(self, session: Session, case: TransferCase, end: base.Ending) -> None:
        row = case.row
        if withdraw_acceptance(session, row.id) and row.project_id:
            messages.record(
                session,
                row.project_id,
                Action.TRANSFER_ACCEPT,
                ('SHARE', row.share_id),
                self.message_ttl,
                request_id=end.job.request_id,
                explanation=end.explanation,
            )


TaskCase = base.RescueCase[ShareTaskRow, None]


@dataclasses.dataclass(eq=False)
class ShareTaskRecovery(base.ResourceRecovery[ShareTaskRow, None]):
    machine = SHARE_TASK
    end_of_resumes = 'failed'

    migrations: ShareMigrationsEndpoint

    def find(self, session: Session, id: str) -> TaskCase | None:
        row = migrations.find_task(session, id)
        return None if row is None else base.RescueCase(row, None)

    def status_of(self, case: TaskCase) -> str:
        return case.row.task_state or ShareTask.NONE

    def recheck(self, session: Session, case: TaskCase, id: str) -> None:
        super().recheck(session, case, id)
        resync_of_failed(
            session,
            self.work_clients[AccessRpc.name],
            [row.id for row in share_rules.list_instance_hosts(session, id)],
        )

    def give_up(self, session: Session, case: TaskCase, end: base.Ending) -> None:
        self.migrations.end_lost(
            session, case.row.id, session.reason or 'its work was lost'
        )
        self.notify(session, end, Action.UPDATE)


_BACKUP_ACTIONS = {
    BackupStatus.CREATING: Action.CREATE,
    BackupStatus.RESTORING: Action.RESTORE_BACKUP,
    BackupStatus.DELETING: Action.DELETE,
}


@dataclasses.dataclass(eq=False)
class ShareBackupRecovery(ResourceRecovery[ShareBackupRow, None]):
    machine = SHARE_BACKUP

    def find(
        self, session: Session, id: str
    ) -> RescueCase[ShareBackupRow, None] | None:
        row = share_backups.find_for_rescue(session, id)
        return None if row is None else RescueCase(row, None)

    def resubmit(
        self, session: Session, case: RescueCase[ShareBackupRow, None], kind: str
    ) -> None:
        # The case has the host of the share, which may have moved since.
        row = share_backups.get(session, case.row.id)
        work = self.work_clients[BackupsRpc.name]
        if row.topic == TOPIC:
            work = self.work_clients[DriverBackupsRpc.name].on(row.host or '')
        method = kind.removeprefix(f'{BackupsRpc.name}.')
        getattr(work, method)(session, owner_context(row), share_backup_id=row.id)

    def give_up(
        self, session: Session, case: RescueCase[ShareBackupRow, None], end: Ending
    ) -> None:
        # The share is released by its own rescue.
        fire(session, SHARE_BACKUP, case.row.id, end.event)
        self.notify(session, end, _BACKUP_ACTIONS[case.row.status])
