"""The resources that are healthy, worked on, stuck or failed, and their
numbers.

Few resources are not healthy, so a limited number of rows of each kind is read,
by the indexes of their statuses; counts end at that number.
"""

import functools
import typing

import sqlalchemy as sa

from manila_lite.db.dialects import db_now, filter_only
from manila_lite.db.queries.recovery.figures import HEALTHY as HEALTHY_STATUSES
from manila_lite.db.queries.recovery.recovery_kinds import KINDS, ResourceKind
from manila_lite.db.rows import ConditionCountRow, ConditionRow, NamedRow, UsageTotalRow
from manila_lite.db.session import Session
from manila_lite.db.tables import (
    GROUP,
    INSTANCE,
    JOURNAL,
    SHARE,
    SNAPSHOT,
    SNAPSHOT_INSTANCE,
    USAGE,
    WORK,
)
from manila_lite.states import (
    access_rule,
    share_instance,
    share_replica,
    share_server,
    share_task,
    share_transfer,
    snapshot_instance,
)

HEALTHY, WORKING, STUCK, FAILED = CONDITIONS = ('healthy', 'working', 'stuck', 'failed')

MOST = 200
"""Rows that are counted of each kind and condition."""


_REPLICA = ResourceKind(
    share_replica.SHARE_REPLICA, INSTANCE, INSTANCE.join(SHARE), (), INSTANCE.c.id
)
_KINDS = {**KINDS, share_replica.SHARE_REPLICA.resource: _REPLICA}
RESOURCES = tuple(_KINDS)
"""The names of the state machines whose rows are counted."""

OF_PROJECTS = tuple(
    resource
    for resource in RESOURCES
    if resource
    not in {
        access_rule.SHARE_INSTANCE_ACCESS.resource,
        share_server.SHARE_SERVER.resource,
        share_server.SHARE_SERVER_TASK.resource,
    }
)
"""Those whose rows the users of a project know."""

_OF_ALL_SHARES = {
    share_instance.SHARE_INSTANCE,
    snapshot_instance.SNAPSHOT_INSTANCE,
    access_rule.ACCESS_RULE,
    access_rule.SNAPSHOT_ACCESS_RULE,
}
"""Those with rows at rest for each share or snapshot of a project."""

_WITH_JOINS = {share_task.SHARE_TASK, share_transfer.SHARE_TRANSFER}
"""Those of whose rows only some are counted: which, the joins tell."""

_MOST = sa.bindparam('most', type_=sa.Integer())


def _is_alive() -> sa.ColumnElement[bool]:
    """Return the condition that work waits for a worker or has one."""
    return sa.or_(WORK.c.lease_until.is_(None), WORK.c.lease_until > db_now())


def _is_held(kind: ResourceKind) -> sa.ColumnElement[bool]:
    held: list[sa.ColumnElement[bool]] = [
        sa.exists().where(by, _is_alive()) for by in kind.holders
    ]
    if kind.waits is not None:
        held.append(kind.waits)
    return sa.or_(*held)


def _in_condition(kind: ResourceKind, condition: str) -> sa.ColumnElement[bool]:
    machine = kind.machine
    healthy = frozenset(HEALTHY_STATUSES[machine])
    if condition == HEALTHY:
        return kind.status.in_(sorted(healthy))
    if condition == FAILED:
        failed = machine.statuses - healthy - frozenset(machine.in_flight)
        return kind.status.in_(sorted(failed))
    held = _is_held(kind)
    return sa.and_(kind.is_in_flight, held if condition == WORKING else ~held)


def _parts(resource: str, condition: str) -> tuple[ResourceKind, ...]:
    kind = _KINDS[resource]
    if condition in (HEALTHY, FAILED):
        return (kind,)
    return kind.parts if kind.holders else ()


def _rows(
    kind: ResourceKind, condition: str, of_project: bool, *columns: typing.Any
) -> sa.Select:
    found = (
        sa.select(*columns)
        .select_from(kind.from_clause)
        .where(_in_condition(kind, condition))
    )
    if of_project:
        found = found.where(kind.owner.c.project_id == sa.bindparam('project'))
    return found


def _with_plain_status(kind: ResourceKind) -> ResourceKind:
    """Return the kind with a status that no index is entered by.

    Nearly all rows are healthy: those of a project, or the first in order,
    are found by other means. Only replicas have a replica state.
    """
    if kind is _REPLICA:
        return kind
    return kind._replace(shown_status=filter_only(kind.status))


