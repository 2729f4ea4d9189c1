"""The SQL of the work table."""

import functools
import typing

import sqlalchemy as sa

from manila_lite.db.dialects import build_upsert, db_now, larger_of
from manila_lite.db.models import engine
from manila_lite.db.tables import INSTANCE, SNAPSHOT, SNAPSHOT_INSTANCE, WORK

QUEUED = 'queued'
RUNNING = 'running'


def _share_id(resource_id: sa.ColumnElement) -> sa.Label:
    """The share of a share instance or a snapshot instance."""
    return sa.func.coalesce(
        sa.select(INSTANCE.c.share_id)
        .where(INSTANCE.c.id == resource_id)
        .scalar_subquery(),
        # Without a join: RETURNING names columns without their tables.
        sa.select(SNAPSHOT.c.share_id)
        .where(
            SNAPSHOT.c.id
            == sa.select(SNAPSHOT_INSTANCE.c.snapshot_id)
            .where(SNAPSHOT_INSTANCE.c.id == resource_id)
            # By itself only a query in the one around it refers to that.
            .correlate(WORK)
            .scalar_subquery()
        )
        .scalar_subquery(),
    ).label('share_id')


# What an INSERT returns cannot refer to the row, only to its values.
_RETURNED = (
    WORK.c.id,
    WORK.c.state,
    _share_id(sa.bindparam('of_resource', type_=WORK.c.resource_id.type)),
)
INSERT = (
    sa.insert(WORK)
    .values(state=QUEUED, attempt=0, fence=0, asked=1, next_try_at=db_now())
    .returning(*_RETURNED)
)


_NEW_RELEASE = sa.bindparam('new_release', type_=WORK.c.needs_release.type)


@functools.cache
def upsert(dialect: str) -> sa.Executable:
    """Return a statement that inserts a row, or counts one more request.

    It returns id and state of the row.
    """
    return build_upsert(
        dialect,
        WORK,
        values={
            'state': QUEUED,
            'attempt': 0,
            'fence': 0,
            'asked': 1,
            'next_try_at': db_now(),
        },
        changes={
            'asked': WORK.c.asked + 1,
            'args': sa.bindparam('new_args', type_=WORK.c.args.type),
            'needs_release': _NEW_RELEASE,
        },
        keys=('one_key',),
    ).returning(*_RETURNED)


# The owner, too: a failover may lose a claim and its fence. Queued work has
# none. With the state, MariaDB would look rows up in an index of states, and
# lock those of other work.
HELD = (
    WORK.c.id == sa.bindparam('work_id'),
    WORK.c.fence == sa.bindparam('held_fence'),
    WORK.c.owner == sa.bindparam('held_by'),
)
DUE = sa.and_(WORK.c.state == QUEUED, WORK.c.next_try_at <= db_now())
OTHER = WORK.alias('other')
IS_BUSY = sa.exists().where(OTHER.c.running_key == engine.EXCLUSION_KEY)
ABANDONED = sa.and_(WORK.c.state == RUNNING, WORK.c.lease_until < db_now())
# Not looked up in an index of states, for the same reason.
_STATE = sa.func.coalesce(WORK.c.state, '')
_DUE_BY_ID = sa.and_(_STATE == QUEUED, WORK.c.next_try_at <= db_now())
_ABANDONED_BY_ID = sa.and_(_STATE == RUNNING, WORK.c.lease_until < db_now())
IN_QUEUES = WORK.c.queue.in_(sa.bindparam('queues', expanding=True))
IS_UNDERSTOOD = sa.func.coalesce(WORK.c.needs_release, 0) <= sa.bindparam('own_release')

