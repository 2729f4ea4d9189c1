"""The events by which administrators set a status, and what refuses them."""

from collections.abc import Collection, Mapping
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.records import Records
from manila_lite.db.session import Database, Session, transaction
from manila_lite.db.transitions import fire
from manila_lite.rpc import contracts
from manila_lite.states.machine import Machine
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.share_server import ServerStatus
from manila_lite.work import waiting

_EXISTING = frozenset(
    # Recovery brings a server that is migrating without a task to active.
    {
        InstanceStatus.AVAILABLE,  # also of snapshots, groups and backups
        ServerStatus.ACTIVE,
        ServerStatus.SERVER_MIGRATING,
    }
)
"""Statuses that say that the back end has the resource."""

_ALL = 100
"""The progress of a migration that has copied everything, in percent."""

_VERBS = {
    'create_failed': 'created',
    'manage_failed': 'managed',
    'delete_failed': 'removed',
    'unmanage_failed': 'removed',
}
"""What work does whose failure fires these events."""


class _Migration(typing.Protocol):
    """A row of either kind of migration."""

    @property
    def phase(self) -> int: ...

    @property
    def progress(self) -> int | None: ...


def reset_event(
    machine: Machine,
    status: str,
    *,
    field: str = 'status',
    allowed: Collection[str] | None = None,
) -> str:
    """Return the event that sets this status.

    Raises InvalidInput, which names the field of the request, unless the
    status is among those that are `allowed`, by default all that can be set.
    """
    statuses = machine.resets if allowed is None else allowed
    if status not in statuses:
        raise exception.InvalidInput(
            reason=f'{field} {status!r} is not one of ' + ', '.join(sorted(statuses))
        )
    return machine.reset_event(status)


def refuse_contradiction(
    session: Session, machine: Machine, id: str, event: str, *, exists: bool = True
) -> None:
    """Raise InvalidInput if work may make this status untrue.

    Claimed work may have created or removed the resource in part. Unclaimed
    work is given up instead: the reset has moved the row, and the claim of
    the work finds the new status. `exists` is False for what is created by
    the work of another resource.
    """
    status = machine[event].target
    if status not in _EXISTING:
        return
    if not exists:
        raise _contradiction(machine, id, 'created', status)
    for work in waiting.list_begun(session, machine.resource, id):
        declared = contracts.WORK.get(work.kind)
        failure = declared and declared.failure
        verb = failure and _VERBS.get(failure.event)
        if verb:
            raise _contradiction(machine, id, verb, status)


def check_phase(
    resource: str,
    id: str,
    migration: _Migration,
    wanted: str,
    *,
    first: Collection[str],
    copied: Collection[str],
) -> None:
    """Raise InvalidInput if a task state would lose data.

    In the second phase the data may have left the source already, so nothing
    of the `first` phase may be done then. Only those who copy know when
    everything is `copied`.
    """
    if migration.phase == 2 and wanted in first:
        reason = 'is in its second phase'
    elif migration.phase == 1 and wanted in copied and (migration.progress != _ALL):
        reason = 'has not copied everything'
    else:
        return
    raise exception.InvalidInput(
        reason=f'the migration of {resource} {id} {reason}, task_state '
        f'cannot be {wanted}'
    )


def _contradiction(
    machine: Machine, id: str, verb: str, status: str
) -> exception.InvalidInput:
    name = machine.resource.replace('_', ' ')
    return exception.InvalidInput(
        reason=f'{name} {id} is being {verb}, it cannot be {status}; '
        'wait until that has ended, or set the status to error'
    )


class RecordOperations:
    """What is changed in the same way of groups, their snapshots and backups."""

    machine: typing.ClassVar[Machine]
    records: typing.ClassVar[Records]
    db: Database

    @transaction
    def update(
        self,
        session: Session,
        ctx: RequestContext,
        id: str,
        values: Mapping[str, object],
    ) -> None:
        """Change the name or the description."""
        if values:
            self.records.update(session, id, values)

    @transaction
    def reset_status(
        self, session: Session, ctx: RequestContext, id: str, status: str
    ) -> None:
        """Set the status by `reset_status`; raises InvalidInput."""
        event = reset_event(self.machine, status)
        fire(session, self.machine, id, event)
        refuse_contradiction(session, self.machine, id, event)
