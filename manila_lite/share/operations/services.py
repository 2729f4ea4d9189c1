"""Accept requests about services."""

import dataclasses
from typing import Annotated

from manila_lite import exception
from manila_lite.conf import Option
from manila_lite.context import RequestContext
from manila_lite.db.queries.services import services
from manila_lite.db.session import Database, Session, transaction
from manila_lite.rpc.contract import Client
from manila_lite.rpc.share import BINARY, EnsuringRpc


@dataclasses.dataclass(eq=False)
class Services:
    """Operations on services. Each method is one transaction."""

    db: Database
    ensuring: Client[EnsuringRpc]
    down_time: Annotated[int, Option('service_down_time')]

    @transaction
    def ensure_shares(self, session: Session, ctx: RequestContext, host: str) -> None:
        """Request that a share service ensures its shares again."""
        service = services.get(session, host, BINARY)
        if not services.is_up(service, self.down_time):
            raise exception.ServiceNotUp(binary=BINARY, host=host)
        if not services.begin_ensuring(session, service.id):
            raise exception.ServiceAlreadyEnsuring(binary=BINARY, host=host)
        self.ensuring.on(host).ensure_shares(session, ctx, service_id=service.id)
