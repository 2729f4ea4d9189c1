"""Share networks: what operations read and write of them."""

from collections.abc import Collection, Mapping
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db import transitions
from manila_lite.db.models import networks
from manila_lite.db.models import share_servers
from manila_lite.db.models import shares
from manila_lite.db.session import Session
from manila_lite.states.share_network import SHARE_NETWORK
from manila_lite.states.share_network import NetworkStatus
from manila_lite.states.share_server import ServerStatus

NETWORK = networks.ShareNetwork.__table__
SERVER = share_servers.ShareServer.__table__
OF_SUBNET = share_servers.ShareServerSubnet.__table__
ADDRESS = share_servers.NetworkAllocation.__table__
INSTANCE = shares.ShareInstance.__table__

_TARGET = sa.select(
    NETWORK.c.id,
    NETWORK.c.project_id,
    NETWORK.c.user_id,
    NETWORK.c.name,
    NETWORK.c.status,
).where(NETWORK.c.id == sa.bindparam('network_id'))
_HOLD = _TARGET.with_for_update()
_KEEP = _TARGET.with_for_update(read=True)
_SERVERS = (
    sa.select(
        SERVER.c.id,
        SERVER.c.host,
        SERVER.c.status,
        SERVER.c.is_auto_deletable,
        SERVER.c.security_service_update_support,
        SERVER.c.network_allocation_update_support,
    )
    .where(SERVER.c.share_network_id == sa.bindparam('network_id'))
    .order_by(SERVER.c.id)
)
_HAS_SERVERS = sa.select(
    sa.exists().where(SERVER.c.share_network_id == sa.bindparam('network_id'))
)
_HAS_SHARES = sa.select(
    sa.exists().where(
        INSTANCE.c.share_network_id == sa.bindparam('network_id')
    )
)
_IN = sa.select(OF_SUBNET.c.share_server_id).where(
    OF_SUBNET.c.share_network_subnet_id.in_(
        sa.bindparam('ids', expanding=True)
    )
)
_SHARES_ON = (
    sa.select(
        INSTANCE.c.id,
        INSTANCE.c.share_id,
        INSTANCE.c.status,
        INSTANCE.c.access_rules_status,
        INSTANCE.c.share_server_id,
    )
    .where(INSTANCE.c.share_server_id.in_(sa.bindparam('ids', expanding=True)))
    .order_by(INSTANCE.c.id)
)
_IDS: sa.BindParameter[str] = sa.bindparam('ids', expanding=True)
_LEAVE = (
    sa.delete(OF_SUBNET).where(OF_SUBNET.c.share_server_id.in_(_IDS)),
    sa.update(ADDRESS)
    .where(ADDRESS.c.share_server_id.in_(_IDS))
    .values(share_network_subnet_id=None),
    sa.update(SERVER)
    .where(SERVER.c.id.in_(_IDS))
    .values(share_network_id=None),
)
_CHANGING = sa.exists().where(
    SERVER.c.share_network_id == NETWORK.c.id,
    SERVER.c.status == ServerStatus.NETWORK_CHANGE,
)
_IS_CHANGING = sa.select(_CHANGING).where(
    NETWORK.c.id == sa.bindparam('network_id')
)
_STUCK = (
    sa.select(NETWORK.c.id, NETWORK.c.status)
    .where(NETWORK.c.status == NetworkStatus.NETWORK_CHANGE, ~_CHANGING)
    .order_by(NETWORK.c.id)
    .limit(sa.bindparam('most'))
)


def get_target(session: Session, network_id: str) -> sa.Row:
    """What a request needs to authorise and check."""
    return _found(session.one(_TARGET, network_id=network_id), network_id)


def lock(session: Session, network_id: str) -> sa.Row:
    """The same row, which nobody else changes until the transaction ends.

    Nor are share servers born on the network meanwhile. Whatever changes
    the network, its subnets or its services holds it first.
    """
    return _found(session.one(_HOLD, network_id=network_id), network_id)


def lock_if_exists(session: Session, network_id: str) -> None:
    """The same where the network may be gone: it is held before servers."""
    session.one(_HOLD, network_id=network_id)


def lock_shared(session: Session, network_id: str) -> sa.Row:
    """The same for those who put something on the network.

    They do not wait for each other, only for who holds it.
    """
    return _found(session.one(_KEEP, network_id=network_id), network_id)


def _found(row: sa.Row | None, network_id: str) -> sa.Row:
    if row is None:
        raise exception.ShareNetworkNotFound(share_network_id=network_id)
    return row


def list_servers(session: Session, network_id: str) -> typing.Sequence[sa.Row]:
    """The share servers on the network, in order of their ids."""
    return session.rows(_SERVERS, network_id=network_id)


def has_servers(session: Session, network_id: str) -> bool:
    """Whether the network is in use."""
    return bool(session.value(_HAS_SERVERS, network_id=network_id))


def list_server_ids_in_subnets(
    session: Session, subnet_ids: Collection[str]
) -> set[str]:
    """The ids of the servers that are in one of these subnets."""
    return {
        row.share_server_id
        for row in session.rows(_IN, ids=sorted(subnet_ids))
    }


def list_share_instances(
    session: Session, server_ids: Collection[str]
) -> typing.Sequence[sa.Row]:
    """The share instances on some servers, in order of their ids."""
    return session.rows(_SHARES_ON, ids=sorted(server_ids))


def detach_servers(session: Session, server_ids: Collection[str]) -> None:
    """Have servers be on no network; their addresses stay given."""
    for statement in _LEAVE:
        session.run(statement, ids=sorted(server_ids))


def finish_change(session: Session, network_id: str, *, failed: bool) -> None:
    """Bring a network to rest when none of its servers is changing.

    Whoever ends the change of a server calls this in the same
    transaction, with whether it failed; one that fails is enough.
    """
    row = session.one(_HOLD, network_id=network_id)
    if row is None or row.status != NetworkStatus.NETWORK_CHANGE:
        return
    if failed:
        transitions.fire(
            session,
            SHARE_NETWORK,
            network_id,
            'change_failed',
            updated_at=session.now,
        )
    elif not session.value(_IS_CHANGING, network_id=network_id):
        transitions.fire(
            session,
            SHARE_NETWORK,
            network_id,
            'changed',
            updated_at=session.now,
        )


def list_stuck(session: Session, most: int) -> typing.Sequence[sa.Row]:
    """Networks in flight without a server that is changing."""
    return session.rows(_STUCK, most=most)


def has_shares(session: Session, network_id: str) -> bool:
    return bool(session.value(_HAS_SHARES, network_id=network_id))


def insert(session: Session, values: dict[str, typing.Any]) -> None:
    transitions.insert_row(session, SHARE_NETWORK, 'create', **values)


def update(
    session: Session, network_id: str, values: Mapping[str, object]
) -> None:
    """Change plain columns of a network; never its status."""
    if (
        session.run(
            sa.update(NETWORK)
            .where(NETWORK.c.id == network_id)
            .values(updated_at=session.now, **values)
        )
        != 1
    ):
        raise exception.ShareNetworkNotFound(share_network_id=network_id)


def remove(session: Session, network_id: str) -> None:
    """Make the last move; its services are detached, its checks go."""
    transitions.fire(session, SHARE_NETWORK, network_id, 'deleted')
