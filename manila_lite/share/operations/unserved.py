"""Deletions of what its back end, which is down, has not carried out.

Tenants need not wait until the back end is back: what it has not begun to
create is removed at once. For the rest, the deletion waits in its queue.
"""

from manila_lite.db.queries.services import services
from manila_lite.db.session import Session
from manila_lite.host import Host
from manila_lite.rpc.contract import work_kinds
from manila_lite.rpc.share import BINARY, ProvisioningRpc, SnapshotsRpc
from manila_lite.states.machine import Machine
from manila_lite.work import waiting

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
    """Whether it may be deleted in this status: its back end is down."""
    if host is None or not machine[EVENT].can_leave(status):
        return False
    row = services.find(session, Host.parse(host).service_host, BINARY)
    return row is None or not services.is_up(row, down_time)


def withdraw_creation(session: Session, machine: Machine, id: str) -> bool:
    """Delete the work that creates it, if no worker has tried it yet."""
    return waiting.withdraw_unclaimed(session, machine.resource, id, _KINDS)
