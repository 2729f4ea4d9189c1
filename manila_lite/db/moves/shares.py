"""Moves of share instances, of the replicas of a share, and of its backups.

A share is moved before its backup, as requests do it. A share that an
administrator has reset keeps its status.
"""

from manila_lite.db.models.base import NEVER
from manila_lite.db.moves import snapshots
from manila_lite.db.queries import private_data, share_backups
from manila_lite.db.queries.access import share_rules
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.shares import affinity, shares
from manila_lite.db.rows import IdRow, ReplicaIdRow, ReplicaStateRow, ShareBackupRow
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire, fire_matching
from manila_lite.states import access_rule, snapshot_instance
from manila_lite.states.access_rule import ACCESS_RULE
from manila_lite.states.share_backup import SHARE_BACKUP
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_replica import READABLE, SHARE_REPLICA, ReplicaState


def remove_instance(
    session: Session, instance: ReplicaStateRow, event: str = 'deleted'
) -> bool:
    """Remove an instance by its last move; True if the share went too.

    `instance` has id, share_id and replica_state. Dependent rows are
    deleted too, rules that no other replica has, and what drivers have
    stored about the instance and the share.
    """
    rules = (
        [row.id for row in share_rules.list_for_instance(session, instance.id)]
        if instance.replica_state is not None
        else []
    )
    if rules:
        share_rules.RULES.lock_rules(session, rules)
    fire_matching(session, ACCESS_RULE, 'removed', {'share_instance_id': instance.id})
    fire(session, SHARE_INSTANCE, instance.id, event)
    has_instances, has_hints = shares.read_remainder(session, instance.share_id)
    if has_instances:
        if rules:
            share_rules.RULES.remove_unmapped(session, rules)
        private_data.delete_all(session, [instance.id])
        return False
    private_data.delete_all(session, [instance.id, instance.share_id])
    if has_hints:
        affinity.forget(session, instance.share_id)
    return shares.remove(session, instance.share_id)


def mark_all_out_of_sync(session: Session, share_id: str) -> None:
    """Mark all passive replicas out of sync and advance the generation.

    The active replica has changed its data, or is about to.
    """
    fire_matching(
        session,
        SHARE_REPLICA,
        'fell_behind',
        {'share_id': share_id, 'replica_state': ReplicaState.IN_SYNC},
    )
    replicas.advance_generation(session, share_id)


def activate(
    session: Session,
    replica: ReplicaIdRow,
    replication_type: str | None,
    event: str = 'activated',
) -> None:
    """Make a replica active and its rules effective as users gave them.

    If only one may be active, the previous one must be demoted first: the
    unique key of `sole_active_of` rejects a second one.
    """
    fire(
        session,
        SHARE_REPLICA,
        replica.id,
        event,
        sole_active_of=replicas.sole_active_of(replica.share_id, replication_type),
        cast_rules_to_readonly=False,
        synced_at=NEVER,
    )


def demote(
    session: Session,
    replica: IdRow,
    replication_type: str | None,
    event: str = 'retired',
) -> None:
    """Make an active replica passive; `event` says which state it enters."""
    fire(
        session,
        SHARE_REPLICA,
        replica.id,
        event,
        sole_active_of=None,
        cast_rules_to_readonly=replication_type == READABLE,
    )


def mark_failed(session: Session, replica_id: str) -> None:
    """Mark a replica that was not created as failed, with all its rules.

    The caller sets its status.
    """
    fire_matching(session, SHARE_REPLICA, 'failed', {'id': replica_id})
    rules = {'share_instance_id': replica_id}
    fire_matching(session, access_rule.ACCESS_RULE, 'apply', rules)
    if fire_matching(session, access_rule.ACCESS_RULE, 'apply_failed', rules):
        fire_matching(
            session, access_rule.SHARE_INSTANCE_ACCESS, 'failed', {'id': replica_id}
        )


def mark_unplaced_failed(session: Session, replica_id: str) -> None:
    """Mark a replica that was never placed as failed, with its snapshots.

    The rules of these are removed: no back end would ever apply them.
    """
    mark_failed(session, replica_id)
    fire_matching(
        session,
        snapshot_instance.SNAPSHOT_INSTANCE,
        'create_failed',
        {'share_instance_id': replica_id},
    )
    snapshots.remove_rules_on(session, replica_id)


DONE = 100
"""The progress of a complete backup or restore, in percent."""


def end_creation(
    session: Session, backup: ShareBackupRow, kept_copy: str | None = None
) -> None:
    """Make a complete backup and its share available.

    `kept_copy` is what a data service keeps; None if the driver does.
    """
    release_source(session, backup.share_id, excluding=backup.id)
    fire(
        session, SHARE_BACKUP, backup.id, 'created', progress=DONE, kept_copy=kept_copy
    )


def release_source(session: Session, share_id: str, *, excluding: str) -> None:
    """Make a share available whose backup has ended.

    A share that a backup other than `excluding` uses keeps its status.
    """
    if share_backups.is_backed_up_by_other(session, share_id, excluding):
        return
    fire_matching(session, SHARE_INSTANCE, 'backed_up', {'share_id': share_id})


def release_source_of(session: Session, backup_id: str) -> None:
    """Make the share of a backup available whose work was dropped."""
    row = share_backups.find(session, backup_id)
    if row is not None:
        release_source(session, row.share_id, excluding=row.id)


def end_restore(session: Session, backup: ShareBackupRow) -> None:
    """Make a backup available, and the share that has its content."""
    share_id = backup.restore_share_id or backup.share_id
    fire_matching(session, SHARE_INSTANCE, 'backup_restored', {'share_id': share_id})
    fire(
        session,
        SHARE_BACKUP,
        backup.id,
        'restored',
        restore_progress=DONE,
        restore_share_id=None,
    )
    share_backups.set_source(session, share_id, backup.id)


def fail_target(session: Session, share_id: str, *, excluding: str) -> None:
    """Show that a share may have the content of a backup in part.

    A share that a backup other than `excluding` uses keeps its status.
    """
    if share_backups.is_restored_from_other(session, share_id, excluding):
        return
    fire_matching(
        session, SHARE_INSTANCE, 'backup_restore_failed', {'share_id': share_id}
    )


def fail_target_of(session: Session, backup_id: str) -> None:
    """Show that a restore whose work was dropped may have changed a share."""
    row = share_backups.find(session, backup_id)
    if row is not None and row.restore_share_id is not None:
        fail_target(session, row.restore_share_id, excluding=row.id)
