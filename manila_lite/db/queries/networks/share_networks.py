"""Share networks: as requests and work act on them, and as users see them.

A page for users takes one statement, and one for its subnets with their
metadata, which repeats the page as a subquery.
"""

from collections.abc import Collection
import dataclasses
import datetime
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db import rows
from manila_lite.db.queries import pages
from manila_lite.db.queries.columns import columns
from manila_lite.db.queries.networks import subnets
from manila_lite.db.queries.records import Records
from manila_lite.db.rows import Page
from manila_lite.db.session import Session
from manila_lite.db.tables import (
    ALLOCATION as ADDRESS,
    ATTACHED,
    GROUP,
    INSTANCE,
    NETWORK,
    NETWORK_CHECK as CHECK,
    OF_SUBNET,
    SECURITY_SERVICE as SERVICE,
    SERVER,
    SUBNET,
)
from manila_lite.states.share_server import ServerStatus

RECORDS: Records[rows.ShareNetworkRow] = Records(
    NETWORK,
    exception.ShareNetworkNotFound,
    'share_network_id',
    sa.select(*columns(rows.ShareNetworkRow, NETWORK)),
)

_SERVERS = (
    sa.select(*columns(rows.NetworkServerRow, SERVER))
    .where(SERVER.c.share_network_id == sa.bindparam('network_id'))
    .order_by(SERVER.c.id)
)
_HAS_SERVERS = sa.select(
    sa.exists().where(SERVER.c.share_network_id == sa.bindparam('network_id'))
)
_HAS_SHARES = sa.select(
    sa.exists().where(INSTANCE.c.share_network_id == sa.bindparam('network_id'))
)
_HAS_GROUPS = sa.select(
    sa.exists().where(GROUP.c.share_network_id == sa.bindparam('network_id'))
)
_SERVERS_IN_SUBNETS = sa.select(OF_SUBNET.c.share_server_id).where(
    OF_SUBNET.c.share_network_subnet_id.in_(sa.bindparam('ids', expanding=True))
)
_SHARE_INSTANCES = (
    sa.select(*columns(rows.NetworkInstanceRow, INSTANCE))
    .where(INSTANCE.c.share_server_id.in_(sa.bindparam('ids', expanding=True)))
    .order_by(INSTANCE.c.id)
)
_IDS: sa.BindParameter[str] = sa.bindparam('ids', expanding=True)
_SHARE_GROUPS = (
    sa.select(GROUP.c.id, GROUP.c.status)
    .where(GROUP.c.share_server_id.in_(_IDS))
    .order_by(GROUP.c.id)
)
_DETACH = (
    sa.delete(OF_SUBNET).where(OF_SUBNET.c.share_server_id.in_(_IDS)),
    sa.update(ADDRESS)
    .where(ADDRESS.c.share_server_id.in_(_IDS))
    .values(share_network_subnet_id=None),
    sa.update(SERVER).where(SERVER.c.id.in_(_IDS)).values(share_network_id=None),
)
_IS_CHANGING = sa.select(
    sa.exists().where(
        SERVER.c.share_network_id == sa.bindparam('network_id'),
        SERVER.c.status == ServerStatus.NETWORK_CHANGE,
    )
)


get_target, update = RECORDS.get, RECORDS.update

# `lock` also keeps share servers from being created on the network. Code that
# changes the network, its subnets or its security services locks it first.
# Networks are locked before servers. `lock_shared` is for code that puts
# something on the network; it waits only for `lock`.
lock, lock_if_exists = RECORDS.lock, RECORDS.find_locked
lock_shared = RECORDS.lock_shared


def list_servers(
    session: Session, network_id: str
) -> typing.Sequence[rows.NetworkServerRow]:
    """Return the share servers on a network, ordered by id."""
    return session.rows(_SERVERS, network_id=network_id)


def has_servers(session: Session, network_id: str) -> bool:
    """Whether any share server is on the network."""
    return bool(session.value(_HAS_SERVERS, network_id=network_id))


def list_server_ids_in_subnets(
    session: Session, subnet_ids: Collection[str]
) -> set[str]:
    """Return the ids of the servers in any of these subnets."""
    return {
        row.share_server_id
        for row in session.rows(_SERVERS_IN_SUBNETS, ids=sorted(subnet_ids))
    }


def list_share_instances(
    session: Session, server_ids: Collection[str]
) -> typing.Sequence[rows.NetworkInstanceRow]:
    """Return the share instances on some servers, ordered by id."""
    return session.rows(_SHARE_INSTANCES, ids=sorted(server_ids))


def list_share_groups(
    session: Session, server_ids: Collection[str]
) -> typing.Sequence[rows.NetworkGroupRow]:
    """Return the share groups on some servers, ordered by id."""
    return session.rows(_SHARE_GROUPS, ids=sorted(server_ids))


def detach_servers(session: Session, server_ids: Collection[str]) -> None:
    """Detach servers from their network; they keep their addresses."""
    for statement in _DETACH:
        session.run(statement, ids=sorted(server_ids))


def is_changing(session: Session, network_id: str) -> bool:
    """Whether any server of the network is changing."""
    return bool(session.value(_IS_CHANGING, network_id=network_id))


def has_shares(session: Session, network_id: str) -> bool:
    return bool(session.value(_HAS_SHARES, network_id=network_id))


def has_share_groups(session: Session, network_id: str) -> bool:
    return bool(session.value(_HAS_GROUPS, network_id=network_id))


_OF = (
    CHECK.c.share_network_id == sa.bindparam('network_id'),
    CHECK.c.operation == sa.bindparam('of_operation'),
)
_RESULTS = (
    sa.select(CHECK.c.host, CHECK.c.compatible).where(*_OF).order_by(CHECK.c.host)
)
_RECORD = (
    sa.update(CHECK)
    .where(*_OF, CHECK.c.host == sa.bindparam('of_host'))
    .values(compatible=sa.bindparam('reply'))
)
_DELETE = sa.delete(CHECK).where(*_OF)
_DELETE_ALL = sa.delete(CHECK).where(
    CHECK.c.share_network_id == sa.bindparam('network_id')
)


def get_results(
    session: Session, network_id: str, operation: str
) -> dict[str, bool | None]:
    """Return the reply of each back end by host; None is outstanding.

    Empty if none was asked. `operation` is a digest of the change.
    """
    return {
        row.host: row.compatible
        for row in session.rows(_RESULTS, network_id=network_id, of_operation=operation)
    }


def start(
    session: Session, network_id: str, operation: str, hosts: Collection[str]
) -> None:
    """Start a check by these back ends and discard earlier replies."""
    session.run(_DELETE, network_id=network_id, of_operation=operation)
    session.run_many(
        sa.insert(CHECK),
        [
            {
                'share_network_id': network_id,
                'operation': operation,
                'host': host,
                'created_at': session.now,
            }
            for host in sorted(hosts)
        ],
    )


def record_result(
    session: Session, network_id: str, operation: str, host: str, compatible: bool
) -> None:
    """Store a reply, unless the check has been discarded."""
    session.run(
        _RECORD,
        network_id=network_id,
        of_operation=operation,
        of_host=host,
        reply=compatible,
    )


def delete_all(session: Session, network_id: str) -> None:
    """Discard all checks of a network, because it has changed."""
    session.run(_DELETE_ALL, network_id=network_id)


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
