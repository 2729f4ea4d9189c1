"""Rows in flight, the work that holds them, and the log of recovery.

`recovery_kinds` says what the rows of each state machine are.
"""

from collections.abc import Collection
import datetime
import functools
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.dialects import db_now
from manila_lite.db.queries.recovery.recovery_kinds import (
    KINDS,
    Condition,
    ResourceKind,
)
from manila_lite.db.queries.work import queues
from manila_lite.db.rows import (
    HoldingWorkRow,
    InFlightRow,
    RecoveryLogRow,
    StuckRow,
    SubjectRow,
)
from manila_lite.db.session import Session
from manila_lite.db.tables import CALL, JOURNAL, LOG, SERVICE, WORK
from manila_lite.host import Host

_MOST = sa.bindparam('most', type_=sa.Integer())


def _rows(kind: ResourceKind) -> sa.Select:
    """Return the selection of rows in flight, without an order."""
    return (
        sa.select(
            sa.literal(kind.machine.resource).label('resource'),
            kind.table.c.id,
            kind.status.label('status'),
            kind.subject_id.label('subject_id'),
            kind.host.label('host'),
            kind.owner.c.project_id,
            kind.owner.c.user_id,
        )
        .select_from(kind.from_clause)
        .where(kind.is_in_flight)
    )


def _moves(kind: ResourceKind) -> tuple[Condition, Condition]:
    """Return the conditions for the journal entries of a row."""
    return (
        JOURNAL.c.resource == kind.machine.resource,
        JOURNAL.c.resource_id == kind.table.c.id,
    )


def _union(parts: list[sa.Select]) -> sa.Select | sa.CompoundSelect:
    """Return the first `most` rows of selections that have such a limit."""
    if len(parts) == 1:
        return parts[0]
    # SQLite has no parentheses around selections with a limit.
    return sa.union_all(*(sa.select(part.subquery()) for part in parts))


@functools.cache
def _in_flight(resource: str, placed: bool = False) -> sa.Select | sa.CompoundSelect:
    """Return the ordered selection, with the time of the last move."""
    found = []
    for kind in KINDS[resource].parts:
        since = (
            sa.select(sa.func.max(JOURNAL.c.made_at))
            .where(*_moves(kind))
            .scalar_subquery()
        )
        part = (
            _rows(kind)
            .add_columns(
                since.label('since'),
                (sa.false() if kind.waits is None else kind.waits).label('waits'),
            )
            .where(kind.table.c.id > sa.bindparam('after'))
            .order_by(kind.table.c.id)
            .limit(_MOST)
        )
        found.append(part.where(_is_on(kind)) if placed else part)
    union = _union(found)
    if isinstance(union, sa.CompoundSelect):
        return union.order_by('id').limit(_MOST)
    return union


@functools.cache
def _stuck(
    resource: str, placed: bool, with_before: bool
) -> sa.Select | sa.CompoundSelect:
    """Return the selection of rows without work, on one back end.

    It has no order, so that of thousands only `most` rows are read.
    """
    found = []
    for kind in KINDS[resource].parts:
        part = _rows(kind).where(
            *(~sa.exists().where(holder) for holder in kind.holders),
            _is_on(kind) if placed else kind.host.is_(None),
        )
        if kind.waits is not None:
            part = part.where(~kind.waits)
        if with_before:
            part = part.where(
                ~sa.exists().where(
                    *_moves(kind),
                    JOURNAL.c.made_at
                    >= sa.bindparam('before', type_=JOURNAL.c.made_at.type),
                )
            )
        found.append(part.limit(_MOST))
    union = _union(found)
    return union.limit(_MOST) if len(found) > 1 else union


@functools.cache
def _stuck_kinds(
    resources: tuple[str, ...], placed: bool, with_before: bool
) -> sa.CompoundSelect:
    """Return the selection of the kinds of which a row is stuck."""
    return sa.union_all(
        *(
            sa.select(sa.literal(resource).label('resource')).select_from(
                _stuck(resource, placed, with_before).subquery()
            )
            for resource in resources
        )
    )


def _is_on(kind: ResourceKind) -> Condition:
    """Return the condition for rows on this back end, in any pool."""
    return kind.service_host == sa.bindparam('of_service')


def list_stuck(
    session: Session,
    resource: str,
    service_host: str | None,
    *,
    most: int,
    before: datetime.datetime | None = None,
) -> typing.Sequence[StuckRow]:
    """Return up to `most` rows in flight for which no work is queued.

    They are those of one back end (`host@backend`, including its pools),
    or with None those that have no host yet; with `before`, only rows
    without a move since that time.
    """
    statement = _stuck(resource, service_host is not None, before is not None)
    values: dict[str, object] = {'most': most}
    if service_host is not None:
        values['of_service'] = service_host
    if before is not None:
        values['before'] = before
    return session.rows(statement, **values)


