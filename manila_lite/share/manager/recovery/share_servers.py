"""Rescue of share servers and of their migrations."""

import dataclasses

from manila_lite.db.queries.servers import (
    migrations as server_migrations,
    share_servers,
)
from manila_lite.db.rows import ShareServerRow
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.rpc.share import AccessRpc
from manila_lite.share.manager.recovery.base import Ending, RescueCase, ResourceRecovery
from manila_lite.share.manager.recovery.rule_sets import resync_of_failed
from manila_lite.share.manager.servers.migration_phases import ServerMigrationPhases
from manila_lite.share.manager.servers.setup import ServerSetup
from manila_lite.states import share_server

ServerCase = RescueCase[ShareServerRow, None]


class _Recovery(ResourceRecovery[ShareServerRow, None]):
    def find(self, session: Session, id: str) -> ServerCase | None:
        row = share_servers.find(session, id)
        return None if row is None else RescueCase(row, None)


@dataclasses.dataclass(eq=False)
class ShareServerRecovery(_Recovery):
    """Rescues the share servers of one back end.

    The driver is not asked about a server whose creation was lost: no
    work waits for it, and its deletion removes what exists of it. As the
    back end may have created it, it keeps its addresses until then.
    """

    machine = share_server.SHARE_SERVER
    end_of_resumes = 'migration_failed'

    setup: ServerSetup

    def give_up(self, session: Session, case: ServerCase, end: Ending) -> None:
        # A server that is not managed in the end keeps no addresses.
        if case.row.status == share_server.ServerStatus.MANAGE_STARTING:
            self.setup.give_up(session, case.row.id, end.event)
        else:
            fire(
                session,
                share_server.SHARE_SERVER,
                case.row.id,
                end.event,
                build_key=None,
            )


@dataclasses.dataclass(eq=False)
class ServerTaskRecovery(_Recovery):
    """Rescues migrations of share servers, on the service of the destination.

    The work of every step is idempotent. A step without work is submitted
    again. Where that leads nowhere, the migration fails.
    """

    machine = share_server.SHARE_SERVER_TASK
    end_of_resumes = 'failed'

    phases: ServerMigrationPhases

    def status_of(self, case: ServerCase) -> str:
        return case.row.task_state or share_server.TaskState.NONE

    def recheck(self, session: Session, case: ServerCase, id: str) -> None:
        super().recheck(session, case, id)
        rows = server_migrations.list_server_with_shares(session, id)
        resync_of_failed(
            session,
            self.work_clients[AccessRpc.name],
            [row.instance_id for row in rows if row.instance_id],
        )

    def give_up(self, session: Session, case: ServerCase, end: Ending) -> None:
        self.phases.fail(session, case.row.id, session.reason or 'its work was lost')
