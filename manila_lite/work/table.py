"""The work table: submit, claim, renew, hand over, retry, finish, sweep.

A row is inserted in the transaction that changes the status and charges
the quota, so a request is accepted together with its work or not at all.
One guarded UPDATE claims the row and increments its fence; a worker with
an older fence can no longer write. Design: engineering, section 1.
"""

from collections.abc import Collection, Mapping
import dataclasses
import datetime
import typing

import orjson
import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects import sqlite

from manila_lite import exception
from manila_lite.db.clock import db_now
from manila_lite.db.models import engine
from manila_lite.db.session import Hint
from manila_lite.db.session import Session
from manila_lite.states.access_rule import SHARE_INSTANCE_ACCESS
from manila_lite.states.share_instance import SHARE_INSTANCE

WORK = engine.Work.__table__

QUEUED = 'queued'
RUNNING = 'running'

_INSERT = sa.insert(WORK).values(
    state=QUEUED, attempt=0, fence=0, asked=1, next_try_at=db_now()
)


def _upsert(dialect: str) -> sa.Insert:
    """Return an upsert: insert the row, or count one more request for it.

    The statement returns id and state of the row.
    """
    first: dict[str, typing.Any] = {
        'state': QUEUED,
        'attempt': 0,
        'fence': 0,
        'asked': 1,
        'next_try_at': db_now(),
    }
    again = {
        'asked': WORK.c.asked + 1,
        'args': sa.bindparam('new_args', type_=WORK.c.args.type),
    }
    if dialect == 'mysql':
        return (
            mysql.insert(WORK)
            .values(first)
            .on_duplicate_key_update(again)
            .returning(WORK.c.id, WORK.c.state)
        )
    insert: typing.Any = {
        'sqlite': sqlite.insert,
        'postgresql': postgresql.insert,
    }[dialect]
    return (
        insert(WORK)
        .values(first)
        .on_conflict_do_update(index_elements=['one_key'], set_=again)
        .returning(WORK.c.id, WORK.c.state)
    )


_UPSERT = {
    dialect: _upsert(dialect) for dialect in ('sqlite', 'mysql', 'postgresql')
}

_HELD = (
    WORK.c.id == sa.bindparam('work_id'),
    WORK.c.state == RUNNING,
    WORK.c.fence == sa.bindparam('held_fence'),
)
_DUE = sa.and_(WORK.c.state == QUEUED, WORK.c.next_try_at <= db_now())
_OTHER = WORK.alias('other')
# A back end treats a share instance and its access rules as one object.
_IS_BUSY = sa.exists().where(
    _OTHER.c.resource.in_(
        (
            WORK.c.resource,
            SHARE_INSTANCE.resource,
            SHARE_INSTANCE_ACCESS.resource,
        )
    ),
    _OTHER.c.resource_id == WORK.c.resource_id,
    _OTHER.c.state == RUNNING,
    _OTHER.c.id != WORK.c.id,
)
_ABANDONED = sa.and_(WORK.c.state == RUNNING, WORK.c.lease_until < db_now())
_IN_QUEUES = WORK.c.queue.in_(sa.bindparam('queues', expanding=True))

