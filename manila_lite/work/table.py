"""The work table: submit, claim, renew, hand over, retry, finish, sweep.

A row is inserted in the transaction that changes the status and charges
the quota, so a request is accepted together with its work or not at all.
One guarded UPDATE claims the row and raises its fence; a worker with an
older fence can no longer write. The same UPDATE takes the running key of
what the work must have to itself, which is unique, so that two workers
never run work on one resource at once. Design: engineering, section 1.
"""

from collections.abc import Collection, Mapping
import dataclasses
import typing

import orjson
from oslo_db import exception as db_exc
import sqlalchemy as sa

from manila_lite import exception, masking
from manila_lite.context import RequestContext
from manila_lite.db.dialects import db_now
from manila_lite.db.session import Hint, Session
from manila_lite.release import NUMBER as THIS_RELEASE
from manila_lite.work import operation_log, statements as sql
from manila_lite.work.driver_calls import (
    CallLog,
    DriverCalls,
    record_ended,
    record_running,
)
from manila_lite.work.statements import QUEUED, RUNNING, WORK


class DurableMethod(typing.Protocol):
    """What a contract declares about work; see `rpc.contract.Durable`."""

    @property
    def kind(self) -> str: ...

    @property
    def topic(self) -> str: ...

    @property
    def resource(self) -> str: ...

    @property
    def resource_name(self) -> str: ...

    @property
    def one_per(self) -> str | None: ...

    @property
    def exclusion(self) -> str | None: ...

    def without_defaults(
        self, values: Mapping[str, typing.Any]
    ) -> dict[str, typing.Any]: ...

    def needed_release(self, values: Mapping[str, typing.Any]) -> int | None: ...


class ResourceBusy(exception.ManilaLiteError):
    """Other work on the same resource is running."""

    message = 'Other work has the resource of work {id}.'


