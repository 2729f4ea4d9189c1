"""What backups of shares use of the quota of their project."""

from manila_lite.db.rows import ShareBackupRow
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.quota import charges
from manila_lite.quota.charges import Owner
from manila_lite.states.share_backup import SHARE_BACKUP


def deltas_of(size: int) -> dict[str, int]:
    """Return what a backup of this size, in GiB, uses."""
    return {'backups': 1, 'backup_gigabytes': size}


def remove_and_credit(session: Session, backup: ShareBackupRow) -> None:
    """Remove a backup by its last move and give back its quota."""
    fire(session, SHARE_BACKUP, backup.id, 'deleted')
    charges.credit(
        session, Owner(backup.project_id, backup.user_id), deltas_of(backup.size)
    )