_CLAIM = {
    abandoned: sa.update(WORK)
    .where(WORK.c.id == sa.bindparam('work_id'), _IN_QUEUES, condition)
    .values(
        state=RUNNING,
        fence=WORK.c.fence + 1,
        attempt=WORK.c.attempt + 1,
        owner=sa.bindparam('new_owner'),
        lease_until=db_now() + sa.bindparam('lease', type_=sa.Double()),
    )
    for abandoned, condition in ((False, _DUE), (True, _ABANDONED))
}
_HAS_OTHER_WORK = sa.select(
    sa.exists().where(
        WORK.c.resource == sa.bindparam('of_resource'),
        WORK.c.resource_id == sa.bindparam('of_id'),
        WORK.c.id != sa.bindparam('work_id'),
    )
)
# Not part of the claim: MariaDB would lock the rows of the subquery.
_READ = sa.select(WORK, _IS_BUSY.label('is_busy')).where(
    WORK.c.id == sa.bindparam('work_id')
)
_UNCLAIM = (
    sa.update(WORK)
    .where(*_HELD)
    .values(
        state=QUEUED, owner=None, lease_until=None, attempt=WORK.c.attempt - 1
    )
)
_RENEW = (
    sa.update(WORK)
    .where(*_HELD)
    .values(lease_until=db_now() + sa.bindparam('lease', type_=sa.Double()))
)
_STEP = sa.update(WORK).where(*_HELD).values(step=sa.bindparam('new_step'))
_REMOVE = sa.delete(WORK).where(
    *_HELD, WORK.c.asked == sa.bindparam('seen_asked')
)
_REQUEUE = (
    sa.update(WORK)
    .where(*_HELD)
    .values(
        state=QUEUED,
        owner=None,
        lease_until=None,
        step=None,
        attempt=0,
        next_try_at=db_now() + sa.bindparam('delay', type_=sa.Double()),
    )
)
_RETRY = (
    sa.update(WORK)
    .where(*_HELD)
    .values(
        state=QUEUED,
        owner=None,
        lease_until=None,
        error=sa.bindparam('new_error'),
        next_try_at=db_now() + sa.bindparam('delay', type_=sa.Double()),
    )
)
# Abandoned work stays abandoned: the next claim has to rescue it, too.
_KEEP_ABANDONED = (
    sa.update(WORK)
    .where(*_HELD)
    .values(
        owner=None,
        lease_until=db_now() + sa.bindparam('delay', type_=sa.Double()),
    )
)
_RETRY_ABANDONED = _KEEP_ABANDONED.values(error=sa.bindparam('new_error'))
_RELEASE_ABANDONED = _KEEP_ABANDONED.values(attempt=0)
_CONTINUE = (
    sa.update(WORK)
    .where(*_HELD, WORK.c.asked == sa.bindparam('seen_asked'))
    .values(
        state=QUEUED,
        owner=None,
        lease_until=None,
        step=None,
        attempt=0,
        error=None,
        next_try_at=db_now(),
        args=sa.bindparam('new_args'),
    )
)
_HAND_OVER = (
    sa.update(WORK)
    .where(*_HELD)
    .values(
        state=QUEUED,
        owner=None,
        lease_until=None,
        step=None,
        attempt=0,
        error=None,
        next_try_at=db_now(),
        kind=sa.bindparam('new_kind'),
        topic=sa.bindparam('new_topic'),
        queue=sa.bindparam('new_queue'),
        args=sa.bindparam('new_args'),
    )
)
_WITHDRAW = sa.delete(WORK).where(
    WORK.c.resource == sa.bindparam('of_resource'),
    WORK.c.resource_id == sa.bindparam('of_id'),
    WORK.c.kind == sa.bindparam('of_kind'),
    WORK.c.state == QUEUED,
)
_SWEEP = (
    sa.select(WORK.c.id, WORK.c.state)
    .where(
        _IN_QUEUES,
        WORK.c.kind.in_(sa.bindparam('kinds', expanding=True)),
        sa.or_(sa.and_(_DUE, ~_IS_BUSY), _ABANDONED),
    )
    .order_by(WORK.c.created_at, WORK.c.id)
    .limit(sa.bindparam('batch'))
)
_JOURNAL = engine.Transition.__table__
_PRUNE = sa.delete(_JOURNAL).where(_JOURNAL.c.made_at < sa.bindparam('before'))
_EXPIRE = (
    sa.update(WORK)
    .where(WORK.c.state == RUNNING, _IN_QUEUES)
    .values(lease_until=0.0)
)
_EXPIRE_OWNER = _EXPIRE.where(WORK.c.owner == sa.bindparam('of_owner'))


@dataclasses.dataclass(slots=True)
class Claim:
    """Work claimed by this process; also the actor of its transitions.

    `abandoned` is true when another process claimed the work before and
    let its lease expire. `prepared` is the result of the handler's
    `prepare`, read in the claiming transaction.
    """

    id: str
    kind: str
    topic: str
    queue: str
    resource: str
    resource_id: str
    args: dict[str, typing.Any]
    context: dict[str, typing.Any]
    charges: list[typing.Any]
    fence: int
    attempt: int
    asked: int
    abandoned: bool
    owner: str
    prepared: typing.Any = None

    @property
    def request_id(self) -> str | None:
        return self.context.get('request_id')

    @property
    def actor(self) -> str | None:
        return self.owner

    @property
    def project_id(self) -> str | None:
        return self.context.get('project_id')

    @property
    def user_id(self) -> str | None:
        return self.context.get('user_id')


