"""The work table: submit, claim, renew, hand over, retry, finish, sweep.

A row is inserted in the transaction that moves the status and charges
the quota, so that a request is either accepted with its work or not at
all. It is claimed by one guarded UPDATE that raises its fence; whoever
holds an older fence can finish nothing. Design: engineering, section 1.
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


def _ask(dialect: str) -> sa.Insert:
    """Insert work, or ask once more for that of its key; which it is."""
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
    make = {'sqlite': sqlite.insert, 'postgresql': postgresql.insert}[dialect]
    return (
        make(WORK)
        .values(first)
        .on_conflict_do_update(index_elements=['one_key'], set_=again)
        .returning(WORK.c.id, WORK.c.state)
    )


_ASK = {
    dialect: _ask(dialect) for dialect in ('sqlite', 'mysql', 'postgresql')
}

_MINE = (
    WORK.c.id == sa.bindparam('work_id'),
    WORK.c.state == RUNNING,
    WORK.c.fence == sa.bindparam('held_fence'),
)
_DUE = sa.and_(WORK.c.state == QUEUED, WORK.c.next_try_at <= db_now())
_OTHER = WORK.alias('other')
# To a back end a share instance and its access rules are one thing.
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
_IS_FOLLOWED = sa.select(
    sa.exists().where(
        WORK.c.resource == sa.bindparam('of_resource'),
        WORK.c.resource_id == sa.bindparam('of_id'),
        WORK.c.id != sa.bindparam('work_id'),
    )
)
# Not part of the claim: MariaDB would lock what it looks at.
_READ = sa.select(WORK, _IS_BUSY.label('is_busy')).where(
    WORK.c.id == sa.bindparam('work_id')
)
_UNCLAIM = (
    sa.update(WORK)
    .where(*_MINE)
    .values(
        state=QUEUED, owner=None, lease_until=None, attempt=WORK.c.attempt - 1
    )
)
_RENEW = (
    sa.update(WORK)
    .where(*_MINE)
    .values(lease_until=db_now() + sa.bindparam('lease', type_=sa.Double()))
)
_STEP = sa.update(WORK).where(*_MINE).values(step=sa.bindparam('new_step'))
_CHARGE = (
    sa.update(WORK).where(*_MINE).values(charges=sa.bindparam('new_charges'))
)
_REMOVE = sa.delete(WORK).where(
    *_MINE, WORK.c.asked == sa.bindparam('seen_asked')
)
_PUT_BACK = (
    sa.update(WORK)
    .where(*_MINE)
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
    .where(*_MINE)
    .values(
        state=QUEUED,
        owner=None,
        lease_until=None,
        error=sa.bindparam('new_error'),
        next_try_at=db_now() + sa.bindparam('delay', type_=sa.Double()),
    )
)
# Abandoned work stays so: whoever claims it next must rescue it, too.
_LEAVE = (
    sa.update(WORK)
    .where(*_MINE)
    .values(
        owner=None,
        lease_until=db_now() + sa.bindparam('delay', type_=sa.Double()),
    )
)
_LEAVE_FOR_RETRY = _LEAVE.values(error=sa.bindparam('new_error'))
_LEAVE_TO_OTHERS = _LEAVE.values(attempt=0)
_GO_ON = (
    sa.update(WORK)
    .where(*_MINE, WORK.c.asked == sa.bindparam('seen_asked'))
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
    .where(*_MINE)
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
_TAKE_OVER = (
    sa.update(WORK)
    .where(WORK.c.state == RUNNING, _IN_QUEUES)
    .values(lease_until=0.0)
)
_TAKE_OVER_FROM = _TAKE_OVER.where(WORK.c.owner == sa.bindparam('of_owner'))


@dataclasses.dataclass(slots=True)
class Claim:
    """Work that this process has claimed; also who makes its moves.

    `abandoned` says that another process had claimed it before and did
    not come back. `prepared` is what the handler's `prepare` read inside
    the claiming transaction.
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
    """Leave work in the transaction; the hint goes out after its commit.

    With `one_key`, work of that key that is still owed is asked for once
    more instead, with these arguments. Returns the id of the work.
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
        work_id, state = values['id'], QUEUED
    else:
        work_id, state = session.rows(
            _ASK[session.dialect], **values, new_args=values['args']
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
    """Submit what a contract declares (`rpc.contract.Durable`).

    Quota that was reserved in this transaction now belongs to the work.
    """
    charges, session.charges = session.charges, []
    failure = durable.failure
    one = durable.one_per and f'{durable.kind}:{args[durable.one_per]}'
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
        one_key=one,
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

    None when somebody else was faster, when other work on the same
    resource is running, or when it is not for these queues.
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
        # Who deletes by force must not overtake who is still creating.
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


def renew(session: Session, jobs: Collection[Claim], lease: float) -> None:
    """Extend the leases of the jobs that are still held."""
    session.run_many(
        _RENEW,
        [
            {'work_id': job.id, 'held_fence': job.fence, 'lease': lease}
            for job in jobs
        ],
    )


def checkpoint(session: Session, job: Claim, step: str) -> None:
    """Note how far the work has come; raises WorkLost when fenced off."""
    _held(session.run(_STEP, **_fence(job), new_step=step), job)


def set_charges(
    session: Session, job: Claim, charges: list[typing.Any]
) -> None:
    """Replace the quota reservations that this work will settle."""
    _held(session.run(_CHARGE, **_fence(job), new_charges=_dump(charges)), job)


def finish(session: Session, job: Claim, *, pause: float = 0.0) -> bool:
    """Take the work off the table; raises WorkLost when fenced off.

    Coalesced work that was asked for again meanwhile goes back to the
    queue instead, due after `pause` seconds; then the answer is False.
    """
    if session.run(_REMOVE, **_fence(job), seen_asked=job.asked):
        return True
    _held(session.run(_PUT_BACK, **_fence(job), delay=pause), job)
    if not pause:
        session.hints.append(Hint(job.topic, job.queue, job.id))
    return False


def continue_with(
    session: Session, job: Claim, args: Mapping[str, typing.Any]
) -> None:
    """Queue the rest of the work, which other arguments describe.

    Coalesced work that was asked for again meanwhile begins anew instead.
    Raises WorkLost when fenced off.
    """
    if not session.run(
        _GO_ON, **_fence(job), seen_asked=job.asked, new_args=_dump(args)
    ):
        _held(session.run(_PUT_BACK, **_fence(job), delay=0.0), job)
    session.hints.append(Hint(job.topic, job.queue, job.id))


def release(session: Session, job: Claim, delay: float) -> None:
    """Let go of work that another is better placed to do just now."""
    _held(
        session.run(
            _LEAVE_TO_OTHERS if job.abandoned else _PUT_BACK,
            **_fence(job),
            delay=delay,
        ),
        job,
    )


def retry(session: Session, job: Claim, delay: float, error: str) -> None:
    """Put the work back, due after `delay` seconds."""
    _held(
        session.run(
            _LEAVE_FOR_RETRY if job.abandoned else _RETRY,
            **_fence(job),
            delay=delay,
            new_error=error[:1000],
        ),
        job,
    )


def hand_over(
    session: Session,
    job: Claim,
    *,
    kind: str,
    topic: str,
    queue: str,
    args: Mapping[str, typing.Any],
) -> None:
    """Give the same work to another queue, as work of another kind."""
    _held(
        session.run(
            _HAND_OVER,
            **_fence(job),
            new_kind=kind,
            new_topic=topic,
            new_queue=queue,
            new_args=_dump(args),
        ),
        job,
    )
    session.hints.append(Hint(topic, queue, job.id))


def withdraw(
    session: Session, resource: str, resource_id: str, kind: str
) -> int:
    """Forget work of a kind that waits and has nothing to do any more.

    Only for work without quota; what is running is left alone.
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
    """Up to `batch` pairs (work id, abandoned) that may be claimed now.

    Oldest first; a kind that nobody here knows stays where it is.
    """
    rows = session.rows(
        _SWEEP, queues=list(queues), kinds=list(kinds), batch=batch
    )
    return [(row.id, row.state == RUNNING) for row in rows]


