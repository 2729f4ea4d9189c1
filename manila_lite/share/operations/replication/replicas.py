"""Accept requests about the replicas of a share.

What one replica may do depends on the others, so every request locks all
replicas of the share first and then decides.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db import rows
from manila_lite.db.moves import shares as share_moves
from manila_lite.db.moves.access_rules import mark_for_resync
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.session import Database, Session, transaction
from manila_lite.db.transitions import fire
from manila_lite.quota import charges
from manila_lite.quota.limits import DefaultLimits
from manila_lite.quota.shares import owner_of, replica_deltas
from manila_lite.rpc.contract import Client
from manila_lite.rpc.scheduler import PlacementRpc
from manila_lite.rpc.share import (
    AccessRpc,
    ReconciliationRpc,
    ReplicationRpc,
    ReplicaUpdatesRpc,
)
from manila_lite.share.operations.replication import creation, guards
from manila_lite.share.operations.reset_events import refuse_contradiction, reset_event
from manila_lite.share.operations.shares import placement
from manila_lite.share.operations.shares.migration_guards import refuse_reset
from manila_lite.states.share_instance import SHARE_INSTANCE, InstanceStatus
from manila_lite.states.share_replica import (
    LEAVING,
    SHARE_REPLICA,
    WRITABLE,
    ReplicaState,
)
from manila_lite.states.share_task import RUNNING
from manila_lite.work.admission import (
    AdmissionControl,
    admission_controlled,
    placement_controlled,
)


@dataclasses.dataclass(eq=False)
class Replicas:
    """Operations on replicas. Each method is one transaction.

    What the rules of replication forbid raises ReplicationException.
    """

    db: Database
    limits: DefaultLimits
    scheduler: Client[PlacementRpc]
    replication: Client[ReplicationRpc]
    updates: Client[ReplicaUpdatesRpc]
    access: Client[AccessRpc]
    recovery: Client[ReconciliationRpc]
    admission: AdmissionControl

    # Create

    @placement_controlled
    @transaction
    def create(
        self,
        session: Session,
        ctx: RequestContext,
        share: rows.ShareTarget,
        *,
        availability_zone: str | None = None,
        share_network_id: str | None = None,
        scheduler_hints: Mapping[str, str] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> str:
        """Accept another replica of a share and return its id."""
        if share.replication_type is None:
            raise _replication_error(
                f'share {share.id} cannot have replicas; its '
                'share type has no replication_type'
            )
        if share.share_group_id is not None:
            raise _replication_error(f'share {share.id} is in a share group')
        if share.task_state in RUNNING:
            raise _replication_error(f'share {share.id} is busy: {share.task_state}')
        instances = replicas.lock_instances(session, share.id)
        active = creation.get_source(session, instances, share.id)
        if active.is_soft_deleted:
            raise exception.ShareSoftDeleted(share_id=share.id)
        zone = creation.get_zone(session, availability_zone)
        network_id = share_network_id or active.share_network_id
        zones = creation.list_zones(session, active, zone, network_id)
        replica_id = session.new_id()
        creation.insert_rows(session, active, replica_id, zone, network_id)
        replicas.METADATA.insert(session, replica_id, metadata or {})
        charges.charge(
            session, owner_of(active), replica_deltas(active), limits=self.limits
        )
        self.scheduler.create_share_replica(
            session,
            ctx,
            instance_id=replica_id,
            zones=zones,
            hints=placement.parse_hints(session, ctx, scheduler_hints or {}),
        )
        return replica_id

    # Delete

    @transaction
    def delete(
        self, session: Session, ctx: RequestContext, replica: rows.ReplicaTarget
    ) -> None:
        """Request the deletion of a replica, except the last active one."""
        self._delete(session, ctx, replica, force=False)

    @transaction
    def force_delete(
        self, session: Session, ctx: RequestContext, replica: rows.ReplicaTarget
    ) -> None:
        """Request deletion from any status; driver errors are ignored."""
        self._delete(session, ctx, replica, force=True)

    def _delete(
        self,
        session: Session,
        ctx: RequestContext,
        replica: rows.ReplicaTarget,
        *,
        force: bool,
    ) -> None:
        instances = replicas.lock_instances(session, replica.share_id)
        found = _find_replica(instances, replica.id)
        guards.remove_replica(
            session, ctx, self.replication, instances, found, force=force
        )

    # Promote

    @admission_controlled
    @transaction
    def promote(
        self,
        session: Session,
        ctx: RequestContext,
        replica: rows.ReplicaTarget,
        *,
        quiesce_wait_time: int | None = None,
    ) -> bool:
        """Request the promotion of a replica; False if it is active."""
        instances = replicas.lock_instances(session, replica.share_id)
        locked = _find_replica(instances, replica.id)
        if locked.replica_state == ReplicaState.ACTIVE:
            return False
        if replica.replication_type == WRITABLE:
            raise _replication_error(
                'replicas cannot be promoted if the replication type is writable'
            )
        if locked.status != InstanceStatus.AVAILABLE:
            raise _replication_error(
                f'replica {locked.id} must be available, not {locked.status}'
            )
        guards.refuse_during_promotion(instances)
        for row in instances:
            if (
                row.replica_state == ReplicaState.ACTIVE
                and row.status in SHARE_INSTANCE.in_flight
            ):
                raise _replication_error(
                    f'the active replica {row.id} is busy: {row.status}'
                )
        if locked.replica_state != ReplicaState.IN_SYNC and not ctx.is_admin:
            raise exception.PromotionNeedsAdmin(
                replica_id=locked.id, replica_state=locked.replica_state
            )
        fire(session, SHARE_INSTANCE, locked.id, 'promote')
        replicas.advance_generation(session, locked.share_id)
        self.replication.on(locked.host).promote_share_replica(
            session, ctx, instance_id=locked.id, quiesce_wait_time=quiesce_wait_time
        )
        return True

    # Resync

    @admission_controlled
    @transaction
    def resync(
        self, session: Session, ctx: RequestContext, replica: rows.ReplicaTarget
    ) -> bool:
        """Request an update of a replica now; False if it is active."""
        if replica.replica_state == ReplicaState.ACTIVE:
            return False
        if replica.host is None:
            raise _replication_error(f'replica {replica.id} is not on a back end')
        self.updates.on(replica.host).update_share_replica(
            session, ctx, share_replica_id=replica.id
        )
        return True

    # Administration

    @transaction
    def reset_status(
        self,
        session: Session,
        ctx: RequestContext,
        replica: rows.ReplicaTarget,
        status: str,
    ) -> None:
        """Set the status by `reset_status`; raises InvalidInput."""
        event = reset_event(SHARE_INSTANCE, status)
        if status == InstanceStatus.DELETING:
            instances = replicas.lock_instances(session, replica.share_id)
            guards.refuse_last_active(instances, _find_replica(instances, replica.id))
        reset_status(session, ctx, self.recovery, replica.id, event)

    @transaction
    def reset_replica_state(
        self,
        session: Session,
        ctx: RequestContext,
        replica: rows.ReplicaTarget,
        replica_state: str,
    ) -> None:
        """Set `replica_state`; the active replica cannot be changed."""
        event = reset_event(SHARE_REPLICA, replica_state, field='replica_state')
        activates = replica_state == ReplicaState.ACTIVE
        if activates and replica.host:
            # Lock order: the work first, then the replicas.
            self.access.on(replica.host).sync_access(
                session, ctx, instance_id=replica.id
            )
        instances = replicas.lock_instances(session, replica.share_id)
        locked = _find_replica(instances, replica.id)
        if locked.replica_state == ReplicaState.ACTIVE:
            raise _replication_error(
                f'replica {locked.id} is active; promote another one instead'
            )
        guards.refuse_during_promotion(instances)
        if not activates:
            fire(session, SHARE_REPLICA, locked.id, event)
            return
        if replica.replication_type != WRITABLE and any(
            row.replica_state == ReplicaState.ACTIVE for row in instances
        ):
            raise _replication_error('another replica is active; promote this one')
        share_moves.activate(session, locked, replica.replication_type, event)
        replicas.advance_generation(session, locked.share_id)
        mark_for_resync(session, [locked.id])


def _find_replica(instances: Sequence[typing.Any], replica_id: str) -> typing.Any:
    """Return the row of a replica from the locked instances."""
    for row in instances:
        if row.id == replica_id and row.replica_state is not None:
            return row
    raise exception.ShareReplicaNotFound(replica_id=replica_id)


def _replication_error(reason: str) -> exception.ManilaLiteError:
    return exception.ReplicationException(reason=reason)


def reset_status(
    session: Session,
    ctx: RequestContext,
    recovery: Client,
    instance_id: str,
    event: str,
) -> None:
    """Fire a reset event of a share instance, unless it is migrated.

    An instance that becomes available is compared with its back end: work
    that was given up before may have changed its size.

    Snapshots that were taken while a replica was being deleted leave it out.
    If it stays after all, it gets them now and counts as out of sync until
    its back end has them.
    """
    found = share_instances.find(session, instance_id)
    target = SHARE_INSTANCE[event].target
    if target == InstanceStatus.AVAILABLE and found and found.host:
        # Lock order: the work first, then the replicas.
        recovery.on(found.host).rescue_share_instance(
            session, ctx, share_instance_id=instance_id
        )
    instances: Sequence[typing.Any] = ()
    if found is not None and found.replica_state is not None:
        instances = replicas.lock_instances(session, found.share_id)
    fire(session, SHARE_INSTANCE, instance_id, event)
    refuse_reset(session, instance_id)
    refuse_contradiction(session, SHARE_INSTANCE, instance_id, event)
    before = next((row for row in instances if row.id == instance_id), None)
    if (
        before is not None
        and before.host
        and before.status in LEAVING
        and target not in LEAVING
    ):
        _add_missing_snapshots(
            session, instances, share_instances.get(session, instance_id)
        )


def _add_missing_snapshots(
    session: Session, instances: Sequence[typing.Any], replica: rows.InstanceRow
) -> None:
    source = next(
        (
            row
            for row in instances
            if row.id != replica.id
            and row.replica_state == ReplicaState.ACTIVE
            and row.status not in LEAVING
        ),
        None,
    )
    if source is None or not creation.insert_missing_snapshots(
        session, source.id, replica.id
    ):
        return
    if replica.replica_state == ReplicaState.ACTIVE:
        share_moves.demote(session, replica, replica.replication_type)
    elif replica.replica_state == ReplicaState.IN_SYNC:
        fire(session, SHARE_REPLICA, replica.id, 'fell_behind')
    replicas.advance_generation(session, replica.share_id)