def submit(
    session: Session,
    context: Mapping[str, typing.Any],
    *,
    kind: str,
    topic: str,
    queue: str,
    resource: str,
    resource_id: str,
    args: Mapping[str, typing.Any],
    charges: list[typing.Any] | None = None,
    one_key: str | None = None,
) -> str:
    """Add work in this transaction; its hint is sent after the commit.

    With `one_key`, unfinished work of the same key is requested once more
    instead, with these arguments. Returns the id of the work.
    """
    values = {
        'id': session.new_id(),
        'kind': kind,
        'topic': topic,
        'queue': queue,
        'resource': resource,
        'resource_id': resource_id,
        'one_key': one_key,
        'args': _dump(args),
        'context': _dump(context),
        'charges': _dump(charges) if charges else None,
        'request_id': context.get('request_id'),
        'created_at': session.now,
    }
    if one_key is None:
        session.run(_INSERT, **values)
        work_id, state = str(values['id']), QUEUED
    else:
        work_id, state = session.rows(
            _UPSERT[session.dialect], **values, new_args=values['args']
        )[0]
    if state == QUEUED:
        session.hints.append(Hint(topic, queue, work_id))
    return work_id


def submit_durable(
    session: Session,
    ctx: typing.Any,
    durable: typing.Any,
    queue: str,
    args: dict[str, typing.Any],
) -> str:
    """Submit work declared by a contract (`rpc.contract.Durable`).

    The work takes over the quota reserved in this transaction.
    """
    charges, session.charges = session.charges, []
    failure = durable.failure
    one_key = durable.one_per and f'{durable.kind}:{args[durable.one_per]}'
    return submit(
        session,
        {
            'request_id': ctx.request_id,
            'user_id': ctx.user_id,
            'project_id': ctx.project_id,
        },
        kind=durable.kind,
        topic=durable.topic,
        queue=queue,
        resource=(
            failure.machine.resource
            if failure
            else durable.resource.removesuffix('_id')
        ),
        resource_id=str(args[durable.resource]),
        args=args,
        charges=charges,
        one_key=one_key,
    )


def claim(
    session: Session,
    work_id: str,
    queues: Collection[str],
    owner: str,
    lease: float,
    *,
    abandoned: bool = False,
) -> Claim | None:
    """Claim work that is due (or abandoned) in one of the queues.

    Returns None when another worker was faster, when other work on the
    same resource is running, or when the work is not in these queues.
    """
    if not session.run(
        _CLAIM[abandoned],
        work_id=work_id,
        queues=list(queues),
        new_owner=owner,
        lease=lease,
    ):
        return None
    row = session.one(_READ, work_id=work_id)
    if row.is_busy and not abandoned:
        # A force delete must not overtake a create that is still running.
        session.run(_UNCLAIM, work_id=work_id, held_fence=row.fence)
        return None
    return Claim(
        id=row.id,
        kind=row.kind,
        topic=row.topic,
        queue=row.queue,
        resource=row.resource,
        resource_id=row.resource_id,
        args=orjson.loads(row.args),
        context=orjson.loads(row.context),
        charges=orjson.loads(row.charges) if row.charges else [],
        fence=row.fence,
        attempt=row.attempt,
        asked=row.asked,
        abandoned=abandoned,
        owner=owner,
    )


def renew(session: Session, claims: Collection[Claim], lease: float) -> None:
    """Extend the leases of the claims that still hold their fence."""
    session.run_many(
        _RENEW,
        [
            {'work_id': claim.id, 'held_fence': claim.fence, 'lease': lease}
            for claim in claims
        ],
    )


def checkpoint(session: Session, claim: Claim, step: str) -> None:
    """Record the current step; raise ClaimLost when fenced off."""
    _require_held(session.run(_STEP, **_fence(claim), new_step=step), claim)


def finish(session: Session, claim: Claim, *, pause: float = 0.0) -> bool:
    """Delete finished work; raise ClaimLost when fenced off.

    Returns False when coalesced work was requested again meanwhile; it
    is queued again instead, due after `pause` seconds.
    """
    if session.run(_REMOVE, **_fence(claim), seen_asked=claim.asked):
        return True
    _require_held(session.run(_REQUEUE, **_fence(claim), delay=pause), claim)
    if not pause:
        session.hints.append(Hint(claim.topic, claim.queue, claim.id))
    return False


