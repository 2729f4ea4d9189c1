"""Security services: connection data of projects' directory services."""

import collections
from collections.abc import Mapping, Sequence
import dataclasses
import typing

from oslo_db import exception as db_exc
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries import pages
from manila_lite.db.queries.records import Records
from manila_lite.db.rows import Page, SecurityServiceRow
from manila_lite.db.session import ConcurrentChange, Session
from manila_lite.db.tables import (
    ATTACHED,
    NETWORK,
    SECURITY_SERVICE as SERVICE,
    SERVER,
    WORK,
)

ALWAYS_CHANGEABLE = frozenset({'name', 'description'})
"""The columns that may be changed while share servers use the service."""

RECORDS: Records[SecurityServiceRow] = Records(
    SERVICE, exception.SecurityServiceNotFound, 'security_service_id'
)

_SUMMARY = (SERVICE.c.id, SERVICE.c.name, SERVICE.c.type, SERVICE.c.created_at)
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
_LOCK_NETWORKS = _NETWORKS.with_for_update(of=NETWORK)
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
_SET_TYPE = (
    sa.update(ATTACHED)
    .where(ATTACHED.c.security_service_id == sa.bindparam('service_id'))
    .values(type=sa.bindparam('new_type'))
)


get, find, lock_shared = RECORDS.get, RECORDS.find, RECORDS.lock_shared


@dataclasses.dataclass
class SecurityServiceFilter:
    """Criteria for security services; empty fields match everything."""

    project_id: str | None = None
    exact: dict[str, str] = dataclasses.field(default_factory=dict)
    share_network_id: str | None = None


# Reading


def list_for_network(session: Session, network_id: str) -> Sequence[SecurityServiceRow]:
    """Return the services attached to a network, by type."""
    return session.rows(_OF_NETWORK, network_id=network_id)


def list_page(
    session: Session,
    criteria: SecurityServiceFilter,
    page: Page,
    *,
    detailed: bool = False,
) -> pages.Listing:
    """Return id, name and type of the services of a page.

    With `detailed`, return all columns, and which networks use the services.
    """
    if not detailed:
        return pages.Listing(session.rows(_page(criteria, page, *_SUMMARY)), {})
    rows = session.rows(_page(criteria, page, *SERVICE.c))
    ids = _page(criteria, page, SERVICE.c.id).subquery()
    found: dict[str, list[str]] = collections.defaultdict(list)
    for service_id, network_id in session.rows(
        sa.select(ATTACHED.c.security_service_id, ATTACHED.c.share_network_id)
        .join(ids, ids.c.id == ATTACHED.c.security_service_id)
        .order_by(ATTACHED.c.share_network_id)
    ):
        found[service_id].append(network_id)
    return pages.Listing(rows, {'networks': found})


def _page(
    criteria: SecurityServiceFilter, page: Page, *columns: sa.ColumnElement
) -> sa.Select:
    return pages.select_page(
        sa.select(*columns).where(*_conditions(criteria)), page, SERVICE
    )


def _conditions(criteria: SecurityServiceFilter) -> list[sa.ColumnElement]:
    found: list[sa.ColumnElement] = [
        SERVICE.c[name] == value for name, value in criteria.exact.items()
    ]
    if criteria.project_id is not None:
        found.append(SERVICE.c.project_id == criteria.project_id)
    if criteria.share_network_id is not None:
        found.append(
            sa.exists().where(
                ATTACHED.c.security_service_id == SERVICE.c.id,
                ATTACHED.c.share_network_id == criteria.share_network_id,
            )
        )
    return found


# Writing


def create(
    session: Session, project_id: str, values: Mapping[str, object]
) -> SecurityServiceRow:
    """Insert a service; return its row."""
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
) -> SecurityServiceRow:
    """Change a service and return its row.

    Only name and description can be changed while it is in use.
    """
    if values.keys() - ALWAYS_CHANGEABLE:
        _lock_unused(session, service_id)
    if values:
        RECORDS.update(session, service_id, values)
    if 'type' in values:
        _set_type(session, service_id, values['type'])
    return get(session, service_id)


def _lock_unused(session: Session, service_id: str) -> None:
    """Lock a service and its networks; refuse if share servers use it.

    The lock keeps servers from being created with it. Networks are always
    locked before services; if another network has attached the service in
    the meantime, the transaction runs again.
    """
    locked = session.rows(_LOCK_NETWORKS, service_id=service_id)
    RECORDS.lock(session, service_id)
    if session.rows(_NETWORKS, service_id=service_id) != locked:
        raise ConcurrentChange(table=ATTACHED.name)
    if session.value(_HAS_SERVERS, service_id=service_id) or session.value(
        _IS_BEING_CHANGED, service_id=service_id
    ):
        raise exception.SecurityServiceInUse(
            security_service_id=service_id,
            reason='share servers use it; only its name and description can be changed',
        )


def _set_type(session: Session, service_id: str, type: str) -> None:
    try:
        session.run(_SET_TYPE, service_id=service_id, new_type=type)
    except db_exc.DBDuplicateEntry:
        raise exception.InvalidInput(
            reason=f'type cannot be {type}: a share network with this '
            'service has another one of that type'
        ) from None


def delete(session: Session, service_id: str) -> None:
    """Delete a service that no network uses."""
    RECORDS.lock(session, service_id)
    if session.rows(_NETWORKS, service_id=service_id):
        raise exception.SecurityServiceInUse(
            security_service_id=service_id, reason='it is attached to a share network'
        )
    if session.value(_IS_BEING_CHANGED, service_id=service_id):
        raise exception.SecurityServiceInUse(
            security_service_id=service_id,
            reason='share servers are still being taken off it',
        )
    session.run(_DELETE, service_id=service_id)


# On networks; the caller has locked the network


def attach(session: Session, network_id: str, service: SecurityServiceRow) -> None:
    """Attach a service to a network; only one of each type is allowed."""
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
    """Return the error for a second service of a type."""
    return exception.SecurityServiceConflict(
        share_network_id=network_id,
        reason=f'it has a security service of type {type} already',
    )


def detach(session: Session, network_id: str, service_id: str) -> bool:
    """Detach a service from a network; return whether it was attached."""
    return session.run(_DETACH, network_id=network_id, service_id=service_id) == 1


def replace(
    session: Session, network_id: str, service_id: str, new_service_id: str
) -> bool:
    """Replace a service of a network; return whether it was attached."""
    return (
        session.run(
            _REPLACE,
            network_id=network_id,
            service_id=service_id,
            new_service_id=new_service_id,
        )
        == 1
    )
