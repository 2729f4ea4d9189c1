"""Rescue of share backups: the data service does the work once more."""

from manila_lite.db.queries.backups import share_backups
from manila_lite.db.rows import ShareBackupRow
from manila_lite.db.session import Session
from manila_lite.share.manager.recovery.base import RescueCase
from manila_lite.share.manager.recovery.base import ResourceRecovery
from manila_lite.states.share_backup import SHARE_BACKUP


class ShareBackupRecovery(ResourceRecovery[ShareBackupRow, None]):
    machine = SHARE_BACKUP

    def find(
        self, session: Session, id: str
    ) -> RescueCase[ShareBackupRow, None] | None:
        row = share_backups.find_for_rescue(session, id)
        return None if row is None else RescueCase(row, None)