def expire_leases(
    session: Session, queues: Collection[str], owner: str | None = None
) -> int:
    """Declare every running work of the queues abandoned.

    Only for a process that knows, by an operating system lock, that the
    owner does not live, or, without one, that nobody else does.
    """
    if owner is None:
        return session.run(_TAKE_OVER, queues=list(queues))
    return session.run(_TAKE_OVER_FROM, queues=list(queues), of_owner=owner)


def prune_journal(session: Session, older_than: datetime.datetime) -> int:
    """Forget the moves made before a moment; how many there were."""
    return session.run(_PRUNE, before=older_than)


def queue_length(session: Session) -> int:
    """How much work waits to be claimed."""
    return session.value(
        sa.select(sa.func.count()).where(WORK.c.state == QUEUED)
    )


def has_other_work(session: Session, job: Claim) -> bool:
    """Whether other work is owed for what the job is about."""
    return bool(
        session.value(
            _IS_FOLLOWED,
            of_resource=job.resource,
            of_id=job.resource_id,
            work_id=job.id,
        )
    )


def list_work(session: Session) -> typing.Sequence[sa.Row]:
    """All work that is owed, oldest first, with its age in seconds."""
    return session.rows(
        sa.select(
            WORK, (WORK.c.lease_until - db_now()).label('lease_left')
        ).order_by(WORK.c.created_at, WORK.c.id)
    )


def _dump(value: typing.Any) -> str:
    return orjson.dumps(value).decode()


def _fence(job: Claim) -> dict[str, object]:
    return {'work_id': job.id, 'held_fence': job.fence}


def _held(count: int, job: Claim) -> None:
    if count != 1:
        raise exception.ClaimLost(id=job.id)