def continue_with(
    session: Session, claim: Claim, args: Mapping[str, typing.Any]
) -> None:
    """Queue the rest of the work, described by new arguments.

    Coalesced work that was requested again meanwhile starts over instead.
    Raises ClaimLost when fenced off.
    """
    if not session.run(
        _CONTINUE,
        **_fence(claim),
        seen_asked=claim.asked,
        new_args=_dump(args),
    ):
        _require_held(session.run(_REQUEUE, **_fence(claim), delay=0.0), claim)
    session.hints.append(Hint(claim.topic, claim.queue, claim.id))


def release(session: Session, claim: Claim, delay: float) -> None:
    """Give up the claim; the work is due again after `delay` seconds.

    Abandoned work stays abandoned.
    """
    _require_held(
        session.run(
            _RELEASE_ABANDONED if claim.abandoned else _REQUEUE,
            **_fence(claim),
            delay=delay,
        ),
        claim,
    )


def retry(session: Session, claim: Claim, delay: float, error: str) -> None:
    """Record the error; the work is due again after `delay` seconds."""
    _require_held(
        session.run(
            _RETRY_ABANDONED if claim.abandoned else _RETRY,
            **_fence(claim),
            delay=delay,
            new_error=error[:1000],
        ),
        claim,
    )


def hand_over(
    session: Session,
    claim: Claim,
    *,
    kind: str,
    topic: str,
    queue: str,
    args: Mapping[str, typing.Any],
) -> None:
    """Move the work to another queue, as work of another kind."""
    _require_held(
        session.run(
            _HAND_OVER,
            **_fence(claim),
            new_kind=kind,
            new_topic=topic,
            new_queue=queue,
            new_args=_dump(args),
        ),
        claim,
    )
    session.hints.append(Hint(topic, queue, claim.id))


def withdraw(
    session: Session, resource: str, resource_id: str, kind: str
) -> int:
    """Delete queued work that is no longer needed; return the count.

    Only for work without quota. Running work is left alone.
    """
    return session.run(
        _WITHDRAW, of_resource=resource, of_id=resource_id, of_kind=kind
    )


def sweep(
    session: Session,
    queues: Collection[str],
    kinds: Collection[str],
    batch: int,
) -> list[tuple[str, bool]]:
    """Return up to `batch` pairs (work id, abandoned) that can be claimed.

    Oldest first. Work of other kinds is left alone.
    """
    rows = session.rows(
        _SWEEP, queues=list(queues), kinds=list(kinds), batch=batch
    )
    return [(row.id, row.state == RUNNING) for row in rows]


def expire_leases(
    session: Session, queues: Collection[str], owner: str | None = None
) -> int:
    """Mark running work of the queues as abandoned; return the count.

    Only for a process that knows from an operating system lock that the
    owner is dead or, without `owner`, that no other process is alive.
    """
    if owner is None:
        return session.run(_EXPIRE, queues=list(queues))
    return session.run(_EXPIRE_OWNER, queues=list(queues), of_owner=owner)


def prune_journal(session: Session, older_than: datetime.datetime) -> int:
    """Delete journal entries made before a time; return the count."""
    return session.run(_PRUNE, before=older_than)


def queue_length(session: Session) -> int:
    """Return the number of queued rows."""
    return session.value(
        sa.select(sa.func.count()).where(WORK.c.state == QUEUED)
    )


def has_other_work(session: Session, claim: Claim) -> bool:
    """Whether there is other unfinished work on the resource."""
    return bool(
        session.value(
            _HAS_OTHER_WORK,
            of_resource=claim.resource,
            of_id=claim.resource_id,
            work_id=claim.id,
        )
    )


def list_work(session: Session) -> typing.Sequence[sa.Row]:
    """Return all unfinished work, oldest first.

    `lease_left` is the rest of the lease in seconds, None when queued.
    """
    return session.rows(
        sa.select(
            WORK, (WORK.c.lease_until - db_now()).label('lease_left')
        ).order_by(WORK.c.created_at, WORK.c.id)
    )


def _dump(value: typing.Any) -> str:
    return orjson.dumps(value).decode()


def _fence(claim: Claim) -> dict[str, object]:
    return {'work_id': claim.id, 'held_fence': claim.fence}


def _require_held(count: int, claim: Claim) -> None:
    if count != 1:
        raise exception.ClaimLost(id=claim.id)
