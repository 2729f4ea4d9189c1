"""End work without its driver.

For work of a back end that is gone. It fails as declared: its event is
fired, its quota released, and its user notified.

Abandoned work still has its resource to itself, so lists begin with what is
running: other work on the resource can end once that has ended.
"""

from collections.abc import Collection, Iterator, Sequence
import datetime
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.moves import access_rules
from manila_lite.db.queries import pages
from manila_lite.db.queries.access import share_rules, snapshot_rules
from manila_lite.db.session import Database, Session
from manila_lite.db.tables import WORK
from manila_lite.work import execution, table
from manila_lite.work.execution import Executor

BATCH = 100
"""The number of rows of a queue that are read at a time."""

_STATES = (table.RUNNING, table.QUEUED)
_ONE = sa.select(
    WORK.c.id,
    WORK.c.kind,
    WORK.c.queue,
    WORK.c.state,
    WORK.c.owner,
    WORK.c.needs_release,
).where(WORK.c.id == sa.bindparam('work_id'))
_OF_QUEUE = (
    sa.select(WORK.c.created_at, WORK.c.id)
    .where(
        WORK.c.queue == sa.bindparam('of_queue'),
        WORK.c.state == sa.bindparam('in_state'),
        *pages.is_behind(
            (sa.bindparam('after'), sa.bindparam('after_id')),
            WORK.c.created_at,
            WORK.c.id,
        ),
    )
    .order_by(WORK.c.created_at, WORK.c.id)
    .limit(BATCH)
)
_HAS_WORK = sa.select(
    sa.exists().where(
        WORK.c.queue == sa.bindparam('of_queue'), WORK.c.state.in_(_STATES)
    )
)
_OF_RESOURCES = (
    sa.select(WORK.c.id, WORK.c.queue, WORK.c.resource, WORK.c.state)
    .where(
        WORK.c.resource.in_(sa.bindparam('resources', expanding=True)),
        WORK.c.resource_id.in_(sa.bindparam('ids', expanding=True)),
    )
    .order_by(WORK.c.created_at, WORK.c.id)
)
# One piece of work changes many rules; only those that it has begun fail.
_RULES_OF_WORK = {
    'access.sync_access': share_rules.RULES,
    'snapshot_access.sync_snapshot_access': snapshot_rules.RULES,
}


class WorkNotFound(exception.NotFound):
    message = 'There is no work {id}; it may have ended.'


class WorkIsRunning(exception.Conflict):
    message = (
        'Work {id} is running in {owner}. Stop that process, or wait until '
        'its lease has expired.'
    )


class WorkIsBlocked(exception.Conflict):
    message = (
        'Work {id} cannot end before other work on its resource, which is running.'
    )


class WorkNotCancellable(exception.Conflict):
    message = 'Work {id} is of kind {kind}, which this release cannot end.'


class WorkCancelled(exception.AttemptsExhausted):
    """An administrator has given up the work; no driver was asked."""

    message = 'The work was cancelled by {user}.'


class WorkRow(typing.Protocol):
    """What identifies work, and who runs it."""

    id: str
    kind: str
    queue: str
    state: str
    owner: str | None
    needs_release: int | None


def find(session: Session, work_id: str) -> WorkRow:
    """Return work by its id; raises WorkNotFound."""
    row = session.first(_ONE, work_id=work_id)
    if row is None:
        raise WorkNotFound(id=work_id)
    return row


def iterate_queue(db: Database, queue: str) -> Iterator[str]:
    """Yield the ids of all work of a queue, running work first.

    Work that cannot be ended does not hide what follows it.
    """
    for state in _STATES:
        after = pages.BEGINNING
        while batch := db.read(list_of_queue, queue, state, after):
            yield from (row.id for row in batch)
            after = batch[-1].created_at, batch[-1].id


def list_of_queue(
    session: Session, queue: str, state: str, after: tuple[datetime.datetime, str]
) -> Sequence[typing.Any]:
    """Return id and time of the oldest work of a queue behind a position."""
    return session.rows(
        _OF_QUEUE, of_queue=queue, in_state=state, after=after[0], after_id=after[1]
    )


def has_work(session: Session, queue: str) -> bool:
    """Whether there is work in a queue, in any state."""
    return bool(session.value(_HAS_WORK, of_queue=queue))


def list_of_resources(
    session: Session, resources: Sequence[str], ids: Collection[str]
) -> Sequence[typing.Any]:
    """Return id and queue of all work on some resources.

    Running work first, then in the order of `resources`.
    """
    rows = session.rows(_OF_RESOURCES, resources=resources, ids=sorted(ids))
    return sorted(
        rows,
        key=lambda row: (row.state != table.RUNNING, resources.index(row.resource)),
    )


def cancel(
    session: Session,
    executor: Executor,
    work_id: str,
    reason: exception.AttemptsExhausted,
) -> None:
    """End work as failed for a reason, unless a living process runs it.

    The executor has the handlers of its queue; none of them is run. Raises
    WorkNotFound, WorkIsRunning, WorkIsBlocked, or WorkNotCancellable.
    """
    row = find(session, work_id)
    handler = executor.handlers.get(row.kind)
    if handler is None or (row.needs_release or 0) > executor.release:
        raise WorkNotCancellable(id=row.id, kind=row.kind)
    table.postpone(session, work_id, -1.0)  # a retry may be due later
    try:
        claim = executor.claim(session, work_id, row.state == table.RUNNING)
    except execution.UnknownWork as error:
        raise WorkNotCancellable(id=row.id, kind=row.kind) from error
    except table.ResourceBusy as error:
        raise WorkIsBlocked(id=row.id) from error
    if claim is None:
        raise WorkIsRunning(id=work_id, owner=row.owner or 'another process')
    rules = _RULES_OF_WORK.get(claim.kind)
    if rules is not None:
        access_rules.begin_changes(session, rules, claim.resource_id)
    executor.fail(session, claim, handler, reason)