def list_stuck_kinds(
    session: Session,
    resources: typing.Collection[str],
    service_host: str | None,
    before: datetime.datetime | None = None,
) -> list[str]:
    """Return the kinds of which `list_stuck` finds rows.

    They are in the order of `KINDS`, and asked for in one statement.
    """
    asked = tuple(kind for kind in KINDS if kind in resources)
    statement = _stuck_kinds(asked, service_host is not None, before is not None)
    values: dict[str, object] = {'most': 1}
    if service_host is not None:
        values['of_service'] = service_host
    if before is not None:
        values['before'] = before
    found = session.rows(statement, **values)
    return sorted((row.resource for row in found), key=asked.index)


@functools.cache
def _waiting(resource: str) -> sa.Select | None:
    kind = KINDS[resource]
    if kind.waits is None:
        return None
    return (
        sa.select(sa.literal(1))
        .select_from(kind.from_clause)
        .where(kind.table.c.id == sa.bindparam('of_id'), kind.is_in_flight, kind.waits)
    )


def is_waiting(session: Session, resource: str, id: str) -> bool:
    """Whether a row in flight waits for another resource.

    It is rescued with that one, and so never by itself.
    """
    statement = _waiting(resource)
    return statement is not None and bool(session.value(statement, of_id=id))


def get_resource(session: Session, resource: str, id: str) -> SubjectRow:
    """Return host, owner and `subject_id` of a resource in any status.

    Raises ResourceNotFound.
    """
    for kind in KINDS[resource].parts:
        row = session.first(
            sa.select(
                kind.host.label('host'),
                kind.subject_id.label('subject_id'),
                kind.owner.c.project_id,
                kind.owner.c.user_id,
            )
            .select_from(kind.from_clause)
            .where(kind.table.c.id == id)
        )
        if row is not None:
            return row
    raise exception.ResourceNotFound(
        resource=resource.replace('_', ' ').capitalize(), id=id
    )


def list_in_flight(
    session: Session,
    resource: str,
    *,
    host: str | None = None,
    most: int,
    after: str = '',
) -> typing.Sequence[InFlightRow]:
    """Return up to `most` rows in flight, ordered by id, after an id."""
    statement = _in_flight(resource, host is not None)
    values: dict[str, object] = {'most': most, 'after': after}
    if host is not None:
        values['of_service'] = host
    return session.rows(statement, **values)


@functools.cache
def _all_in_flight(placed: bool) -> sa.Select:
    """Return the selection of all kinds, in their order."""
    parts = [
        sa.select(
            sa.literal(number, sa.Integer()).label('number'),
            _in_flight(resource, placed).subquery(),
        )
        for number, resource in enumerate(KINDS)
    ]
    found = sa.union_all(*parts).subquery()
    return sa.select(found).order_by(found.c.number, found.c.id).limit(_MOST)


def list_all_in_flight(
    session: Session, *, host: str | None = None, most: int
) -> typing.Sequence[InFlightRow]:
    """Return up to `most` rows in flight of all kinds, by kind and id.

    Up to `most` of each kind are read, in one statement.
    """
    values: dict[str, object] = {'most': most, 'after': ''}
    if host is not None:
        values['of_service'] = host
    return session.rows(_all_in_flight(host is not None), **values)


@functools.cache
def _holding_work(resources: tuple[str, ...]) -> sa.Select:
    """Return the selection of the work of rows of these kinds."""
    parts: list[sa.Select] = []
    for resource in resources:
        ids: sa.BindParameter[str] = sa.bindparam(f'{resource}_ids', expanding=True)
        for kind in KINDS[resource].parts:
            for holder in kind.holders:
                parts.append(
                    sa.select(
                        sa.literal(len(parts), sa.Integer()).label('number'),
                        sa.literal(resource).label('held'),
                        kind.table.c.id.label('held_id'),
                        WORK,
                        (WORK.c.lease_until - db_now()).label('lease_left'),
                        (db_now() - SERVICE.c.heartbeat_at).label('heartbeat_age'),
                        SERVICE.c.health,
                        *queues.SHOWN,
                    )
                    .select_from(
                        kind.table.join(WORK, holder)
                        .outerjoin(SERVICE, SERVICE.c.host == WORK.c.queue)
                        .outerjoin(queues.BLOCKER, queues.IS_BLOCKER)
                    )
                    .where(kind.table.c.id.in_(ids))
                )
    found = sa.union_all(*parts).subquery()
    return sa.select(found).order_by(found.c.number, found.c.created_at.desc())


