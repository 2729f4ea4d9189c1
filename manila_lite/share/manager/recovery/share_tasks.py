"""Rescue of share migrations.

The work of every step is idempotent and runs on the service of the source.
A step without work is submitted again.
"""

from manila_lite.db.queries.shares import migrations
from manila_lite.db.rows import ShareTaskRow
from manila_lite.db.session import Session
from manila_lite.share.manager.recovery.base import RescueCase
from manila_lite.share.manager.recovery.base import ResourceRecovery
from manila_lite.states.share_task import SHARE_TASK
from manila_lite.states.share_task import ShareTask

TaskCase = RescueCase[ShareTaskRow, None]


class ShareTaskRecovery(ResourceRecovery[ShareTaskRow, None]):
    machine = SHARE_TASK

    def find(self, session: Session, id: str) -> TaskCase | None:
        row = migrations.find_task(session, id)
        return None if row is None else RescueCase(row, None)

    def status_of(self, case: TaskCase) -> str:
        return case.row.task_state or ShareTask.NONE
