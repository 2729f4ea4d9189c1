"""Moves of share backups, and of their shares with them.

The share is moved first, as requests do it. A share that an administrator
has reset keeps its status.
"""

from manila_lite.db.queries import share_backups
from manila_lite.db.rows import ShareBackupRow
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire, fire_matching
from manila_lite.states.share_backup import SHARE_BACKUP
from manila_lite.states.share_instance import SHARE_INSTANCE

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

    It stays as it is for another backup than `excluding`.
    """
    if share_backups.is_backed_up_by_other(session, share_id, excluding):
        return
    fire_matching(session, SHARE_INSTANCE, 'backed_up', {'share_id': share_id})


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

    It stays as it is for another backup than `excluding`.
    """
    if share_backups.is_restored_from_other(session, share_id, excluding):
        return
    fire_matching(
        session, SHARE_INSTANCE, 'backup_restore_failed', {'share_id': share_id}
    )
