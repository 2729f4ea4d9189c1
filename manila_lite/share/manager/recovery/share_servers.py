"""How share servers are rescued."""

import typing

from manila_lite.db.queries.servers import share_servers
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.rpc.contract import Client
from manila_lite.share.manager.recovery.base import RescueCase
from manila_lite.share.manager.recovery.base import ResourceRecovery
from manila_lite.share.manager.servers.setup import ServerSetup
from manila_lite.states.share_server import SHARE_SERVER
from manila_lite.states.share_server import ServerStatus


class ShareServerRecovery(ResourceRecovery):
    """Those of one back end.

    What became of one that was being made is not asked: nothing waits
    for it any more, and its deletion removes whatever there is of it. The
    back end may have it by now, so its addresses are its own until then.
    """

    machine = SHARE_SERVER

    def __init__(
        self, rescues: Client, works: dict[str, Client], setup: ServerSetup
    ):
        super().__init__(rescues, works)
        self.setup = setup

    def find(self, session: Session, id: str) -> RescueCase | None:
        row = share_servers.find(session, id)
        return row and RescueCase(row)

    def give_up(
        self, session: Session, job: typing.Any, case: RescueCase, event: str
    ) -> None:
        if (
            case.row.status == ServerStatus.MANAGE_STARTING
        ):  # not ours, as before
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
