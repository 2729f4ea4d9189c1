"""Accept the end of one replica of a share that keeps others."""

from collections.abc import Sequence
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.quota.replicas import remove_and_credit
from manila_lite.rpc.contract import Client
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.share_replica import ReplicaState


def remove(
    session: Session,
    ctx: RequestContext,
    replication: Client,
    taken: Sequence[typing.Any],
    own: typing.Any,
    *,
    force: bool,
) -> None:
    """Have a replica be removed, its back end first if it is on any.

    `taken` are all instances of its share, `own` is the one that goes.
    Raises ReplicationException where it has to stay.
    """
    refuse_last_active(taken, own)
    for row in taken:
        # What is being promoted may be the active one in a moment.
        if row.status == InstanceStatus.REPLICATION_CHANGE and not (
            force and row.id != own.id
        ):
            raise exception.ReplicationException(
                reason=f'replica {row.id} is being promoted'
            )
    try:
        fire(
            session,
            SHARE_INSTANCE,
            own.id,
            'force_delete' if force else 'delete',
            updated_at=session.now,
        )
    except exception.InvalidStatus as error:
        raise exception.ReplicationException(
            reason=f'replica {own.id} must be available or in error, not '
            f'{own.status}'
        ) from error
    if own.host is None:
        remove_and_credit(session, share_instances.get(session, own.id))
        return
    replication.on(own.host).delete_share_replica(
        session, ctx, instance_id=own.id, force=force
    )


def refuse_last_active(taken: Sequence[typing.Any], own: typing.Any) -> None:
    """Raise when there would be no active replica without it."""
    if is_last_active(taken, own):
        raise exception.ReplicationException(
            reason=f'replica {own.id} is the last active one of share '
            f'{own.share_id}'
        )


def is_last_active(taken: Sequence[typing.Any], own: typing.Any) -> bool:
    """Whether it is active, and no other is that stays."""
    return own.replica_state == ReplicaState.ACTIVE and not any(
        row.replica_state == ReplicaState.ACTIVE
        and row.status != InstanceStatus.DELETING
        for row in taken
        if row.id != own.id
    )
