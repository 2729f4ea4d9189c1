"""Rescue of share servers."""

from manila_lite.db.queries.servers import share_servers
from manila_lite.db.rows import ShareServerRow
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.rpc.contract import Client
from manila_lite.share.manager.recovery.base import RescueCase, ResourceRecovery
from manila_lite.share.manager.servers.setup import ServerSetup
from manila_lite.states.share_server import SHARE_SERVER, ServerStatus
from manila_lite.work.table import Claim

ServerCase = RescueCase[ShareServerRow, None]


class ShareServerRecovery(ResourceRecovery[ShareServerRow, None]):
    """Rescues the share servers of one back end.

    The driver is not asked about a server whose creation was lost: no
    work waits for it, and its deletion removes what exists of it. As the
    back end may have created it, it keeps its addresses until then.
    """

    machine = SHARE_SERVER
    end_of_resumes = 'migration_failed'

    def __init__(
        self, rescue_client: Client, work_clients: dict[str, Client], setup: ServerSetup
    ):
        super().__init__(rescue_client, work_clients)
        self.setup = setup

    def find(self, session: Session, id: str) -> ServerCase | None:
        row = share_servers.find(session, id)
        return None if row is None else RescueCase(row, None)

    def give_up(
        self, session: Session, job: Claim, case: ServerCase, event: str
    ) -> None:
        # A server that is not managed in the end keeps no addresses.
        if case.row.status == ServerStatus.MANAGE_STARTING:
            self.setup.give_up(session, case.row.id, event)
        else:
            fire(
                session,
                SHARE_SERVER,
                case.row.id,
                event,
                build_key=None,
                updated_at=session.now,
            )
