"""Security services: how to reach the directory services of tenants."""

import collections
from collections.abc import Mapping, Sequence
import dataclasses
import typing

from oslo_db import exception as db_exc
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import engine
from manila_lite.db.models import networks
from manila_lite.db.models import share_servers
from manila_lite.db.session import ConcurrentChange
from manila_lite.db.session import Session

SERVICE = networks.SecurityService.__table__
ATTACHED = networks.ShareNetworkSecurityService.__table__
NETWORK = networks.ShareNetwork.__table__
SERVER = share_servers.ShareServer.__table__
WORK = engine.Work.__table__

ALWAYS_CHANGEABLE = frozenset({'name', 'description'})
"""What may be changed while share servers use the service."""

_ONE = sa.select(SERVICE).where(SERVICE.c.id == sa.bindparam('service_id'))
_HOLD = _ONE.with_for_update()
_KEEP = _ONE.with_for_update(read=True)
_OF_NETWORK = (
    sa.select(SERVICE)
    .join(ATTACHED, ATTACHED.c.security_service_id == SERVICE.c.id)
    .where(ATTACHED.c.share_network_id == sa.bindparam('network_id'))
    .order_by(SERVICE.c.type)
)
_NETWORKS = (
    sa.select(NETWORK.c.id)
    .join(ATTACHED, ATTACHED.c.share_network_id == NETWORK.c.id)
    .where(ATTACHED.c.security_service_id == sa.bindparam('service_id'))
    .order_by(NETWORK.c.id)
)
_HOLD_NETWORKS = _NETWORKS.with_for_update(of=NETWORK)
_HAS_SERVERS = sa.select(
    sa.exists().where(
        ATTACHED.c.security_service_id == sa.bindparam('service_id'),
        SERVER.c.share_network_id == ATTACHED.c.share_network_id,
    )
)
_IS_BEING_CHANGED = sa.select(
    sa.exists().where(
        WORK.c.kind == 'network_updates.update_security_service',
        WORK.c.args.contains(sa.bindparam('service_id'), autoescape=False),
    )
)
_DELETE = sa.delete(SERVICE).where(SERVICE.c.id == sa.bindparam('service_id'))
_DETACH = sa.delete(ATTACHED).where(
    ATTACHED.c.share_network_id == sa.bindparam('network_id'),
    ATTACHED.c.security_service_id == sa.bindparam('service_id'),
)
_REPLACE = (
    sa.update(ATTACHED)
    .where(
        ATTACHED.c.share_network_id == sa.bindparam('network_id'),
        ATTACHED.c.security_service_id == sa.bindparam('service_id'),
    )
    .values(security_service_id=sa.bindparam('new_service_id'))
)
_RETYPE = (
    sa.update(ATTACHED)
    .where(ATTACHED.c.security_service_id == sa.bindparam('service_id'))
    .values(type=sa.bindparam('new_type'))
)


@dataclasses.dataclass
class SecurityServiceFilter:
    """Which services: empty fields do not narrow anything."""

    project_id: str | None = None
    exact: dict[str, str] = dataclasses.field(default_factory=dict)
    share_network_id: str | None = None


class SecurityServiceListing(typing.NamedTuple):
    """Rows to show, and the ids of networks by that of the service."""

    rows: Sequence[sa.Row]
    networks: dict[str, list[str]]


# Reading


def get(session: Session, service_id: str) -> sa.Row:
    """The service with all it has, its password too."""
    return _found(session.one(_ONE, service_id=service_id), service_id)


def find(session: Session, service_id: str) -> sa.Row | None:
    """The same, or None."""
    return session.one(_ONE, service_id=service_id)


def lock_shared(session: Session, service_id: str) -> sa.Row:
    """The same, which nobody changes until the transaction ends."""
    return _found(session.one(_KEEP, service_id=service_id), service_id)


def _found(row: sa.Row | None, service_id: str) -> sa.Row:
    if row is None:
        raise exception.SecurityServiceNotFound(security_service_id=service_id)
    return row


def list_for_network(session: Session, network_id: str) -> Sequence[sa.Row]:
    """The services attached to a network, by type."""
    return session.rows(_OF_NETWORK, network_id=network_id)


def list_summaries(
    session: Session, wanted: SecurityServiceFilter, page: typing.Any
) -> SecurityServiceListing:
    """Id, name and type of the services of a page."""
    return SecurityServiceListing(
        session.rows(
            _page(wanted, page, SERVICE.c.id, SERVICE.c.name, SERVICE.c.type)
        ),
        {},
    )


def list_details(
    session: Session, wanted: SecurityServiceFilter, page: typing.Any
) -> SecurityServiceListing:
    """The services of a page, and which networks use them."""
    rows = session.rows(_page(wanted, page, *SERVICE.c))
    ids = _page(wanted, page, SERVICE.c.id).subquery()
    found: dict[str, list[str]] = collections.defaultdict(list)
    for service_id, network_id in session.rows(
        sa.select(ATTACHED.c.security_service_id, ATTACHED.c.share_network_id)
        .join(ids, ids.c.id == ATTACHED.c.security_service_id)
        .order_by(ATTACHED.c.share_network_id)
    ):
        found[service_id].append(network_id)
    return SecurityServiceListing(rows, found)


