"""Delete rows that have been kept long enough, a batch at a time.

One statement for all of them would keep others waiting, and be one write
set of Galera.
"""

import datetime
import typing

import sqlalchemy as sa

from manila_lite.db.clock import db_now
from manila_lite.db.models import driver_calls
from manila_lite.db.models import engine
from manila_lite.db.models import recovery
from manila_lite.db.models import server_migrations
from manila_lite.db.models import services
from manila_lite.db.models import share_servers
from manila_lite.db.models import shares
from manila_lite.db.queries.admin import events
from manila_lite.db.session import Session

BATCH = 1000
"""The number of rows deleted by one transaction."""

SERVICE = services.Service.__table__
POOL = services.Pool.__table__
INSTANCE = shares.ShareInstance.__table__
SERVER = share_servers.ShareServer.__table__
WORK = engine.Work.__table__
_JOURNAL = engine.Transition.__table__


class ExpiredRows(typing.NamedTuple):
    """Statements that select and delete rows by a time of theirs."""

    select: sa.Select
    delete: sa.Delete


def _expired(table: sa.Table, time: str) -> ExpiredRows:
    return ExpiredRows(
        sa.select(table.c.id)
        .where(table.c[time] <= sa.bindparam('until'))
        .order_by(table.c[time])
        .limit(sa.bindparam('batch')),
        sa.delete(table).where(
            table.c.id.in_(sa.bindparam('ids', expanding=True))
        ),
    )


def _of_journal() -> ExpiredRows:
    """Leave the newest move: SQLite would use the ids of an empty table again.

    Moves with these ids would be taken for moves that have been sent.
    """
    found = _expired(_JOURNAL, 'made_at')
    newest = sa.select(sa.func.max(_JOURNAL.c.id)).scalar_subquery()
    return found._replace(select=found.select.where(_JOURNAL.c.id < newest))


JOURNAL = _of_journal()
DECISIONS = _expired(recovery.RecoveryLogEntry.__table__, 'made_at')
MESSAGES = _expired(services.Message.__table__, 'expires_at')
DRIVER_CALLS = _expired(driver_calls.DriverCall.__table__, 'started_at')
SERVER_MIGRATIONS = _expired(
    server_migrations.ServerMigration.__table__, 'ended_at'
)
"""Running ones have no such time."""


def delete_until(
    session: Session,
    rows: ExpiredRows,
    until: datetime.datetime,
    batch: int = BATCH,
) -> int:
    """Delete up to `batch` rows of this time or earlier; return the count."""
    ids = [
        row.id for row in session.rows(rows.select, until=until, batch=batch)
    ]
    return session.run(rows.delete, ids=sorted(ids)) if ids else 0


_SENT = sa.or_(
    _JOURNAL.c.is_sent.is_not(None), _JOURNAL.c.id <= sa.bindparam('start')
)
_SENT_MOVES = JOURNAL._replace(select=JOURNAL.select.where(_SENT))


def delete_sent_moves(
    session: Session, until: datetime.datetime, batch: int = BATCH
) -> int:
    """Delete moves like `delete_until`, but none that has to be sent."""
    start = events.find_start(session)
    if start is None:
        return 0
    unsent = events.list_unsent(session, start, 1)
    if unsent:
        # All of what follows may be unsent; it would be read in vain.
        until = min(until, unsent[0].made_at)
    ids = [
        row.id
        for row in session.rows(
            _SENT_MOVES.select, until=until, batch=batch, start=start
        )
    ]
    return session.run(_SENT_MOVES.delete, ids=sorted(ids)) if ids else 0


# Nothing may be left that only this service can do.
_IS_DEAD = sa.and_(
    SERVICE.c.heartbeat_at
    < db_now() - sa.bindparam('silence', type_=sa.Double()),
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
_DELETE_DEAD = sa.delete(SERVICE).where(
    SERVICE.c.id == sa.bindparam('service_id'), _IS_DEAD
)
_DELETE_POOLS = sa.delete(POOL).where(
    POOL.c.service_host == sa.bindparam('of_host'),
    ~sa.exists().where(SERVICE.c.host == sa.bindparam('of_host')),
)


def delete_dead_services(
    session: Session, silence: float, batch: int = BATCH
) -> int:
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
