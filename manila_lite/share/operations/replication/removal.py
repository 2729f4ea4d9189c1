"""Accept the removal of one replica of a share that keeps others."""

from collections.abc import Sequence
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.quota.shares import remove_replica_and_credit
from manila_lite.rpc.contract import Client
from manila_lite.states.share_instance import SHARE_INSTANCE, InstanceStatus
from manila_lite.states.share_replica import LEAVING, ReplicaState


def remove(
    session: Session,
    ctx: RequestContext,
    replication: Client,
    instances: Sequence[typing.Any],
    replica: typing.Any,
    *,
    force: bool,
) -> None:
    """Remove a replica, first from its back end if it is on one.

    `instances` are all instances of the share, locked; `replica` is the one
    to remove. Raises ReplicationException if it cannot be removed.
    """
    refuse_last_active(instances, replica)
    for row in instances:
        # A replica under promotion may become the active one any moment.
        if row.status == InstanceStatus.REPLICATION_CHANGE and not (
            force and row.id != replica.id
        ):
            raise exception.ReplicationException(
                reason=f'replica {row.id} is being promoted'
            )
    try:
        fire(session, SHARE_INSTANCE, replica.id, 'force_delete' if force else 'delete')
    except exception.InvalidStatus as error:
        raise exception.ReplicationException(
            reason=f'replica {replica.id} must be available or in error, not '
            f'{replica.status}'
        ) from error
    if replica.host is None:
        remove_replica_and_credit(session, share_instances.get(session, replica.id))
        return
    replication.on(replica.host).delete_share_replica(
        session, ctx, instance_id=replica.id, force=force
    )


def refuse_last_active(instances: Sequence[typing.Any], replica: typing.Any) -> None:
    """Raise if the share would be left without an active replica."""
    if is_last_active(instances, replica):
        raise exception.ReplicationException(
            reason=f'replica {replica.id} is the last active replica of share '
            f'{replica.share_id}'
        )


def is_last_active(instances: Sequence[typing.Any], replica: typing.Any) -> bool:
    """Return whether no other replica that stays is active."""
    return replica.replica_state == ReplicaState.ACTIVE and not any(
        row.replica_state == ReplicaState.ACTIVE and row.status not in LEAVING
        for row in instances
        if row.id != replica.id
    )
