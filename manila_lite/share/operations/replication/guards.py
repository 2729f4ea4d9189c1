"""Checks on the replicas of a share that operations on the share make.

A request that creates, promotes or removes a replica locks all of them
first, and so does a request that acts on the share as a whole. What it reads
after that holds until the end of the transaction.
"""

from collections.abc import Sequence
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db import rows
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.shares import instances as share_instances, shares
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.quota.shares import remove_replica_and_credit
from manila_lite.rpc.contract import Client
from manila_lite.states.share_instance import SHARE_INSTANCE, InstanceStatus
from manila_lite.states.share_replica import LEAVING, ReplicaState

_RESIZE_EXCLUDED = frozenset(
    {InstanceStatus.REPLICATION_CHANGE, InstanceStatus.CREATING}
)


class ResizeTarget(typing.NamedTuple):
    """The instance to resize, and the number of replicas of the share.

    The number is 0 for a share that cannot have replicas.
    """

    instance_id: str
    replica_count: int


def lock_for_resize(
    session: Session, share: rows.ShareTarget, event: str
) -> ResizeTarget:
    """Lock the replicas of a share whose size is to change.

    Raises InvalidStatus while one is being promoted or created, because its
    back end was given the current size. `share` is a row of `shares.target`;
    another replica may have become active since it was read.
    """
    if share.replica_state is None:
        return ResizeTarget(share.instance_id, 0)
    instances = replicas.lock_instances(session, share.id)
    for row in instances:
        if row.status in _RESIZE_EXCLUDED:
            raise exception.InvalidStatus(
                resource='share instance',
                id=row.id,
                status=row.status,
                event=event,
                allowed=InstanceStatus.AVAILABLE,
            )
    return ResizeTarget(get_active(instances, share.id).id, len(instances))


def get_active(instances: Sequence[typing.Any], share_id: str) -> typing.Any:
    """Return the oldest active replica that stays, else the oldest.

    Raises InvalidShare without an active one.
    """
    active = [row for row in instances if row.replica_state == ReplicaState.ACTIVE]
    if not active:
        raise exception.InvalidShare(reason=f'share {share_id} has no active replica')
    return min(active, key=lambda row: (row.status in LEAVING, row.created_at, row.id))


def refuse_replicas(session: Session, share: rows.ShareTarget) -> Sequence[typing.Any]:
    """Return the instances of a share; raises ShareHasReplicas for several.

    `share` is a row of `shares.target`. No second replica can be added until
    the end of the transaction.
    """
    if share.replica_state is not None:
        replicas.lock_instances(session, share.id)
    instances = shares.list_instances(session, share.id)
    if sum(1 for row in instances if row.replica_state) > 1:
        raise exception.ShareHasReplicas(share_id=share.id)
    return instances


def get_only_instance(session: Session, share: rows.ShareTarget) -> rows.ShareTarget:
    """Return the only instance of a share; raises InvalidShare for others.

    A share that is being migrated has two, and so does one whose migration
    left an instance on a back end.
    """
    instances = refuse_replicas(session, share)
    if len(instances) != 1:
        raise exception.InvalidShare(
            reason=f'share {share.id} has another instance, of a migration'
        )
    return instances[0]


def refuse_during_promotion(instances: Sequence[typing.Any]) -> None:
    """Refuse any other change while a replica is being promoted."""
    for row in instances:
        if row.status == InstanceStatus.REPLICATION_CHANGE:
            raise exception.ReplicationException(
                reason=f'replica {row.id} is being promoted'
            )


def remove_replica(
    session: Session,
    ctx: RequestContext,
    replication: Client,
    instances: Sequence[typing.Any],
    replica: rows.ReplicaRow,
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


def refuse_last_active(
    instances: Sequence[typing.Any], replica: rows.ReplicaRow
) -> None:
    """Raise if the share would be left without an active replica."""
    if is_last_active(instances, replica):
        raise exception.ReplicationException(
            reason=f'replica {replica.id} is the last active replica of share '
            f'{replica.share_id}'
        )


def is_last_active(instances: Sequence[typing.Any], replica: rows.ReplicaRow) -> bool:
    """Return whether no other replica that stays is active."""
    return replica.replica_state == ReplicaState.ACTIVE and not any(
        row.replica_state == ReplicaState.ACTIVE and row.status not in LEAVING
        for row in instances
        if row.id != replica.id
    )
