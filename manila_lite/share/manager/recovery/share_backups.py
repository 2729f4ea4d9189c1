"""Rescue of share backups: the work is done once more.

The data service does it, or the back end that keeps the backup.
"""

import dataclasses

from manila_lite.db.queries import share_backups
from manila_lite.db.rows import ShareBackupRow
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.messages import Action
from manila_lite.rpc.data import BackupsRpc
from manila_lite.rpc.share import TOPIC, DriverBackupsRpc
from manila_lite.share.manager.endpoint import owner_context
from manila_lite.share.manager.recovery.base import Ending, RescueCase, ResourceRecovery
from manila_lite.states.share_backup import SHARE_BACKUP, BackupStatus

_ACTIONS = {
    BackupStatus.CREATING: Action.CREATE,
    BackupStatus.RESTORING: Action.RESTORE_BACKUP,
    BackupStatus.DELETING: Action.DELETE,
}


@dataclasses.dataclass(eq=False)
class ShareBackupRecovery(ResourceRecovery[ShareBackupRow, None]):
    machine = SHARE_BACKUP

    def find(
        self, session: Session, id: str
    ) -> RescueCase[ShareBackupRow, None] | None:
        row = share_backups.find_for_rescue(session, id)
        return None if row is None else RescueCase(row, None)

    def resubmit(
        self, session: Session, case: RescueCase[ShareBackupRow, None], kind: str
    ) -> None:
        # The case has the host of the share, which may have moved since.
        row = share_backups.get(session, case.row.id)
        work = self.work_clients[BackupsRpc.name]
        if row.topic == TOPIC:
            work = self.work_clients[DriverBackupsRpc.name].on(row.host or '')
        method = kind.removeprefix(f'{BackupsRpc.name}.')
        getattr(work, method)(session, owner_context(row), share_backup_id=row.id)

    def give_up(
        self, session: Session, case: RescueCase[ShareBackupRow, None], end: Ending
    ) -> None:
        # The share is released by its own rescue.
        fire(session, SHARE_BACKUP, case.row.id, end.event)
        self.notify(session, end, _ACTIONS[case.row.status])
