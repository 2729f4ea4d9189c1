"""Rescue of share server migrations.

The work of every step is idempotent and runs on the service of the
destination. A step without work is submitted again. Where that leads nowhere,
the migration fails.
"""

from manila_lite.db.queries.servers import (
    migrations as server_migrations,
    share_servers,
)
from manila_lite.db.rows import ShareServerRow
from manila_lite.db.session import Session
from manila_lite.rpc.contract import Client
from manila_lite.rpc.share import AccessRpc
from manila_lite.share.manager.recovery.base import RescueCase, ResourceRecovery
from manila_lite.share.manager.recovery.rule_sets import resync_of_failed
from manila_lite.share.manager.servers.migration_phases import ServerMigrationPhases
from manila_lite.states.share_server import SHARE_SERVER_TASK, TaskState
from manila_lite.work.table import Claim

ServerCase = RescueCase[ShareServerRow, None]


class ServerTaskRecovery(ResourceRecovery[ShareServerRow, None]):
    machine = SHARE_SERVER_TASK
    end_of_resumes = 'failed'

    def __init__(
        self,
        rescue_client: Client,
        work_clients: dict[str, Client],
        phases: ServerMigrationPhases,
    ):
        super().__init__(rescue_client, work_clients)
        self.phases = phases

    def find(self, session: Session, id: str) -> ServerCase | None:
        row = share_servers.find(session, id)
        return None if row is None else RescueCase(row, None)

    def status_of(self, case: ServerCase) -> str:
        return case.row.task_state or TaskState.NONE

    def recheck(self, session: Session, case: ServerCase, id: str) -> None:
        super().recheck(session, case, id)
        rows = server_migrations.list_server_with_shares(session, id)
        resync_of_failed(
            session,
            self.work_clients[AccessRpc.name],
            [row.instance_id for row in rows if row.instance_id],
        )

    def give_up(
        self, session: Session, job: Claim, case: ServerCase, event: str
    ) -> None:
        self.phases.fail(session, case.row.id, session.reason or 'its work was lost')