def _page(
    wanted: SecurityServiceFilter, page: typing.Any, *columns: sa.ColumnElement
) -> sa.Select:
    statement = (
        sa.select(*columns)
        .where(*_conditions(wanted))
        .order_by(SERVICE.c.created_at.desc(), SERVICE.c.id.desc())
        .limit(page.limit)
    )
    return statement.offset(page.offset) if page.offset else statement


def _conditions(wanted: SecurityServiceFilter) -> list[sa.ColumnElement]:
    found: list[sa.ColumnElement] = [
        SERVICE.c[name] == value for name, value in wanted.exact.items()
    ]
    if wanted.project_id is not None:
        found.append(SERVICE.c.project_id == wanted.project_id)
    if wanted.share_network_id is not None:
        found.append(
            sa.exists().where(
                ATTACHED.c.security_service_id == SERVICE.c.id,
                ATTACHED.c.share_network_id == wanted.share_network_id,
            )
        )
    return found


# Writing


def create(
    session: Session, project_id: str, values: Mapping[str, object]
) -> sa.Row:
    """Create a service; its row."""
    id = session.new_id()
    session.run(
        sa.insert(SERVICE),
        id=id,
        project_id=project_id,
        created_at=session.now,
        **values,
    )
    return get(session, id)


def update(
    session: Session, service_id: str, values: Mapping[str, typing.Any]
) -> sa.Row:
    """Change a service; its row. One in use keeps all but its name."""
    if values.keys() - ALWAYS_CHANGEABLE:
        _hold_unused(session, service_id)
    if values:
        session.run(
            sa.update(SERVICE)
            .where(SERVICE.c.id == service_id)
            .values(updated_at=session.now, **values)
        )
    if 'type' in values:
        _retype(session, service_id, values['type'])
    return get(session, service_id)


def _hold_unused(session: Session, service_id: str) -> None:
    """Keep servers from being made with it; refuse if there are any.

    Networks are locked before services, always; one that the service was
    added to meanwhile begins all of it anew.
    """
    held = session.rows(_HOLD_NETWORKS, service_id=service_id)
    _found(session.one(_HOLD, service_id=service_id), service_id)
    if session.rows(_NETWORKS, service_id=service_id) != held:
        raise ConcurrentChange(table=ATTACHED.name)
    if session.value(_HAS_SERVERS, service_id=service_id) or session.value(
        _IS_BEING_CHANGED, service_id=service_id
    ):
        raise exception.SecurityServiceInUse(
            security_service_id=service_id,
            reason='share servers use it; only its name and description '
            'can be changed',
        )


def _retype(session: Session, service_id: str, type: str) -> None:
    try:
        session.run(_RETYPE, service_id=service_id, new_type=type)
    except db_exc.DBDuplicateEntry:
        raise exception.InvalidInput(
            reason=f'type cannot be {type}: a share network with this '
            'service has another one of that type'
        ) from None


def delete(session: Session, service_id: str) -> None:
    """Remove a service that no network uses."""
    _found(session.one(_HOLD, service_id=service_id), service_id)
    if session.rows(_NETWORKS, service_id=service_id):
        raise exception.SecurityServiceInUse(
            security_service_id=service_id,
            reason='it is attached to a share network',
        )
    if session.value(_IS_BEING_CHANGED, service_id=service_id):
        raise exception.SecurityServiceInUse(
            security_service_id=service_id,
            reason='share servers are still being taken off it',
        )
    session.run(_DELETE, service_id=service_id)


# On networks; the network is held by the caller


def attach(session: Session, network_id: str, service: sa.Row) -> None:
    """Have a network use a service, as the only one of its type."""
    try:
        session.run(
            sa.insert(ATTACHED),
            share_network_id=network_id,
            security_service_id=service.id,
            type=service.type,
        )
    except db_exc.DBDuplicateEntry:
        raise type_conflict(network_id, service.type) from None


def type_conflict(network_id: str, type: str) -> exception.ManilaLiteError:
    """The error of a second service of a type."""
    return exception.SecurityServiceConflict(
        share_network_id=network_id,
        reason=f'it has a security service of type {type} already',
    )


def detach(session: Session, network_id: str, service_id: str) -> bool:
    """Have a network no longer use a service; whether it did."""
    return (
        session.run(_DETACH, network_id=network_id, service_id=service_id) == 1
    )


def replace(
    session: Session, network_id: str, service_id: str, new_service_id: str
) -> bool:
    """Have a network use one instead of another of its type."""
    return (
        session.run(
            _REPLACE,
            network_id=network_id,
            service_id=service_id,
            new_service_id=new_service_id,
        )
        == 1
    )