@functools.cache
def _counts(of_project: bool, dialect: str) -> sa.CompoundSelect:
    counts = []
    for resource in OF_PROJECTS if of_project else RESOURCES:
        for condition in CONDITIONS:
            for kind in _parts(resource, condition):
                is_common = condition == HEALTHY and kind.machine in _OF_ALL_SHARES
                number = (
                    _healthy_of_project(kind)
                    if of_project and is_common and dialect == 'postgresql'
                    else _limited(kind, condition, of_project)
                )
                counts.append(
                    number.add_columns(
                        sa.literal(resource).label('resource'),
                        sa.literal(condition).label('condition'),
                    )
                )
    return sa.union_all(*counts)


def _limited(kind: ResourceKind, condition: str, of_project: bool) -> sa.Select:
    """Count rows, at most a number of them."""
    if of_project and condition == HEALTHY:
        kind = _with_plain_status(kind)
    # Rows with a project of their own are counted without joins.
    if (
        (not of_project or kind.owner is kind.table)
        and condition in (HEALTHY, FAILED)
        and kind.machine not in _WITH_JOINS
    ):
        kind = kind._replace(from_clause=kind.table)
    found = _rows(kind, condition, of_project, sa.literal(1).label('one'))
    limited = found.limit(_MOST).subquery()
    return sa.select(sa.func.count().label('number')).select_from(limited)


def _healthy_of_project(kind: ResourceKind) -> sa.Select:
    """Count the healthy rows of each share, up to the limit.

    For PostgreSQL, which would read the rows of all projects for a join:
    that is faster than one look-up for each share of the project, but not
    than one for each that is counted.
    """
    owned = kind.owner.alias('owned')
    of_one = (
        sa.select(sa.func.count())
        .select_from(kind.from_clause)
        .where(
            kind.owner.c.id == owned.c.id,
            _in_condition(_with_plain_status(kind), HEALTHY),
        )
        .correlate(owned)
        .scalar_subquery()
    )
    # The offset keeps it from counting twice, here and for the condition.
    each = (
        sa.select(of_one.label('number'))
        .where(owned.c.project_id == sa.bindparam('project'))
        .suffix_with(sa.text('OFFSET 0'), dialect='postgresql')
        .subquery()
    )
    enough = sa.select(each.c.number).where(each.c.number > 0).limit(_MOST).subquery()
    total = sa.func.coalesce(sa.func.sum(enough.c.number), 0)
    number = sa.func.least(total, _MOST)
    return sa.select(sa.cast(number, sa.Integer).label('number'))


def count(
    session: Session, project_id: str | None, *, most: int = MOST
) -> typing.Sequence[ConditionCountRow]:
    """Return the numbers of rows in each condition, by kind.

    With None as the project, those of all projects. Numbers end at `most`,
    which means that or more. Kinds without rows are left out.
    """
    values: dict[str, object] = {'most': most}
    if project_id is not None:
        values['project'] = project_id
    statement = _counts(project_id is not None, session.dialect)
    rows = session.rows(statement, **values)
    return [row for row in rows if row.number]


@functools.cache
def _totals(of_project: bool) -> sa.Select:
    found = (
        sa.select(
            USAGE.c.resource,
            sa.cast(sa.func.sum(USAGE.c.in_use), sa.BigInteger).label('number'),
        )
        .where(USAGE.c.scope == 'project')
        .group_by(USAGE.c.resource)
    )
    if of_project:
        found = found.where(USAGE.c.project_id == sa.bindparam('project'))
    return found


def list_totals(
    session: Session, project_id: str | None
) -> typing.Sequence[UsageTotalRow]:
    """Return the usage of each resource that quotas limit.

    It is that of a project, or of all projects for None. Usage is kept when resources
    are created and deleted, so nothing is counted here.
    """
    values = {} if project_id is None else {'project': project_id}
    return session.rows(_totals(project_id is not None), **values)


@functools.cache
def _listed(resource: str, condition: str, of_project: bool) -> sa.CompoundSelect:
    found = []
    for kind in _parts(resource, condition):
        since = (
            sa.select(sa.func.max(JOURNAL.c.made_at))
            .where(
                JOURNAL.c.resource == resource, JOURNAL.c.resource_id == kind.table.c.id
            )
            .scalar_subquery()
        )
        is_on_instance = INSTANCE in _tables(kind)
        if condition == HEALTHY:
            kind = _with_plain_status(kind)  # noqa: PLW2901
        part = _rows(
            kind,
            condition,
            of_project,
            kind.table.c.id.label('id'),
            kind.status.label('status'),
            kind.host.label('host'),
            kind.owner.c.project_id.label('project_id'),
            (INSTANCE.c.share_id if is_on_instance else sa.null()).label('share_id'),
            since.label('since'),
        )
        part = part.where(kind.table.c.id > sa.bindparam('after'))
        part = part.order_by(kind.table.c.id).limit(_MOST)
        found.append(sa.select(part.subquery()))
    return sa.union_all(*found).order_by('id').limit(_MOST)


