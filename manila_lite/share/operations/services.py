"""Services, and deletions of what a back end that is down has not carried out.

Tenants need not wait until the back end is back: what it has not begun to
create is removed at once. For the rest, the deletion waits in its queue.
"""

import dataclasses
from typing import Annotated

from manila_lite import exception
from manila_lite.conf import Option
from manila_lite.context import RequestContext
from manila_lite.db.queries.services import services
from manila_lite.db.session import Database, Session, transaction
from manila_lite.host import Host
from manila_lite.rpc.contract import Client, work_kinds
from manila_lite.rpc.share import BINARY, EnsuringRpc, ProvisioningRpc, SnapshotsRpc
from manila_lite.states.machine import Machine
from manila_lite.work import waiting


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


EVENT = 'delete_unserved'

_CREATIONS = frozenset(
    {'create_share_instance', 'create_share_from_snapshot', 'create_snapshot_instance'}
)
_KINDS = [
    kind
    for contract in (ProvisioningRpc, SnapshotsRpc)
    for kind, durable in work_kinds(contract).items()
    if durable.method in _CREATIONS
]


def can_delete(
    session: Session, machine: Machine, status: str, host: str | None, down_time: float
) -> bool:
    """Whether a resource may be deleted in this status because its back end is down."""
    if host is None or not machine[EVENT].can_leave(status):
        return False
    row = services.find(session, Host.parse(host).service_host, BINARY)
    return row is None or not services.is_up(row, down_time)


def withdraw_creation(session: Session, machine: Machine, id: str) -> bool:
    """Delete the work that creates it, if no worker has tried it yet."""
    return waiting.withdraw_unclaimed(session, machine.resource, id, _KINDS)
