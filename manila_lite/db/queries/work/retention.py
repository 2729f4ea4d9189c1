"""Delete rows that have been kept long enough, a batch at a time.

One statement for all of them would keep others waiting, and be one write
set of Galera.
"""

import datetime
import typing

import sqlalchemy as sa

from manila_lite.db.dialects import db_now
from manila_lite.db.queries.work import events
from manila_lite.db.session import Session
from manila_lite.db.tables import (
    CALL,
    INSTANCE,
    JOURNAL,
    LOG,
    MESSAGE,
    POOL,
    SERVER,
    SERVER_MIGRATION,
    SERVICE,
    WORK,
)

BATCH = 1000
"""The number of rows deleted by one transaction."""


class ExpiredRows(typing.NamedTuple):
    """Statements that select, delete and count rows by a time of theirs."""

    table: str
    select: sa.Select
    delete: sa.Delete
    counted: sa.Select


def _expired(
    table: sa.Table, time: str, *conditions: sa.ColumnElement[bool]
) -> ExpiredRows:
    are_expired = (table.c[time] <= sa.bindparam('until'), *conditions)
    return ExpiredRows(
        table.name,
        sa.select(table.c.id)
        .where(*are_expired)
        .order_by(table.c[time])
        .limit(sa.bindparam('batch')),
        sa.delete(table).where(table.c.id.in_(sa.bindparam('ids', expanding=True))),
        sa.select(sa.func.count()).select_from(table).where(*are_expired),
    )


# SQLite would use the ids of an empty table again, and moves with these ids
# would be taken for moves that have been sent.
_NOT_NEWEST = JOURNAL.c.id < sa.select(sa.func.max(JOURNAL.c.id)).scalar_subquery()

MOVES = _expired(JOURNAL, 'made_at', _NOT_NEWEST)
"""Without the newest move."""
DECISIONS = _expired(LOG, 'made_at')
MESSAGES = _expired(
    MESSAGE,
    'expires_at',
    sa.or_(
        MESSAGE.c.kept_until.is_(None), MESSAGE.c.kept_until <= sa.bindparam('until')
    ),
)
"""Without those that users have deleted, until they expire."""
DRIVER_CALLS = _expired(CALL, 'started_at')
SERVER_MIGRATIONS = _expired(SERVER_MIGRATION, 'ended_at')
"""Running ones have no such time."""


def delete_until(
    session: Session, rows: ExpiredRows, until: datetime.datetime, batch: int = BATCH
) -> int:
    """Delete up to `batch` rows of this time or earlier; return the count."""
    ids = [row.id for row in session.rows(rows.select, until=until, batch=batch)]
    return session.run(rows.delete, ids=sorted(ids)) if ids else 0


_NEWEST_SURPLUS = (
    sa.select(JOURNAL.c.made_at)
    .where(
        JOURNAL.c.id
        <= sa.select(sa.func.max(JOURNAL.c.id)).scalar_subquery()
        - sa.bindparam('kept', type_=sa.BigInteger())
    )
    .order_by(JOURNAL.c.id.desc())
    .limit(1)
)


def find_surplus(session: Session, kept: int) -> datetime.datetime | None:
    """Return when the newest move before the last `kept` ones was made.

    Ids are counted, of which some have no row.
    """
    return session.value(_NEWEST_SURPLUS, kept=kept)


def count_until(session: Session, rows: ExpiredRows, until: datetime.datetime) -> int:
    """Return how many rows there are of this time or earlier."""
    return session.value(rows.counted, until=until)


_SENT = sa.or_(JOURNAL.c.is_sent.is_not(None), JOURNAL.c.id <= sa.bindparam('start'))
_SENT_MOVES = _expired(JOURNAL, 'made_at', _NOT_NEWEST, _SENT)


def delete_sent_moves(
    session: Session, until: datetime.datetime, batch: int = BATCH
) -> int:
    """Delete moves like `delete_until`, but none that has to be sent."""
    found = _find_sent(session, until)
    if found is None:
        return 0
    ids = [
        row.id
        for row in session.rows(_SENT_MOVES.select, **found._asdict(), batch=batch)
    ]
    return session.run(_SENT_MOVES.delete, ids=sorted(ids)) if ids else 0


def count_sent_moves(session: Session, until: datetime.datetime) -> int:
    """Return how many moves `delete_sent_moves` would delete."""
    found = _find_sent(session, until)
    if found is None:
        return 0
    return session.value(_SENT_MOVES.counted, **found._asdict())


class _SentMoves(typing.NamedTuple):
    until: datetime.datetime
    start: int


def _find_sent(session: Session, until: datetime.datetime) -> _SentMoves | None:
    """Return which moves may be deleted; None before the first is sent."""
    start = events.find_start(session)
    if start is None:
        return None
    unsent = events.list_unsent(session, start, 1)
    if unsent:
        # Everything after it may be unsent as well, so it is not read.
        until = min(until, unsent[0].made_at)
    return _SentMoves(until, start)


# Nothing may be left that only this service can do.
_IS_DEAD = sa.and_(
    SERVICE.c.heartbeat_at < db_now() - sa.bindparam('silence', type_=sa.Double()),
    SERVICE.c.disabled.is_(False),
    ~sa.exists().where(INSTANCE.c.service_host == SERVICE.c.host),
    ~sa.exists().where(SERVER.c.host == SERVICE.c.host),
    ~sa.exists().where(
        WORK.c.state.in_(['queued', 'running']), WORK.c.queue == SERVICE.c.host
    ),
)
_DEAD = (
    sa.select(SERVICE.c.id, SERVICE.c.host)
    .where(_IS_DEAD)
    .order_by(SERVICE.c.id)
    .limit(sa.bindparam('batch'))
)
_COUNT_DEAD = sa.select(sa.func.count()).select_from(SERVICE).where(_IS_DEAD)
_DELETE_DEAD = sa.delete(SERVICE).where(
    SERVICE.c.id == sa.bindparam('service_id'), _IS_DEAD
)
_DELETE_POOLS = sa.delete(POOL).where(
    POOL.c.service_host == sa.bindparam('of_host'),
    ~sa.exists().where(SERVICE.c.host == sa.bindparam('of_host')),
)


def delete_dead_services(session: Session, silence: float, batch: int = BATCH) -> int:
    """Delete services not heard of for `silence` seconds; count them.

    A disabled one is kept, so that it does not come back enabled, and so is
    one that still has shares, share servers or work.
    """
    count = 0
    for row in session.rows(_DEAD, silence=silence, batch=batch):
        if session.run(_DELETE_DEAD, service_id=row.id, silence=silence):
            session.run(_DELETE_POOLS, of_host=row.host)
            count += 1
    return count


def count_dead_services(session: Session, silence: float) -> int:
    """Return how many services `delete_dead_services` would delete."""
    return session.value(_COUNT_DEAD, silence=silence)