def _tables(kind: ResourceKind) -> set[typing.Any]:
    return {
        element
        for element in sa.sql.visitors.iterate(kind.from_clause)
        if isinstance(element, sa.Table)
    }


def list_rows(
    session: Session,
    resource: str,
    condition: str,
    project_id: str | None,
    *,
    most: int,
    after: str = '',
) -> typing.Sequence[ConditionRow]:
    """Return up to `most` rows of a kind in a condition, behind an id."""
    known = RESOURCES if project_id is None else OF_PROJECTS
    if resource not in known or not _parts(resource, condition):
        return []
    values: dict[str, object] = {'most': most, 'after': after}
    if project_id is not None:
        values['project'] = project_id
    return session.rows(_listed(resource, condition, project_id is not None), **values)


def _named(
    resource_type: str,
    table: sa.Table,
    name: sa.ColumnElement,
    status: sa.ColumnElement,
    **columns: sa.ColumnElement,
) -> sa.Select:
    """Select rows with these ids by their columns as `NamedRow` has them."""
    return sa.select(
        table.c.id,
        name.label('name'),
        status.label('status'),
        columns['host'].label('host'),
        columns['page_id'].label('page_id'),
    ).where(table.c.id.in_(sa.bindparam(resource_type, expanding=True)))


_NAMED = {
    'SHARE': _named(
        'SHARE',
        SHARE,
        SHARE.c.display_name,
        INSTANCE.c.status,
        host=INSTANCE.c.host,
        page_id=SHARE.c.id,
    ).select_from(SHARE.outerjoin(INSTANCE, INSTANCE.c.share_id == SHARE.c.id)),
    'SHARE_SNAPSHOT': _named(
        'SHARE_SNAPSHOT',
        SNAPSHOT,
        SNAPSHOT.c.display_name,
        SNAPSHOT_INSTANCE.c.status,
        host=INSTANCE.c.host,
        page_id=SNAPSHOT.c.share_id,
    ).select_from(SNAPSHOT.join(SNAPSHOT_INSTANCE).join(INSTANCE)),
    'SHARE_REPLICA': _named(
        'SHARE_REPLICA',
        INSTANCE,
        SHARE.c.display_name,
        INSTANCE.c.status,
        host=INSTANCE.c.host,
        page_id=SHARE.c.id,
    ).select_from(INSTANCE.join(SHARE)),
    'SHARE_GROUP': _named(
        'SHARE_GROUP',
        GROUP,
        GROUP.c.name,
        GROUP.c.status,
        host=GROUP.c.host,
        page_id=GROUP.c.id,
    ),
}
"""By the resource types of messages."""

_OWNERS = {
    'SHARE': SHARE,
    'SHARE_SNAPSHOT': SNAPSHOT,
    'SHARE_REPLICA': SHARE,
    'SHARE_GROUP': GROUP,
}
# Their projects have deleted them.
_HIDDEN = sorted(
    share_instance.HIDDEN_FROM_TENANTS | snapshot_instance.HIDDEN_FROM_TENANTS
)
_STATUSES = {
    'SHARE': INSTANCE.c.status,
    'SHARE_SNAPSHOT': SNAPSHOT_INSTANCE.c.status,
    'SHARE_REPLICA': INSTANCE.c.status,
}


@functools.cache
def _names(resource_types: frozenset[str], of_project: bool) -> sa.CompoundSelect:
    found = []
    for one in sorted(resource_types):
        select = _NAMED[one]
        if of_project:
            owner = _OWNERS[one].c.project_id
            select = select.where(owner == sa.bindparam('project'))
            if one in _STATUSES:
                status = sa.func.coalesce(_STATUSES[one], '')
                select = select.where(status.not_in(_HIDDEN))
        found.append(select)
    return sa.union_all(*found)


def list_names(
    session: Session,
    ids: typing.Mapping[str, typing.Collection[str]],
    project_id: str | None,
) -> typing.Sequence[NamedRow]:
    """Return the names of resources, by the resource types of messages.

    A row for each instance of a share or snapshot has its status and host.
    Those of other projects are left out, if one is given.
    """
    values: dict[str, object] = {one: sorted(found) for one, found in ids.items()}
    if project_id is not None:
        values['project'] = project_id
    statement = _names(frozenset(ids), project_id is not None)
    return session.rows(statement, **values)
