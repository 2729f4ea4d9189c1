"""End work without its driver.

For work of a back end that is gone. It fails as declared: its event is
fired, its quota released, and its user notified.
"""

from collections.abc import Collection, Sequence
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import engine
from manila_lite.db.moves import access_rules
from manila_lite.db.session import Session
from manila_lite.work import execution
from manila_lite.work import table
from manila_lite.work.execution import Executor

WORK = engine.Work.__table__

_ONE = sa.select(
    WORK.c.id, WORK.c.kind, WORK.c.queue, WORK.c.state, WORK.c.owner
).where(WORK.c.id == sa.bindparam('work_id'))
_OF_QUEUE = (
    sa.select(WORK.c.id)
    .where(WORK.c.queue == sa.bindparam('of_queue'))
    .order_by(WORK.c.created_at, WORK.c.id)
    .limit(sa.bindparam('most'))
)
_OF_RESOURCE = (
    sa.select(WORK.c.id)
    .where(
        WORK.c.resource == sa.bindparam('of_resource'),
        WORK.c.resource_id.in_(sa.bindparam('ids', expanding=True)),
    )
    .order_by(WORK.c.created_at, WORK.c.id)
)
# One piece of work changes many rules; only those that it has begun fail.
_BEGINNINGS = {
    'access.sync_access': access_rules.begin_share_rules,
    'snapshot_access.sync_snapshot_access': access_rules.begin_snapshot_rules,
}


class WorkNotFound(exception.NotFound):
    message = 'There is no work {id}; it may have ended.'


class WorkIsRunning(exception.Conflict):
    message = (
        'Work {id} is running in {owner}. Stop that process, or wait until '
        'its lease has expired.'
    )


class UnknownWork(exception.Conflict):
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


def find(session: Session, work_id: str) -> WorkRow:
    """Return work by its id; raises WorkNotFound."""
    row = session.one(_ONE, work_id=work_id)
    if row is None:
        raise WorkNotFound(id=work_id)
    return row


def list_of_queue(session: Session, queue: str, most: int) -> Sequence[str]:
    """Return the ids of the oldest work of a queue, in any state."""
    return [
        row.id for row in session.rows(_OF_QUEUE, of_queue=queue, most=most)
    ]


def list_of_resource(
    session: Session, resource: str, ids: Collection[str]
) -> Sequence[str]:
    """Return the ids of all work on some resources, oldest first."""
    return [
        row.id
        for row in session.rows(
            _OF_RESOURCE, of_resource=resource, ids=sorted(ids)
        )
    ]


def cancel(
    session: Session,
    executor: Executor,
    work_id: str,
    reason: exception.AttemptsExhausted,
) -> None:
    """End work as failed for a reason, unless a living process runs it.

    The executor has the handlers of its queue; none of them is run.
    """
    row = find(session, work_id)
    handler = executor.handlers.get(row.kind)
    if handler is None:
        raise UnknownWork(id=row.id, kind=row.kind)
    table.postpone(session, work_id, -1.0)  # a retry may be due later
    try:
        claim = executor.claim(session, work_id, row.state == table.RUNNING)
    except execution.UnknownWork as error:
        raise UnknownWork(id=row.id, kind=row.kind) from error
    if claim is None:
        raise WorkIsRunning(id=work_id, owner=row.owner or 'another process')
    begin = _BEGINNINGS.get(claim.kind)
    if begin is not None:
        begin(session, claim.resource_id)
    executor.fail(session, claim, handler, reason)