# Also a fencing token for back ends, which compare it between all works on
# a resource; so it is the time, unless the clock was set back.
NEXT_FENCE = larger_of(WORK.c.fence + 1, sa.cast(db_now() * 1_000_000, sa.BigInteger))
_CLAIM = {
    abandoned: sa.update(WORK)
    .where(WORK.c.id == sa.bindparam('work_id'), IN_QUEUES, condition, IS_UNDERSTOOD)
    .values(
        state=RUNNING,
        running_key=engine.EXCLUSION_KEY,
        fence=NEXT_FENCE,
        attempt=WORK.c.attempt + 1,
        owner=sa.bindparam('new_owner'),
        lease_until=db_now() + sa.bindparam('lease', type_=sa.Double()),
    )
    for abandoned, condition in ((False, _DUE_BY_ID), (True, _ABANDONED_BY_ID))
}
_CLAIMED = (WORK, _share_id(WORK.c.resource_id))
_CLAIM_RETURNING = {
    abandoned: statement.returning(*_CLAIMED) for abandoned, statement in _CLAIM.items()
}
_READ = sa.select(*_CLAIMED).where(WORK.c.id == sa.bindparam('work_id'))


def claim(dialect: str, abandoned: bool) -> tuple[sa.Executable, sa.Select | None]:
    """Return the guarded UPDATE that claims work, and what reads the row.

    The UPDATE itself returns it, except on MariaDB. That returns rows of an
    INSERT, which an ON DUPLICATE KEY UPDATE makes an UPDATE; but where it is
    from a SELECT FOR UPDATE of the same table, two claims have the work.
    """
    if dialect == 'mysql':
        return _CLAIM[abandoned], _READ
    return _CLAIM_RETURNING[abandoned], None


HAS_OTHER_WORK = sa.select(
    sa.exists().where(
        WORK.c.resource == sa.bindparam('of_resource'),
        WORK.c.resource_id == sa.bindparam('of_id'),
        WORK.c.id != sa.bindparam('work_id'),
    )
)
COUNT_BY_KIND = (
    sa.select(WORK.c.kind, WORK.c.state, sa.func.count().label('unfinished'))
    .where(WORK.c.queue == sa.bindparam('of_queue'))
    .group_by(WORK.c.kind, WORK.c.state)
    .order_by(WORK.c.kind, WORK.c.state)
)
UNCLAIMED: dict[str, typing.Any] = {
    'state': QUEUED,
    'running_key': None,
    'owner': None,
    'lease_until': None,
}
RENEW = (
    sa.update(WORK)
    .where(*HELD)
    .values(lease_until=db_now() + sa.bindparam('lease', type_=sa.Double()))
)
IS_HELD = sa.select(WORK.c.id).where(*HELD)
LOCK_HELD = IS_HELD.with_for_update(skip_locked=True)
RAISE_FENCE = sa.update(WORK).where(*HELD).values(fence=sa.bindparam('new_fence'))
STEP = sa.update(WORK).where(*HELD).values(step=sa.bindparam('new_step'))
EXCLUSION_KEY_OF = sa.select(engine.EXCLUSION_KEY).where(
    WORK.c.id == sa.bindparam('work_id')
)
REMOVE = sa.delete(WORK).where(*HELD, WORK.c.asked == sa.bindparam('seen_asked'))
REQUEUE = (
    sa.update(WORK)
    .where(*HELD)
    .values(
        **UNCLAIMED,
        step=None,
        attempt=0,
        next_try_at=db_now() + sa.bindparam('delay', type_=sa.Double()),
    )
)
RETRY = (
    sa.update(WORK)
    .where(*HELD)
    .values(
        **UNCLAIMED,
        error=sa.bindparam('new_error'),
        next_try_at=db_now() + sa.bindparam('delay', type_=sa.Double()),
    )
)
# Abandoned work stays abandoned: the next claim has to rescue it, too.
KEEP_ABANDONED = (
    sa.update(WORK)
    .where(*HELD)
    .values(owner=None, lease_until=db_now() + sa.bindparam('delay', type_=sa.Double()))
)
RETRY_ABANDONED = KEEP_ABANDONED.values(error=sa.bindparam('new_error'))
RELEASE_ABANDONED = KEEP_ABANDONED.values(attempt=0)
WAIT = REQUEUE.values(error=sa.bindparam('new_error'))
WAIT_ABANDONED = RELEASE_ABANDONED.values(error=sa.bindparam('new_error'))
CONTINUE = (
    sa.update(WORK)
    .where(*HELD, WORK.c.asked == sa.bindparam('seen_asked'))
    .values(
        **UNCLAIMED,
        step=None,
        attempt=0,
        error=None,
        next_try_at=db_now(),
        args=sa.bindparam('new_args'),
        needs_release=_NEW_RELEASE,
    )
)
HAND_OVER = (
    sa.update(WORK)
    .where(*HELD)
    .values(
        **UNCLAIMED,
        step=None,
        attempt=0,
        error=None,
        next_try_at=db_now(),
        kind=sa.bindparam('new_kind'),
        topic=sa.bindparam('new_topic'),
        queue=sa.bindparam('new_queue'),
        args=sa.bindparam('new_args'),
        needs_release=_NEW_RELEASE,
    )
)