@dataclasses.dataclass(slots=True)
class Claim:
    """Work claimed by this process; also the actor of its transitions.

    `abandoned` is true when another process claimed the work before and
    let its lease expire. `prepared` is the result of the handler's
    `prepare`, read in the claiming transaction. `share_id` is the share of
    the instance or snapshot instance that it is about, `durable` the method
    of the contract, if the claimer knows it.
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
    exclusion_key: str
    share_id: str | None = None
    prepared: typing.Any = None
    driver_calls: DriverCalls = dataclasses.field(default_factory=DriverCalls)
    durable: DurableMethod | None = None

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

    def request_context(self) -> RequestContext:
        """Return the context of the request that the work is done for."""
        return RequestContext(
            request_id=self.request_id, user_id=self.user_id, project_id=self.project_id
        )


class Accepted(typing.NamedTuple):
    """Work that a transaction has submitted, for the log."""

    kind: str
    resource: str
    resource_id: str
    share_id: str | None
    request_id: str | None
    project_id: str | None
    user_id: str | None


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
    exclusion: str | None = None,
    needs_release: int | None = None,
) -> str:
    """Add work in this transaction; its hint is sent after the commit.

    With `one_key`, unfinished work of the same key is requested once more
    instead, with these arguments. Work on one `resource_id` with the same
    `exclusion`, by default the resource, never runs at the same time.
    Processes of a release before `needs_release` leave it alone. Returns the
    id of the work.
    """
    values = {
        'id': session.new_id(),
        'kind': kind,
        'topic': topic,
        'queue': queue,
        'resource': resource,
        'resource_id': resource_id,
        'one_key': one_key,
        'exclusion_key': f'{exclusion or resource}:{resource_id}',
        'args': _dump(args),
        'context': _dump(context),
        'charges': _dump(charges) if charges else None,
        'request_id': context.get('request_id'),
        'created_at': session.now,
        'of_resource': resource_id,
        'needs_release': needs_release,
    }
    if one_key is None:
        work_id, state, share_id = session.rows(sql.INSERT, **values)[0]
    else:
        work_id, state, share_id = session.rows(
            sql.upsert(session.dialect),
            **values,
            new_args=values['args'],
            new_release=needs_release,
        )[0]
    session.after_commit(
        operation_log.accepted,
        Accepted(
            kind,
            resource,
            resource_id,
            share_id,
            context.get('request_id'),
            context.get('project_id'),
            context.get('user_id'),
        ),
    )
    if state == QUEUED:
        session.hints.append(Hint(topic, queue, work_id))
    return work_id


def submit_durable(
    session: Session,
    ctx: RequestContext,
    durable: DurableMethod,
    queue: str,
    args: dict[str, typing.Any],
) -> str:
    """Submit work declared by a contract.

    The work takes over the quota reserved in this transaction.
    """
    charges, session.charges = session.charges, []
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
        resource=durable.resource_name,
        resource_id=str(args[durable.resource]),
        args=durable.without_defaults(args),
        charges=charges,
        one_key=one_key,
        exclusion=durable.exclusion,
        needs_release=durable.needed_release(args),
    )


def claim(
    session: Session,
    work_id: str,
    queues: Collection[str],
    owner: str,
    lease: float,
    *,
    abandoned: bool = False,
    release: int = THIS_RELEASE,
) -> Claim | None:
    """Claim work that is due (or abandoned) in one of the queues.

    Returns None when another worker was faster, the work is not in these
    queues, or it needs a newer release than that of the claimer. Raises
    ResourceBusy while other work has the resource; a force delete, for
    instance, must not overtake a create. The transaction is then of no
    further use.
    """
    update, read = sql.claim(session.dialect, abandoned)
    try:
        claimed = session.execute(
            update,
            {
                'work_id': work_id,
                'queues': list(queues),
                'new_owner': owner,
                'lease': lease,
                'own_release': release,
            },
        )
    except db_exc.DBDuplicateEntry as error:
        raise ResourceBusy(id=work_id) from error
    if read is None:
        row = claimed.first()
    else:
        row = session.first(read, work_id=work_id) if claimed.rowcount else None
    if row is None:
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
        exclusion_key=row.running_key,
        share_id=row.share_id,
    )


def find_exclusion_key(session: Session, work_id: str) -> str | None:
    """Return what the work has to itself while it runs."""
    return session.value(sql.EXCLUSION_KEY_OF, work_id=work_id)


class WorkLocked(Exception):
    """Another transaction has locked the work, which may be held still."""


def renew(session: Session, claim: Claim, lease: float, *, wait: bool = True) -> bool:
    """Extend the lease; return False when the claim is lost.

    Without `wait` raise WorkLocked instead of waiting for a lock.
    """
    if not wait and session.value(sql.LOCK_HELD, **_fence(claim)) is None:
        if session.value(sql.IS_HELD, **_fence(claim)) is None:
            return False
        raise WorkLocked
    if not session.run(sql.RENEW, **_fence(claim), lease=lease):
        return False
    record_running(session, claim)
    return True


def raise_fence(session: Session, claim: Claim, fence: int) -> None:
    """Give the claim a larger fence; raise ClaimLost when fenced off."""
    _require_held(session.run(sql.RAISE_FENCE, **_fence(claim), new_fence=fence), claim)


def checkpoint(session: Session, claim: Claim, step: str) -> None:
    """Record the current step; raise ClaimLost when fenced off."""
    _require_held(session.run(sql.STEP, **_fence(claim), new_step=step), claim)
    record_ended(session, claim)


def finish(
    session: Session,
    claim: Claim,
    *,
    pause: float = 0.0,
    call_log: CallLog | None = None,
) -> bool:
    """Delete finished work; raise ClaimLost when fenced off.

    Returns False when coalesced work was requested again meanwhile; it
    is queued again instead, due after `pause` seconds. The `call_log` of a
    worker that has succeeded may write its driver calls later.
    """
    if session.run(sql.REMOVE, **_fence(claim), seen_asked=claim.asked):
        record_ended(session, claim, call_log)
        return True
    _give_up(session, claim, sql.REQUEUE, delay=pause)
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
    durable = claim.durable
    if not session.run(
        sql.CONTINUE,
        **_fence(claim),
        seen_asked=claim.asked,
        new_args=_dump(durable.without_defaults(args) if durable else args),
        new_release=durable and durable.needed_release(args),
    ):
        _require_held(session.run(sql.REQUEUE, **_fence(claim), delay=0.0), claim)
    record_ended(session, claim)
    session.hints.append(Hint(claim.topic, claim.queue, claim.id))


def release(session: Session, claim: Claim, delay: float) -> None:
    """Give up the claim; the work is due again after `delay` seconds.

    Abandoned work stays abandoned.
    """
    _give_up(
        session,
        claim,
        sql.RELEASE_ABANDONED if claim.abandoned else sql.REQUEUE,
        delay=delay,
    )


def hand_on(session: Session, claim: Claim) -> None:
    """Give up the claim; another process may run the work at once."""
    release(session, claim, 0.0)
    if not claim.abandoned:
        session.hints.append(Hint(claim.topic, claim.queue, claim.id))


def release_waiting(session: Session, claim: Claim, delay: float, reason: str) -> None:
    """Do the same, and show administrators what the work waits for."""
    _give_up(
        session,
        claim,
        sql.WAIT_ABANDONED if claim.abandoned else sql.WAIT,
        delay=delay,
        new_error=masking.mask(reason)[:1000],
    )


def retry(session: Session, claim: Claim, delay: float, error: str) -> None:
    """Record the error; the work is due again after `delay` seconds."""
    _give_up(
        session,
        claim,
        sql.RETRY_ABANDONED if claim.abandoned else sql.RETRY,
        delay=delay,
        new_error=masking.mask(error)[:1000],
    )


def run_again(session: Session, claim: Claim, reason: str) -> None:
    """Give up the claim of abandoned work, which is due as if it was not."""
    _give_up(
        session, claim, sql.RETRY, delay=0.0, new_error=masking.mask(reason)[:1000]
    )
    session.hints.append(Hint(claim.topic, claim.queue, claim.id))


def abandon(session: Session, claim: Claim, delay: float, error: str) -> None:
    """Give up the claim for a rescue, which is due after `delay` seconds."""
    _give_up(
        session,
        claim,
        sql.RETRY_ABANDONED,
        delay=delay,
        new_error=masking.mask(error)[:1000],
    )


def postpone(session: Session, work_id: str, delay: float) -> None:
    """Leave queued or abandoned work to others for `delay` seconds."""
    session.run(sql.POSTPONE, work_id=work_id, delay=delay)


def hand_over(
    session: Session,
    claim: Claim,
    durable: DurableMethod,
    queue: str,
    args: Mapping[str, typing.Any],
) -> None:
    """Move the work to a queue as work declared by another method."""
    _give_up(
        session,
        claim,
        sql.HAND_OVER,
        new_kind=durable.kind,
        new_topic=durable.topic,
        new_queue=queue,
        new_args=_dump(durable.without_defaults(args)),
        new_release=durable.needed_release(args),
    )
    session.hints.append(Hint(durable.topic, queue, claim.id))


def hand_over_new(
    session: Session,
    works: Mapping[str, tuple[str, Mapping[str, typing.Any]]],
    kind: str,
    durable: DurableMethod,
    *,
    release: int = THIS_RELEASE,
) -> bool:
    """Move work that is new, by its ids, without a claim.

    `works` has the queue of each, and the arguments of the other method, which
    must need the same release.
    Returns False if some has been claimed, moved or withdrawn meanwhile: the
    transaction is then of no further use.
    """
    releases = {durable.needed_release(args) for _, args in works.values()}
    (needed,) = releases
    values: dict[str, object] = {}
    for number, (work_id, (queue, args)) in enumerate(sorted(works.items())):
        values[f'work_id_{number}'] = work_id
        values[f'queue_{number}'] = queue
        values[f'args_{number}'] = _dump(durable.without_defaults(args))
    moved = session.run(
        sql.hand_over_new(len(works)),
        **values,
        old_kind=kind,
        new_kind=durable.kind,
        new_topic=durable.topic,
        new_release=needed,
        own_release=release,
    )
    session.hints += [
        Hint(durable.topic, queue, work_id) for work_id, (queue, _) in works.items()
    ]
    return moved == len(works)


def withdraw(session: Session, resource: str, resource_id: str, kind: str) -> int:
    """Delete queued work that is no longer needed; return the count.

    Only for work without quota. Running work is left alone.
    """
    return session.run(
        sql.WITHDRAW, of_resource=resource, of_id=resource_id, of_kind=kind
    )


def sweep(
    session: Session,
    queues: Collection[str],
    kinds: Collection[str],
    batch: int,
    *,
    release: int = THIS_RELEASE,
) -> list[tuple[str, bool]]:
    """Return up to `batch` pairs (work id, abandoned) that can be claimed.

    Oldest first. Work of other kinds, or that needs a newer release, is left
    alone.
    """
    return sweep_ahead(session, queues, kinds, batch, 0.0, release=release)[0]


def sweep_ahead(
    session: Session,
    queues: Collection[str],
    kinds: Collection[str],
    batch: int,
    ahead: float,
    *,
    release: int = THIS_RELEASE,
) -> tuple[list[tuple[str, bool]], list[tuple[str, float]]]:
    """Return the same, and pairs (work id, seconds) of work that is due soon.

    That is within the seconds `ahead`, and only what the previous release
    does not know: a process of release 1 puts such work off whenever it finds
    it due, so another one has to claim it at that moment.
    """
    due, soon = [], []
    for row in session.rows(
        sql.SWEEP,
        queues=list(queues),
        kinds=list(kinds),
        batch=batch,
        own_release=release,
        ahead=ahead,
    ):
        if row.state == QUEUED and row.due_in > 0:
            soon.append((row.id, row.due_in))
        else:
            due.append((row.id, row.state == RUNNING))
    return due, soon


def list_queues_to_sweep(
    session: Session,
    queues: Collection[str],
    batch: int,
    ahead: float,
    *,
    release: int = THIS_RELEASE,
) -> Collection[str]:
    """Return those of the queues in which `sweep_ahead` may find work.

    With more than `batch` pieces of work these are all of the queues.
    """
    found = session.rows(
        sql.QUEUES_TO_SWEEP,
        queues=list(queues),
        batch=batch,
        own_release=release,
        ahead=ahead,
    )
    return queues if len(found) == batch else {row.queue for row in found}


def expire_leases(
    session: Session, queues: Collection[str], owner: str | None = None
) -> int:
    """Mark running work of the queues as abandoned; return the count.

    Only for a process that knows from an operating system lock that the
    owner is dead or, without `owner`, that no other process is alive.
    """
    if owner is None:
        return session.run(sql.EXPIRE, queues=list(queues))
    return session.run(sql.EXPIRE_OWNER, queues=list(queues), of_owner=owner)


def has_other_work(session: Session, claim: Claim) -> bool:
    """Whether there is other unfinished work on the resource."""
    return bool(
        session.value(
            sql.HAS_OTHER_WORK,
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
        sa.select(WORK, (WORK.c.lease_until - db_now()).label('lease_left')).order_by(
            WORK.c.created_at, WORK.c.id
        )
    )


def count_by_kind(session: Session, queue: str) -> typing.Sequence[sa.Row]:
    """Return the unfinished work of a queue per kind and state."""
    return session.rows(sql.COUNT_BY_KIND, of_queue=queue)


def _dump(value: object) -> str:
    return orjson.dumps(value).decode()


def _fence(claim: Claim) -> dict[str, object]:
    return {'work_id': claim.id, 'held_fence': claim.fence, 'held_by': claim.owner}


def _give_up(
    session: Session, claim: Claim, statement: sa.Update, **values: object
) -> None:
    _require_held(session.run(statement, **_fence(claim), **values), claim)
    record_ended(session, claim)


def _require_held(count: int, claim: Claim) -> None:
    if count != 1:
        raise exception.ClaimLost(id=claim.id)
