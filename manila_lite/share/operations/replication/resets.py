"""Reset the status of a share instance, which may be a replica."""

from collections.abc import Sequence
import typing

from manila_lite.context import RequestContext
from manila_lite.db import rows
from manila_lite.db.moves import replicas as replica_moves
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.rpc.contract import Client
from manila_lite.share.operations.migration_guards import refuse_reset
from manila_lite.share.operations.replication import creation
from manila_lite.share.operations.reset_events import refuse_contradiction
from manila_lite.states.share_instance import SHARE_INSTANCE, InstanceStatus
from manila_lite.states.share_replica import LEAVING, SHARE_REPLICA, ReplicaState


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
    fire(session, SHARE_INSTANCE, instance_id, event, updated_at=session.now)
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
        replica_moves.retire(session, replica, replica.replication_type)
    elif replica.replica_state == ReplicaState.IN_SYNC:
        fire(session, SHARE_REPLICA, replica.id, 'fell_behind', updated_at=session.now)
    replicas.advance_generation(session, replica.share_id)
