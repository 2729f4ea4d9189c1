"""Queues of work: which of them are full, and what queued work waits for.

No statement counts a queue: it looks for the work that makes it full, so
that a queue of a million rows costs no more than one at its limit. Two works
with one exclusion key do not run at a time.
"""

from collections.abc import Sequence
import datetime

import sqlalchemy as sa

from manila_lite.db.dialects import db_now
from manila_lite.db.models import engine
from manila_lite.db.session import Session
from manila_lite.db.tables import SERVICE, WORK


def _is_full(queue: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """Whether more than `fitting` rows of work wait in a queue."""
    return (
        sa.select(sa.literal_column('1'))
        .select_from(WORK)
        .where(WORK.c.state == 'queued', WORK.c.queue == queue)
        .order_by(WORK.c.created_at)
        .limit(1)
        .offset(sa.bindparam('fitting'))
        .correlate(SERVICE)
        .scalar_subquery()
        .is_not(None)
    )


_IS_ALIVE = sa.and_(
    SERVICE.c.binary == 'manila-share',
    SERVICE.c.heartbeat_at >= db_now() - sa.bindparam('down_time', type_=sa.Double()),
)
_TAKES_SHARES = sa.and_(
    _IS_ALIVE, SERVICE.c.health.is_(None), SERVICE.c.disabled.is_(False)
)
_FULL_BACKEND = sa.select(SERVICE.c.id).where(
    _IS_ALIVE, SERVICE.c.host == sa.bindparam('of_host'), _is_full(SERVICE.c.host)
)
_PLACEMENTS: sa.BindParameter[str] = sa.bindparam('of_queue')
_CLOSED = sa.select(
    sa.or_(
        _is_full(_PLACEMENTS),
        sa.and_(
            sa.exists().where(_TAKES_SHARES),
            # Ends at the first back end that has room.
            ~sa.exists().where(_TAKES_SHARES, ~_is_full(SERVICE.c.host)),
        ),
    )
)
_IS_UNSERVED = sa.and_(
    SERVICE.c.binary == 'manila-share',
    SERVICE.c.heartbeat_at < db_now() - sa.bindparam('silence', type_=sa.Double()),
)
_HAS_WORK = sa.exists().where(
    WORK.c.state.in_(['queued', 'running']), WORK.c.queue == SERVICE.c.host
)
_UNSERVED = (
    sa.select(SERVICE.c.host).where(_IS_UNSERVED, _HAS_WORK).order_by(SERVICE.c.host)
)
_LOCK_UNSERVED = (
    sa.select(SERVICE.c.id)
    .where(_IS_UNSERVED, SERVICE.c.host == sa.bindparam('of_host'))
    .with_for_update()
)
_SHARED_UNSERVED = sa.select(
    sa.and_(
        sa.exists().where(
            WORK.c.state.in_(['queued', 'running']),
            WORK.c.queue == sa.bindparam('of_queue'),
            WORK.c.created_at < sa.bindparam('before'),
        ),
        ~sa.exists().where(
            SERVICE.c.binary == sa.bindparam('of_binary'),
            SERVICE.c.heartbeat_at
            >= db_now() - sa.bindparam('silence', type_=sa.Double()),
        ),
    )
)


def is_backend_full(session: Session, host: str, limit: int, down_time: float) -> bool:
    """Whether `limit` rows of work wait for a back end.

    Not for one without a process that is alive.
    """
    return (
        session.value(
            _FULL_BACKEND, of_host=host, fitting=limit - 1, down_time=down_time
        )
        is not None
    )


def is_placement_closed(
    session: Session, queue: str, limit: int, down_time: float
) -> bool:
    """Whether new shares would wait behind `limit` rows of work.

    In the queue of placements, or on each back end that takes shares.
    """
    return bool(
        session.value(_CLOSED, of_queue=queue, fitting=limit - 1, down_time=down_time)
    )


def list_unserved(session: Session, silence: float) -> Sequence[str]:
    """Return the back ends with work but no process for `silence` seconds."""
    return [row.host for row in session.rows(_UNSERVED, silence=silence)]


def is_unserved(session: Session, queue: str, binary: str, silence: float) -> bool:
    """Whether old work waits in a queue that every service of a kind takes.

    And none of them has been alive for `silence` seconds.
    """
    return bool(
        session.value(
            _SHARED_UNSERVED,
            of_queue=queue,
            of_binary=binary,
            before=session.now - datetime.timedelta(seconds=silence),
            silence=silence,
        )
    )


def lock_unserved(session: Session, host: str, silence: float) -> bool:
    """Lock the service of a back end that no process serves; else False.

    No process can serve it before the end of the transaction.
    """
    found = session.value(_LOCK_UNSERVED, of_host=host, silence=silence)
    return found is not None


BLOCKER = WORK.alias('blocker')

IS_BLOCKER = sa.and_(
    BLOCKER.c.running_key == engine.EXCLUSION_KEY, WORK.c.state == 'queued'
)
"""The condition of a join of work with what it waits for."""

SHOWN = (BLOCKER.c.kind.label('blocker_kind'), BLOCKER.c.owner.label('blocker_owner'))
"""Columns of that work; null if nothing is waited for."""
