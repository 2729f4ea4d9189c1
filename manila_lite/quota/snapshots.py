"""The quota of snapshots, groups and backups: charges and removal."""

from manila_lite.db.moves import snapshots
from manila_lite.db.rows import (
    ChargedRow,
    ShareBackupRow,
    ShareGroupRow,
    ShareGroupSnapshotRow,
    SnapshotInstanceRow,
)
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.quota import charges
from manila_lite.quota.charges import Owner
from manila_lite.states.share_backup import SHARE_BACKUP
from manila_lite.states.share_group import SHARE_GROUP, SHARE_GROUP_SNAPSHOT
from manila_lite.states.snapshot_instance import SnapshotStatus


def owner_of(snapshot: ChargedRow) -> Owner:
    """Return the owner that a snapshot is charged to.

    `snapshot` is an instance row with the share type of its share.
    """
    return Owner(snapshot.project_id, snapshot.user_id, snapshot.share_type_id)


def deltas_of(size: int) -> dict[str, int]:
    """Return the usage of a snapshot of this size in GiB, by resource.

    A snapshot that is still to be managed, or could not be, has no size
    and is not charged.
    """
    return {'snapshots': 1, 'snapshot_gigabytes': size} if size else {}


def remove_and_credit(
    session: Session, instance: SnapshotInstanceRow, event: str = 'deleted'
) -> None:
    """Remove an instance by its last move and give back its quota."""
    if snapshots.remove_instance(session, instance, event):
        charges.credit(session, owner_of(instance), deltas_of(instance.size))


def remove_deleted(session: Session, instance: SnapshotInstanceRow) -> None:
    """Remove an instance that its back end has deleted, deferred or not."""
    if instance.status == SnapshotStatus.DEFERRED_DELETING:
        remove_uncharged(session, instance)
    else:
        remove_and_credit(session, instance)


def remove_uncharged(
    session: Session, instance: SnapshotInstanceRow, event: str = 'deferred_deleted'
) -> None:
    """Remove an instance whose quota was given back before."""
    snapshots.remove_instance(session, instance, event)


GROUP_DELTAS = {'share_groups': 1}
GROUP_SNAPSHOT_DELTAS = {'share_group_snapshots': 1}


def backup_deltas(size: int) -> dict[str, int]:
    """Return what a backup of this size, in GiB, uses."""
    return {'backups': 1, 'backup_gigabytes': size}


def remove_backup(session: Session, backup: ShareBackupRow) -> None:
    """Remove a backup by its last move and give back its quota."""
    fire(session, SHARE_BACKUP, backup.id, 'deleted')
    charges.credit(
        session, Owner(backup.project_id, backup.user_id), backup_deltas(backup.size)
    )


def remove_group(
    session: Session, group: ShareGroupRow, event: str = 'deleted'
) -> None:
    """Remove a group by its last move and give back its quota."""
    fire(session, SHARE_GROUP, group.id, event)
    charges.credit(session, Owner(group.project_id, group.user_id), GROUP_DELTAS)


def remove_group_snapshot(
    session: Session, snapshot: ShareGroupSnapshotRow, event: str = 'deleted'
) -> None:
    """Remove a snapshot with its members, and give back its quota."""
    fire(session, SHARE_GROUP_SNAPSHOT, snapshot.id, event)
    charges.credit(
        session, Owner(snapshot.project_id, snapshot.user_id), GROUP_SNAPSHOT_DELTAS
    )
