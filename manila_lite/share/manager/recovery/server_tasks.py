"""How migrations of share servers are rescued.

The work of every step may be done again, by the service that the server
goes to. A step that nobody owes is asked for anew.
"""

from manila_lite.db.queries.servers import share_servers
from manila_lite.db.session import Session
from manila_lite.share.manager.recovery.base import Case
from manila_lite.share.manager.recovery.base import Rescuable
from manila_lite.states.share_server import TASK_MACHINE
from manila_lite.states.share_server import T


class ServerTasks(Rescuable):
    machine = TASK_MACHINE

    def find(self, session: Session, id: str) -> Case | None:
        row = share_servers.find(session, id)
        return row and Case(row)

    def status_of(self, case: Case) -> str:
        return case.row.task_state or T.NONE
