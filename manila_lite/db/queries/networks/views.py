"""Share networks as users see them: a page, or one, with its subnets.

A page takes one statement, and one for its subnets with their metadata,
which repeats the page as a subquery.
"""

import dataclasses
import datetime

import sqlalchemy as sa

from manila_lite.db.models import networks, share_servers
from manila_lite.db.queries import pages
from manila_lite.db.queries.networks import subnets
from manila_lite.db.rows import Page
from manila_lite.db.session import Session

NETWORK = networks.ShareNetwork.__table__
SUBNET = networks.ShareNetworkSubnet.__table__
ATTACHED = networks.ShareNetworkSecurityService.__table__
SERVICE = networks.SecurityService.__table__
SERVER = share_servers.ShareServer.__table__


@dataclasses.dataclass
class ShareNetworkFilter:
    """Criteria for share networks; empty fields match everything.

    `network` and `subnet` are exact column values; one subnet must have
    all those of `subnet`. `like` are substrings. `security_service` is the
    id or the name of one. No network has a `nova_net_id`.
    """

    project_id: str | None = None
    network: dict[str, object] = dataclasses.field(default_factory=dict)
    subnet: dict[str, object] = dataclasses.field(default_factory=dict)
    like: dict[str, str] = dataclasses.field(default_factory=dict)
    created_since: datetime.datetime | None = None
    created_before: datetime.datetime | None = None
    security_service_id: str | None = None
    security_service: str | None = None
    nova_net_id: str | None = None


def _all_support(column: sa.Column) -> sa.ColumnElement[bool]:
    """Return whether all servers of a network have it; true for none."""
    return (
        ~sa.exists().where(SERVER.c.share_network_id == NETWORK.c.id, column.is_(False))
    ).label(column.name)


_SUMMARY = (NETWORK.c.id, NETWORK.c.name, NETWORK.c.created_at)
_SHOWN = (
    NETWORK.c.id,
    NETWORK.c.name,
    NETWORK.c.description,
    NETWORK.c.project_id,
    NETWORK.c.status,
    NETWORK.c.created_at,
    NETWORK.c.updated_at,
    _all_support(SERVER.c.security_service_update_support),
    _all_support(SERVER.c.network_allocation_update_support),
)
_ONE = sa.select(*_SHOWN).where(NETWORK.c.id == sa.bindparam('network_id'))


def get(session: Session, network_id: str) -> pages.Listing:
    """Return one network, or no rows if it does not exist."""
    return pages.Listing(
        session.rows(_ONE, network_id=network_id),
        {'subnets': {network_id: subnets.list_for_network(session, network_id)}},
    )


def list_page(
    session: Session,
    criteria: ShareNetworkFilter,
    page: Page,
    *,
    detailed: bool = False,
) -> pages.Listing:
    """Return ids and names of the networks of a page, or all that is shown."""
    if not detailed:
        statement = _page(session, criteria, page, *_SUMMARY)
        return pages.Listing(session.rows(statement), {})
    rows = session.rows(_page(session, criteria, page, *_SHOWN))
    ids = _page(session, criteria, page, NETWORK.c.id).subquery()
    return pages.Listing(rows, {'subnets': subnets.list_for_networks(session, ids)})


def _page(
    session: Session,
    criteria: ShareNetworkFilter,
    page: Page,
    *columns: sa.ColumnElement,
) -> sa.Select:
    return pages.select_page(
        sa.select(*columns).where(*_conditions(session, criteria)), page, NETWORK
    )


def _conditions(
    session: Session, criteria: ShareNetworkFilter
) -> list[sa.ColumnElement]:
    found: list[sa.ColumnElement] = [
        NETWORK.c[name] == value for name, value in criteria.network.items()
    ]
    if criteria.project_id is not None:
        found.append(NETWORK.c.project_id == criteria.project_id)
    found += [
        pages.contains(session, NETWORK.c[name], text)
        for name, text in criteria.like.items()
    ]
    if criteria.created_since is not None:
        found.append(NETWORK.c.created_at >= criteria.created_since)
    if criteria.created_before is not None:
        found.append(NETWORK.c.created_at <= criteria.created_before)
    if criteria.subnet:
        found.append(
            sa.exists().where(
                SUBNET.c.share_network_id == NETWORK.c.id,
                *(SUBNET.c[name] == value for name, value in criteria.subnet.items()),
            )
        )
    if criteria.nova_net_id is not None:
        found.append(sa.false())
    if criteria.security_service_id is not None:
        found.append(
            sa.exists().where(
                ATTACHED.c.share_network_id == NETWORK.c.id,
                ATTACHED.c.security_service_id == criteria.security_service_id,
            )
        )
    if criteria.security_service is not None:
        found.append(
            sa.exists().where(
                ATTACHED.c.share_network_id == NETWORK.c.id,
                SERVICE.c.id == ATTACHED.c.security_service_id,
                sa.or_(
                    SERVICE.c.id == criteria.security_service,
                    SERVICE.c.name == criteria.security_service,
                ),
            )
        )
    return found