def list_holding_work(
    session: Session, ids: typing.Mapping[str, typing.Collection[str]]
) -> dict[tuple[str, str], HoldingWorkRow]:
    """Return the work that owes the next move of resources.

    Both `ids` and the result are by the names of state machines.
    `heartbeat_age` and `health` are those of the service that has the work;
    `blocker_kind` and `blocker_owner` those of work that it waits for.
    """
    wanted = {name: sorted(some) for name, some in ids.items() if some}
    if not wanted:
        return {}
    rows = session.rows(
        _holding_work(tuple(wanted)),
        **{f'{name}_ids': some for name, some in wanted.items()},
    )
    return {(row.held, row.held_id): row for row in rows}


# The log

_RECORD = sa.insert(LOG)


def record_decision(session: Session, **values: object) -> None:
    """Log a decision in the transaction that carries it out."""
    by = session.by
    session.run(
        _RECORD,
        **{
            'host': None,
            'evidence': None,
            'reason': None,
            'asked_by': None,
            'status_after': None,
            'made_at': session.now,
            'made_by': by and by.actor,
            'request_id': by and by.request_id,
            **values,
        },
    )


def list_log(
    session: Session,
    *,
    limit: int,
    offset: int = 0,
    host: str | None = None,
    **wanted: str | None,
) -> typing.Sequence[RecoveryLogRow]:
    """Return decisions, newest first; `wanted` are values of columns.

    If the host is a back end, its pools are included.
    """
    conditions = [
        LOG.c[name] == value for name, value in wanted.items() if value is not None
    ]
    if host is not None:
        conditions.append(
            (LOG.c.host if Host.parse(host).pool else LOG.c.service_host) == host
        )
    return session.rows(
        sa.select(LOG)
        .where(*conditions)
        .order_by(LOG.c.id.desc())
        .limit(limit)
        .offset(offset)
    )


# Repetitions

_SINCE_LAST_MOVE = (
    sa.select(JOURNAL.c.made_at)
    .where(
        JOURNAL.c.resource == sa.bindparam('of_resource'),
        JOURNAL.c.resource_id == sa.bindparam('of_id'),
    )
    .order_by(JOURNAL.c.id.desc())
    .limit(1)
    .scalar_subquery()
)
_COUNT_REPETITIONS = sa.select(sa.func.count()).where(
    LOG.c.resource == sa.bindparam('of_resource'),
    LOG.c.resource_id == sa.bindparam('of_id'),
    LOG.c.evidence == sa.bindparam('of_kind', type_=LOG.c.evidence.type),
    # Without a journal, no earlier move is known.
    sa.func.coalesce(LOG.c.made_at >= _SINCE_LAST_MOVE, sa.true()),
)


def count_repetitions(
    session: Session, resource: str, resource_id: str, work_kind: str
) -> int:
    """Return how often this work was asked for since the last move."""
    return session.value(
        _COUNT_REPETITIONS, of_resource=resource, of_id=resource_id, of_kind=work_kind
    )


# Queued rescues

_LAST_EVENT = (
    sa.select(JOURNAL.c.event)
    .where(
        JOURNAL.c.resource == sa.bindparam('of_resource'),
        JOURNAL.c.resource_id == sa.bindparam('of_id'),
    )
    .order_by(JOURNAL.c.id.desc())
    .limit(1)
)
_COUNT_QUEUED = sa.select(sa.func.count()).where(
    WORK.c.queue == sa.bindparam('of_queue'),
    WORK.c.state == 'queued',
    WORK.c.next_try_at <= db_now(),
    WORK.c.kind.in_(sa.bindparam('kinds', expanding=True)),
)


def find_last_event(session: Session, resource: str, resource_id: str) -> str | None:
    """Return the last move of a resource, None if it is not in the journal."""
    return session.value(_LAST_EVENT, of_resource=resource, of_id=resource_id)


def count_queued_rescues(
    session: Session, queue: str, kinds: typing.Collection[str]
) -> int:
    """Return the number of rescues of a back end that are due.

    Those that wait for a reply of the driver do not occupy a worker.
    """
    return session.value(_COUNT_QUEUED, of_queue=queue, kinds=sorted(kinds))


_INSERT = sa.insert(CALL)
_DELETE = sa.delete(CALL).where(CALL.c.id.in_(sa.bindparam('ids', expanding=True)))


def replace_driver_calls(
    session: Session, calls: list[dict[str, object]], *, written: Collection[str]
) -> None:
    """Insert calls; those with the ids `written` may have a row already."""
    if written:
        session.run(_DELETE, ids=sorted(written))
    session.run_many(_INSERT, calls)
