"""The usage of backups, share groups and their snapshots, and their removal."""

from manila_lite.db.rows import ShareBackupRow, ShareGroupRow, ShareGroupSnapshotRow
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.quota import charges
from manila_lite.quota.charges import Owner
from manila_lite.states.share_backup import SHARE_BACKUP
from manila_lite.states.share_group import SHARE_GROUP, SHARE_GROUP_SNAPSHOT

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
