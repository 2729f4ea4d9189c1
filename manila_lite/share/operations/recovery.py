"""Resources in flight and their recovery, for administrators."""

import dataclasses
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.recovery import recovery as rows
from manila_lite.db.queries.services import services
from manila_lite.db.session import Database, Session, read_transaction, transaction
from manila_lite.rpc import contracts, share as share_rpc
from manila_lite.rpc.contract import Client, Durable
from manila_lite.rpc.share import ReconciliationRpc
from manila_lite.states.machine import Resume
from manila_lite.work import table

RESOURCES = tuple(rows.KINDS)
"""The names of the state tables that recovery covers, in order."""

NOBODY, WAITING, HELD, ABANDONED = 'nobody', 'waiting', 'held', 'abandoned'


class InFlight(typing.NamedTuple):
    """A resource in flight: since when, held by which work, what is next.

    `age` is in seconds, None if the journal does not reach back so far.
    `holder` says whether its work is held by a living process, waits to be
    claimed or was abandoned, or whether there is none.
    """

    resource_type: str
    resource_id: str
    status: str
    host: str | None
    project_id: str
    age: float | None
    holder: str
    work_id: str | None
    work_kind: str | None
    owner: str | None
    lease_left: float | None
    heartbeat_age: float | None
    attempt: int | None
    error: str | None
    next_step: str

    @property
    def is_candidate(self) -> bool:
        """Whether a recovery pass would handle it."""
        return self.holder in (NOBODY, ABANDONED)


@dataclasses.dataclass(eq=False)
class Recovery:
    """Operations on recovery; none of them calls a driver."""

    db: Database
    rescues: Client[ReconciliationRpc]

    # Show

    @read_transaction
    def in_flight(
        self,
        session: Session,
        *,
        limit: int,
        resource_type: str | None = None,
        host: str | None = None,
        candidates: bool = False,
    ) -> list[InFlight]:
        """List at most `limit` resources in flight, in the order of a pass.

        With `candidates`, only those that a pass would handle.
        """
        if resource_type is None and not candidates:
            page = rows.list_all_in_flight(session, host=host, most=limit)
            return self._describe(session, page)
        found: list[InFlight] = []
        for kind in [resource_type] if resource_type else RESOURCES:
            after = ''
            while len(found) < limit:
                page = rows.list_in_flight(
                    session, kind, host=host, most=limit, after=after
                )
                found += [
                    resource
                    for resource in self._describe(session, page)
                    if resource.is_candidate or not candidates
                ]
                if len(page) < limit:
                    break
                after = page[-1].id
        return found[:limit]

    def _describe(
        self, session: Session, page: typing.Sequence[typing.Any]
    ) -> list[InFlight]:
        ids: dict[str, list[str]] = {}
        for row in page:
            ids.setdefault(row.resource, []).append(row.id)
        works = rows.list_holding_work(session, ids)
        return [
            _in_flight(session, row, works.get((row.resource, row.id))) for row in page
        ]

    @read_transaction
    def log(
        self, session: Session, *, limit: int, offset: int = 0, **wanted: str | None
    ) -> typing.Sequence[typing.Any]:
        """List the decisions of recovery, newest first."""
        return rows.list_log(session, limit=limit, offset=offset, **wanted)

    # Request

    @transaction
    def rescue(
        self,
        session: Session,
        ctx: RequestContext,
        resource_type: str,
        resource_id: str,
    ) -> None:
        """Request that the service that owns a resource rescues it.

        A resource held by a living process is left alone.
        """
        if resource_type not in rows.KINDS:
            raise exception.InvalidInput(
                reason='resource_type must be one of: ' + ', '.join(RESOURCES)
            )
        row = rows.get_resource(session, resource_type, resource_id)
        if row.host is None:
            raise exception.Conflict(
                f'{resource_id} has no host; a scheduler handles it.'
            )
        method = share_rpc.RESCUES[resource_type]
        declared = typing.cast(Durable, self.rescues.contract.methods[method])
        # User messages go to the owner, as in a pass of the timer.
        owner = RequestContext(
            project_id=row.project_id, user_id=row.user_id, request_id=ctx.request_id
        )
        getattr(self.rescues.on(row.host), method)(
            session,
            owner,
            asked_by=_caller_name(ctx),
            **{declared.resource: row.subject_id},
        )

    @transaction
    def run_pass(
        self, session: Session, ctx: RequestContext, host: str | None = None
    ) -> list[str]:
        """Request a pass of all share services, or one; return their hosts."""
        service_ids = {
            service.host: service.id
            for service in services.list_all(session)
            if service.binary == share_rpc.BINARY and host in (None, service.host)
        }
        if host is not None and not service_ids:
            raise exception.ServiceNotFound(binary=share_rpc.BINARY, host=host)
        for name, service_id in service_ids.items():
            self.rescues.on(name).recover(
                session, ctx, service_id=service_id, asked_by=_caller_name(ctx)
            )
        return sorted(service_ids)


def _caller_name(ctx: RequestContext) -> str:
    """Return the name of the caller for the decision log."""
    return ctx.user_id or 'an administrator'


def _in_flight(session: Session, row: typing.Any, work: typing.Any) -> InFlight:
    holder = _holder(work)
    return InFlight(
        resource_type=row.resource,
        resource_id=row.id,
        status=row.status,
        host=row.host,
        project_id=row.project_id,
        age=row.since and max(0.0, (session.now - row.since).total_seconds()),
        holder=holder,
        work_id=work and work.id,
        work_kind=work and work.kind,
        owner=work and work.owner,
        lease_left=work and work.lease_left,
        heartbeat_age=work and work.heartbeat_age,
        attempt=work and work.attempt,
        error=work and work.error,
        next_step=_next_step(row, work, holder),
    )


def _holder(work: typing.Any) -> str:
    if work is None:
        return NOBODY
    if work.state == table.QUEUED:
        return WAITING
    return HELD if work.lease_left > 0 else ABANDONED


def _next_step(row: typing.Any, work: typing.Any, holder: str) -> str:
    if holder == HELD:
        return f'it is left alone: {work.owner} works on it'
    if holder == WAITING and work.needs_release:
        return (
            f'{work.kind} is run on {work.queue} by a process of release '
            f'{work.needs_release}'
        )
    if holder == WAITING and work.blocker_kind:
        return (
            f'{work.kind} is run on {work.queue} after {work.blocker_kind}, '
            f'held by {work.blocker_owner}'
        )
    if holder == WAITING:
        return f'{work.kind} is run on {work.queue}'
    if holder == ABANDONED and _is_repeatable(work.kind):
        return f'{work.kind} is run again on {work.queue}'
    if row.waits:
        return 'the resource it waits for is rescued first'
    machine = rows.KINDS[row.resource].machine
    rescue = machine.in_flight.get(row.status)
    if rescue is None:
        return 'its access rules are sent again'
    if isinstance(rescue, Resume):
        return rescue.description
    ends = ' or '.join(end or 'gone' for end in machine.rescue_targets(row.status))
    return f'{rescue.description}, which ends in {ends}'


def _is_repeatable(kind: str) -> bool:
    durable = contracts.WORK.get(kind)
    return durable is not None and durable.repeatable
