"""Share servers as administrators see them.

A list takes two statements: the servers, and their subnets. Back-end
details are read for a single server only.
"""

from collections.abc import Sequence
import dataclasses
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries import pages
from manila_lite.db.rows import Page, ServerTarget
from manila_lite.db.session import Session
from manila_lite.db.tables import NETWORK, OF_SUBNET, SERVER, SERVER_DETAIL as DETAIL

_SHOWN = sa.select(
    SERVER,
    NETWORK.c.project_id,
    sa.func.coalesce(sa.func.nullif(NETWORK.c.name, ''), NETWORK.c.id).label(
        'share_network_name'
    ),
).select_from(SERVER.outerjoin(NETWORK))
_ONE = _SHOWN.where(SERVER.c.id == sa.bindparam('of_server'))
_SUBNETS = sa.select(
    OF_SUBNET.c.share_server_id, OF_SUBNET.c.share_network_subnet_id
).order_by(OF_SUBNET.c.share_network_subnet_id)
_SUBNETS_OF_ONE = _SUBNETS.where(
    OF_SUBNET.c.share_server_id == sa.bindparam('of_server')
)
_DETAILS_OF_ONE = (
    sa.select(DETAIL.c.key, DETAIL.c.value)
    .where(DETAIL.c.share_server_id == sa.bindparam('of_server'))
    .order_by(DETAIL.c.key)
)


@dataclasses.dataclass
class ShareServerFilter:
    """Criteria for share servers; empty fields match everything.

    `exact` are column values; a network is given by its id or its name.
    With `match_nothing` no server matches, whatever the other fields say.
    """

    exact: dict[str, object] = dataclasses.field(default_factory=dict)
    project_id: str | None = None
    network: str | None = None
    subnet_id: str | None = None
    match_nothing: bool = False


class ShareServerListing(typing.NamedTuple):
    """Rows to show, and their children by server id.

    The children are `subnets` (ordered ids) and, for a single server,
    `details` (a dict of strings).
    """

    rows: Sequence[ServerTarget]
    children: dict[str, dict[str, typing.Any]]


def get(session: Session, server_id: str) -> ShareServerListing:
    """Return one server with its children; raises ShareServerNotFound."""
    row = get_target(session, server_id)
    subnets = session.rows(_SUBNETS_OF_ONE, of_server=server_id)
    return ShareServerListing(
        [row],
        {
            'subnets': _by_server(subnets),
            'details': {server_id: get_backend_details(session, server_id)},
        },
    )


def get_target(session: Session, server_id: str) -> ServerTarget:
    """Return a server, its project and the name of its network."""
    row = session.first(_ONE, of_server=server_id)
    if row is None:
        raise exception.ShareServerNotFound(share_server_id=server_id)
    return row


def get_backend_details(session: Session, server_id: str) -> dict[str, str]:
    """Return the details that the driver has stored for a server."""
    return {
        row.key: row.value for row in session.rows(_DETAILS_OF_ONE, of_server=server_id)
    }


def list_servers(session: Session, criteria: ShareServerFilter) -> ShareServerListing:
    """Return the servers, newest first, with their subnets."""
    if criteria.match_nothing:
        return ShareServerListing([], {'subnets': {}})
    conditions = _conditions(criteria)
    rows = session.rows(
        _SHOWN.where(*conditions).order_by(
            SERVER.c.created_at.desc(), SERVER.c.id.desc()
        )
    )
    these = (
        sa.select(SERVER.c.id).select_from(SERVER.outerjoin(NETWORK)).where(*conditions)
    )
    subnets = session.rows(_SUBNETS.where(OF_SUBNET.c.share_server_id.in_(these)))
    return ShareServerListing(rows, {'subnets': _by_server(subnets)})


def list_page(
    session: Session, criteria: ShareServerFilter, page: Page
) -> Sequence[ServerTarget]:
    """Return a page of the servers, newest first, without children."""
    return session.rows(
        pages.select_page(_SHOWN.where(*_conditions(criteria)), page, SERVER)
    )


def _conditions(criteria: ShareServerFilter) -> list[sa.ColumnElement]:
    found: list[sa.ColumnElement] = [
        SERVER.c[name] == value for name, value in criteria.exact.items()
    ]
    if criteria.project_id is not None:
        found.append(NETWORK.c.project_id == criteria.project_id)
    if criteria.network is not None:
        found.append(
            sa.or_(
                SERVER.c.share_network_id == criteria.network,
                NETWORK.c.name == criteria.network,
            )
        )
    if criteria.subnet_id is not None:
        of_subnet = OF_SUBNET.alias()
        found.append(
            sa.exists()
            .where(
                of_subnet.c.share_server_id == SERVER.c.id,
                of_subnet.c.share_network_subnet_id == criteria.subnet_id,
            )
            .correlate(SERVER)
        )
    return found


def _by_server(rows: Sequence[sa.Row]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row.share_server_id, []).append(row.share_network_subnet_id)
    return found
