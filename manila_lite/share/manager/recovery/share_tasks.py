"""Rescue of share migrations.

The work of every step is idempotent and runs on the service of the source.
A step without work is submitted again. Where that leads nowhere, the migration
ends without another call of a driver.
"""

import dataclasses

from manila_lite.db.queries.access import share_rules
from manila_lite.db.queries.shares import migrations
from manila_lite.db.rows import ShareTaskRow
from manila_lite.db.session import Session
from manila_lite.messages import Action, Detail
from manila_lite.rpc.share import AccessRpc
from manila_lite.share.manager.migrations.endpoint import ShareMigrationsEndpoint
from manila_lite.share.manager.recovery.base import RescueCase, ResourceRecovery
from manila_lite.share.manager.recovery.rule_sets import resync_of_failed
from manila_lite.states.share_task import SHARE_TASK, ShareTask
from manila_lite.work.notify import notify_user
from manila_lite.work.table import Claim

TaskCase = RescueCase[ShareTaskRow, None]


@dataclasses.dataclass(eq=False)
class ShareTaskRecovery(ResourceRecovery[ShareTaskRow, None]):
    machine = SHARE_TASK
    end_of_resumes = 'failed'

    migrations: ShareMigrationsEndpoint

    def find(self, session: Session, id: str) -> TaskCase | None:
        row = migrations.find_task(session, id)
        return None if row is None else RescueCase(row, None)

    def status_of(self, case: TaskCase) -> str:
        return case.row.task_state or ShareTask.NONE

    def recheck(self, session: Session, case: TaskCase, id: str) -> None:
        super().recheck(session, case, id)
        resync_of_failed(
            session,
            self.work_clients[AccessRpc.name],
            [row.id for row in share_rules.list_instance_hosts(session, id)],
        )

    def give_up(
        self, session: Session, job: Claim, case: TaskCase, event: str, explanation: str
    ) -> None:
        self.migrations.end_lost(
            session, case.row.id, session.reason or 'its work was lost'
        )
        notify_user(
            session,
            job,
            Action.UPDATE,
            Detail.UNKNOWN_ERROR,
            self.migrations.message_ttl,
            explanation=explanation,
        )
