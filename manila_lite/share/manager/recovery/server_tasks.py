"""Rescue of share server migrations.

The work of every step is idempotent and runs on the service of the
destination. A step without work is submitted again.
"""

from manila_lite.db.queries.servers import share_servers
from manila_lite.db.rows import ShareServerRow
from manila_lite.db.session import Session
from manila_lite.share.manager.recovery.base import RescueCase
from manila_lite.share.manager.recovery.base import ResourceRecovery
from manila_lite.states.share_server import SHARE_SERVER_TASK
from manila_lite.states.share_server import TaskState

ServerCase = RescueCase[ShareServerRow, None]


class ServerTaskRecovery(ResourceRecovery[ShareServerRow, None]):
    machine = SHARE_SERVER_TASK

    def find(self, session: Session, id: str) -> ServerCase | None:
        row = share_servers.find(session, id)
        return None if row is None else RescueCase(row, None)

    def status_of(self, case: ServerCase) -> str:
        return case.row.task_state or TaskState.NONE