@functools.cache
def hand_over_new(count: int) -> sa.Update:
    """Return a statement that moves `count` pieces of unclaimed work.

    All of it is new: a claim raises the fence.
    """
    ids, queues, args = (
        [sa.bindparam(f'{name}_{number}', type_=type_) for number in range(count)]
        for name, type_ in (
            ('work_id', WORK.c.id.type),
            ('queue', WORK.c.queue.type),
            ('args', WORK.c.args.type),
        )
    )
    new_queue, new_args = (
        sa.case(
            *((WORK.c.id == id, value) for id, value in zip(ids, values, strict=True))
        )
        for values in (queues, args)
    )
    return (
        sa.update(WORK)
        .where(
            WORK.c.id.in_(ids),
            WORK.c.kind == sa.bindparam('old_kind'),
            _DUE_BY_ID,
            WORK.c.fence == 0,
            IS_UNDERSTOOD,
        )
        .values(
            next_try_at=db_now(),
            kind=sa.bindparam('new_kind'),
            topic=sa.bindparam('new_topic'),
            queue=new_queue,
            args=new_args,
            needs_release=_NEW_RELEASE,
        )
    )


POSTPONE = (
    sa.update(WORK)
    .where(
        WORK.c.id == sa.bindparam('work_id'), sa.or_(_STATE == QUEUED, _ABANDONED_BY_ID)
    )
    .values(
        next_try_at=db_now() + sa.bindparam('delay', type_=sa.Double()),
        lease_until=sa.case(
            (_STATE == RUNNING, db_now() + sa.bindparam('delay', type_=sa.Double())),
            else_=WORK.c.lease_until,
        ),
    )
)
WITHDRAW = sa.delete(WORK).where(
    WORK.c.resource == sa.bindparam('of_resource'),
    WORK.c.resource_id == sa.bindparam('of_id'),
    WORK.c.kind == sa.bindparam('of_kind'),
    WORK.c.state == QUEUED,
)
_DUE_SOON = sa.and_(
    WORK.c.state == QUEUED,
    WORK.c.needs_release.is_not(None),
    WORK.c.next_try_at > db_now(),
    WORK.c.next_try_at <= db_now() + sa.bindparam('ahead', type_=sa.Double()),
)
SWEEP = (
    sa.select(WORK.c.id, WORK.c.state, (WORK.c.next_try_at - db_now()).label('due_in'))
    .where(
        IN_QUEUES,
        WORK.c.kind.in_(sa.bindparam('kinds', expanding=True)),
        IS_UNDERSTOOD,
        sa.or_(sa.and_(DUE, ~IS_BUSY), ABANDONED, _DUE_SOON),
    )
    .order_by(WORK.c.created_at, WORK.c.id)
    .limit(sa.bindparam('batch'))
)
QUEUES_TO_SWEEP = (
    sa.select(WORK.c.queue)
    .where(IN_QUEUES, sa.or_(DUE, ABANDONED, _DUE_SOON))
    .limit(sa.bindparam('batch'))
)
"""The queues of which SWEEP returns rows are among these, if it is not full."""
EXPIRE = (
    sa.update(WORK).where(WORK.c.state == RUNNING, IN_QUEUES).values(lease_until=0.0)
)
EXPIRE_OWNER = EXPIRE.where(WORK.c.owner == sa.bindparam('of_owner'))
