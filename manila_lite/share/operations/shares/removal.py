"""Accept the removal of the instances of a share."""

import contextlib

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db import rows
from manila_lite.db.queries.access import locks
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.shares import instances as share_instances, shares
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.quota import charges
from manila_lite.quota.encryption_keys import release_key
from manila_lite.quota.shares import deltas_of, owner_of, remove_and_credit
from manila_lite.rpc.contract import Client
from manila_lite.share.operations import services
from manila_lite.share.operations.replication import guards as replica_guards
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE


def refuse_dependents(
    session: Session, share: rows.ShareTarget, error: type[exception.ManilaLiteError]
) -> bool:
    """Refuse after the moves, which prevent new dependents.

    Returns whether the share has snapshots in deferred deletion.
    """
    locks.check_share_not_locked(session, share.id)
    found = shares.find_dependents(session, share.id)
    if found.has_kept_snapshots:
        raise error(
            reason=f'share {share.id} has snapshots, or is in a snapshot of '
            'its share group; delete them first'
        )
    if found.has_backups:
        raise error(reason=f'share {share.id} has backups; delete them first')
    return found.has_leaving_snapshots


def retry_snapshots(
    session: Session, ctx: RequestContext, work: Client, share_instance_id: str
) -> None:
    """Ask once more for failed deferred deletions; the share waits for them.

    Call it after the share has moved.
    """
    for row in snapshots.list_in_deferred_deletion(session, share_instance_id):
        # A pass of the back end may have just done the same.
        with contextlib.suppress(exception.InvalidStatus, exception.ResourceNotFound):
            fire(session, SNAPSHOT_INSTANCE, row.id, 'retry_deferred')
            work.on(row.host).delete_snapshot_instance_deferred(
                session, ctx, snapshot_instance_id=row.id
            )


def remove_instance(
    session: Session,
    ctx: RequestContext,
    provisioning: Client,
    instance_id: str,
    *,
    force: bool = False,
    project_id: str | None = None,
) -> None:
    """Remove an instance, first from its back end if it is on one.

    It has been moved before. With `project_id`, raises ShareNotFound if the
    share has been transferred since the request was authorized.
    """
    instance = share_instances.get(session, instance_id)
    if project_id not in (None, instance.project_id):
        raise exception.ShareNotFound(share_id=instance.share_id)
    if instance.host is None:
        remove_and_credit(session, instance)
        return
    provisioning.on(instance.host).delete_share_instance(
        session, ctx, instance_id=instance_id, force=force
    )


def deletion_event(session: Session, row: rows.ShareTarget, down_time: float) -> str:
    """Return the event by which a tenant's deletion begins."""
    if services.can_delete(session, SHARE_INSTANCE, row.status, row.host, down_time):
        return services.EVENT
    return 'delete'


def remove_unserved(
    session: Session, ctx: RequestContext, provisioning: Client, row: rows.ShareTarget
) -> None:
    """Remove an instance that its back end may not have begun to create."""
    if row.share_server_id is None and services.withdraw_creation(
        session, SHARE_INSTANCE, row.instance_id
    ):
        remove_and_credit(session, share_instances.get(session, row.instance_id))
    else:
        remove_instance(session, ctx, provisioning, row.instance_id)


def remove_deferred(
    session: Session, ctx: RequestContext, provisioning: Client, row: rows.ShareTarget
) -> None:
    """Credit quota now and leave the back end to the deferred deletion."""
    instance = share_instances.get(session, row.instance_id)
    charges.credit(session, owner_of(instance), deltas_of(instance))
    release_key(session, instance.project_id, instance.encryption_key_ref)
    provisioning.on(instance.host).delete_share_instance_deferred(
        session, ctx, instance_id=instance.id
    )


def remove_replica(
    session: Session,
    ctx: RequestContext,
    replication: Client,
    share_id: str,
    instance_id: str,
) -> bool:
    """Request deletion if it is one of several replicas; False if not."""
    instances = replicas.lock_instances(session, share_id)
    replica = next((row for row in instances if row.id == instance_id), None)
    if replica is None or replica.replica_state is None or len(instances) == 1:
        return False
    if replica_guards.is_last_active(instances, replica):
        raise exception.ShareHasReplicas(share_id=share_id)
    replica_guards.remove_replica(
        session, ctx, replication, instances, replica, force=True
    )
    return True
