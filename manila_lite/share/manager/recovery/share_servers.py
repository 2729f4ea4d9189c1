"""How share servers are rescued."""

import typing

from manila_lite.db.queries.servers import share_servers
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.rpc.contract import Client
from manila_lite.share.manager.recovery.base import Case
from manila_lite.share.manager.recovery.base import Rescuable
from manila_lite.share.manager.servers.setup import ServerSetup
from manila_lite.states.share_server import MACHINE
from manila_lite.states.share_server import S


class ShareServers(Rescuable):
    """Those of one back end.

    What became of one that was being made is not asked: nothing waits
    for it any more, and its deletion removes whatever there is of it. The
    back end may have it by now, so its addresses are its own until then.
    """

    machine = MACHINE

    def __init__(
        self, rescues: Client, works: dict[str, Client], setup: ServerSetup
    ):
        super().__init__(rescues, works)
        self.setup = setup

    def find(self, session: Session, id: str) -> Case | None:
        row = share_servers.find(session, id)
        return row and Case(row)

    def give_up(
        self, session: Session, job: typing.Any, case: Case, event: str
    ) -> None:
        if case.row.status == S.MANAGE_STARTING:  # not ours, as before
            self.setup.give_up(session, case.row.id, event)
        else:
            fire(
                session,
                MACHINE,
                case.row.id,
                event,
                founding=None,
                updated_at=session.now,
            )
