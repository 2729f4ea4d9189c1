"""Rescue of resources that are in flight without a living worker.

The state tables name the rescue of every status in flight; this module
carries it out: ask the back end and converge, repeat the idempotent work,
resume what only waits, or give up visibly. It handles abandoned work of a
lost holder, and the work that a pass submits for rows in flight that have
none. The other modules of `recovery` hold what is specific to one kind of
resource.
"""

from collections.abc import Iterator, Mapping
import datetime
import logging
import time
import typing

from manila_lite.context import RequestContext
from manila_lite.coordination import Coordinator
from manila_lite.coordination import NullCoordinator
from manila_lite.db.queries.admin import recovery as rows
from manila_lite.db.queries.admin import services
from manila_lite.db.session import Database
from manila_lite.db.session import Session
from manila_lite.rpc.contract import Client
from manila_lite.rpc.contract import implements
from manila_lite.rpc.share import BINARY
from manila_lite.rpc.share import ReconciliationRpc
from manila_lite.share.manager.driver_probe import AnswerPending
from manila_lite.share.manager.driver_probe import BackendUnresponsive
from manila_lite.share.manager.driver_probe import DriverProbe
from manila_lite.share.manager.recovery.base import Decision
from manila_lite.share.manager.recovery.base import ProbedRecovery
from manila_lite.share.manager.recovery.base import RescueCase
from manila_lite.share.manager.recovery.base import ResourceRecovery
from manila_lite.share.manager.recovery.base import Verdict
from manila_lite.states.machine import Ask
from manila_lite.states.machine import GiveUp
from manila_lite.states.machine import Repeat
from manila_lite.states.machine import Resume
from manila_lite.work import table
from manila_lite.work.runner import JobContext
from manila_lite.work.table import Claim

LOG = logging.getLogger(__name__)

LOCKED_PAUSE = 5.0
"""Seconds until a retry when another manager holds the rescue lock."""

REPLY_PAUSE = 1.0
"""Seconds until the next poll for a pending reply of the driver."""

UNRESPONSIVE_PAUSE = 30.0
"""Seconds until an unresponsive back end is called again."""

ROUND_PAUSE = 0.2
"""Seconds between the rounds of a pass that exceeds one batch."""

_RESCUES = tuple(
    kind for kind in ReconciliationRpc.methods if kind.startswith('rescue_')
)


@implements(ReconciliationRpc)
class ReconciliationEndpoint:
    """Carries out the rescues of one back end.

    `resources` maps the resource names of the state tables to their
    recovery. At most `batch` rescues are queued at a time.
    """

    def __init__(
        self,
        db: Database,
        resources: Mapping[str, ResourceRecovery],
        rescue_client: Client,
        service_host: str,
        locks: Coordinator | NullCoordinator,
        probe: DriverProbe,
        batch: int = 30,
    ):
        self.db = db
        self.resources = resources
        self.rescue_client = rescue_client.on(service_host)
        self.service_host = service_host
        self.locks = locks
        self.probe = probe
        self.batch = batch
        self._kinds = [
            f'{ReconciliationRpc.name}.{method}' for method in _RESCUES
        ]
        self._by_kind = {
            f'{ReconciliationRpc.name}.{one.rescue}': one
            for one in resources.values()
        }

    # The pass

    def request_pass(self, before: datetime.datetime | None = None) -> bool:
        """Submit a pass if anything needs a rescue; return whether so.

        With `before`, only what has been in flight since then counts.
        When nothing is stuck, this only reads.
        """
        if not any(
            self.db.read(
                rows.list_stuck, kind, self.service_host, most=1, before=before
            )
            for kind in self._order()
        ):
            return False
        self.db.write(self._submit_pass, before)
        return True

    def _submit_pass(
        self, session: Session, before: datetime.datetime | None
    ) -> None:
        service = services.get(session, self.service_host, BINARY)
        self.rescue_client.recover(
            session,
            RequestContext(),
            service_id=service.id,
            before=before.isoformat() if before else '',
        )

    def recover(
        self,
        job: JobContext,
        service_id: str,
        before: str = '',
        asked_by: str = '',
    ) -> None:
        """Submit rescues, in as many rounds as needed."""
        _, is_complete = self._round(
            datetime.datetime.fromisoformat(before) if before else None,
            asked_by,
        )
        if is_complete:
            job.finish(lambda session: None)
        else:
            job.release(ROUND_PAUSE)

    def run_pass(self) -> int:
        """Run one round now; return the number of stuck rows."""
        return self._round(None, '')[0]

    def _round(
        self, before: datetime.datetime | None, asked_by: str
    ) -> tuple[int, bool]:
        """Submit rescues as long as fewer than `batch` are queued.

        Returns the number submitted and whether all were covered.
        """
        submitted, room = (
            0,
            self.batch
            - self.db.read(
                rows.count_queued_rescues, self.service_host, self._kinds
            ),
        )
        for kind in self._order():
            if room - submitted <= 0:
                return submitted, False
            if self.db.read(
                rows.list_stuck, kind, self.service_host, most=1, before=before
            ):
                submitted += self.db.write(
                    self._submit, kind, room - submitted, before, asked_by
                )
        return submitted, submitted < room

    def _submit(
        self,
        session: Session,
        kind: str,
        room: int,
        before: datetime.datetime | None,
        asked_by: str,
    ) -> int:
        # Read again here: another manager may have been faster.
        stuck = rows.list_stuck(
            session, kind, self.service_host, most=room, before=before
        )
        for row in stuck:
            LOG.warning(
                '%s %s is stuck in %s without work; submitting its rescue',
                kind.replace('_', ' ').capitalize(),
                row.id,
                row.status,
            )
        # Sorted, so that two managers cannot deadlock.
        for subject_id, row in sorted(
            {row.subject_id: row for row in stuck}.items()
        ):
            self.resources[kind].submit(session, subject_id, row, asked_by)
        return len(stuck)

    def _order(self) -> Iterator[str]:
        """Yield kinds of resources, those others depend on first."""
        return (kind for kind in rows.KINDS if kind in self.resources)

    # The rescues as work

    def rescue_share_instance(
        self, job: JobContext, share_instance_id: str, asked_by: str = ''
    ) -> None:
        self.rescue(job)

    def failed_rescue_share_instance(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        return self._failed(session, job, error)

    def rescue_snapshot_instance(
        self, job: JobContext, snapshot_instance_id: str, asked_by: str = ''
    ) -> None:
        self.rescue(job)

    def failed_rescue_snapshot_instance(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        return self._failed(session, job, error)

    def rescue_access(
        self,
        job: JobContext,
        share_instance_access_id: str,
        asked_by: str = '',
    ) -> None:
        self.rescue(job)

    def rescue_snapshot_access(
        self, job: JobContext, snapshot_instance_id: str, asked_by: str = ''
    ) -> None:
        self.rescue(job)

    def rescue_share_server(
        self, job: JobContext, share_server_id: str, asked_by: str = ''
    ) -> None:
        self.rescue(job)

    def rescue_share_server_task(
        self, job: JobContext, share_server_task_id: str, asked_by: str = ''
    ) -> None:
        self.rescue(job)

    def _failed(self, session: Session, job: Claim, error: Exception) -> bool:
        """Give up visibly when the rescue itself has failed."""
        resource = self._resource(job)
        case = resource.find(session, job.resource_id)
        rescue = case and resource.rescue_of(case)
        if case and rescue and isinstance(resource, ProbedRecovery):
            event = rescue.events[-1]
            resource.give_up(session, job, case, event)
            self._log_decision(
                session,
                job,
                resource,
                case,
                Decision.GIVEN_UP,
                event,
                reason=f'the rescue failed: {error}',
            )
        return True

    def recheck(self, session: Session, job: Claim) -> None:
        """Submit a rescue of the resource of this job."""
        resource = self._resource(job)
        case = resource and resource.find(session, job.resource_id)
        if case:
            resource.submit(session, job.resource_id, case.row)

    # One rescue

    def rescue(self, job: JobContext) -> None:
        """Carry out the rescue for the current status of the resource.

        The lock saves a second manager of the back end the same driver
        calls; correctness comes from the fence of the work.
        """
        with self.locks.try_lock(f'rescue-{job.claim.resource_id}') as held:
            if held:
                _Rescue(self, job).carry_out()
            else:
                job.release(LOCKED_PAUSE)

    def _resource(self, job: Claim | JobContext) -> ResourceRecovery:
        return self._by_kind.get(job.kind) or self.resources[job.resource]

    def _log_decision(
        self,
        session: Session,
        job: Claim,
        resource: ResourceRecovery,
        case: RescueCase,
        decision: Decision,
        event: str | None = None,
        *,
        evidence: str | None = None,
        reason: str | None = None,
        duration: float = 0.0,
    ) -> None:
        """Record the decision in the transaction that acts on it."""
        before = resource.status_of(case)
        rows.record_decision(
            session,
            resource=resource.machine.resource,
            resource_id=case.row.id,
            host=case.row.host,
            status_before=before,
            evidence=evidence,
            action=str(decision),
            status_after=(resource.machine[event].target if event else before),
            reason=reason,
            duration=duration,
            asked_by=job.args.get('asked_by') or None,
        )


class _Rescue:
    """One rescue, from reading the rows to writing the outcome."""

    def __init__(self, owner: ReconciliationEndpoint, job: JobContext):
        self.owner = owner
        self.job = job
        self.resource = owner._resource(job.claim)
        self.started_at = time.monotonic()

    @property
    def _probed(self) -> ProbedRecovery:
        """The recovery of a resource that the back end is asked about."""
        assert isinstance(self.resource, ProbedRecovery)
        return self.resource

    def carry_out(self) -> None:
        case, is_last = self.job.read(self._read)
        if case is None or not is_last:
            # Removed, or its status belongs to newer work.
            self._end(case, Decision.LEFT_ALONE, reason='it has other work')
            return
        rescue = self.resource.rescue_of(case)
        if isinstance(rescue, Ask):
            self._ask(case, rescue)
        elif isinstance(rescue, GiveUp):
            self._give_up(
                case, rescue.event, 'the progress of the lost work is unknown'
            )
        elif rescue is not None:
            self._resubmit(case, rescue)
        elif isinstance(self.resource, ProbedRecovery) and (
            self.resource.is_comparable(case)
        ):
            self._compare(case)
        else:
            self._end(case, Decision.LEFT_ALONE, reason='it is at rest')

    def _read(self, session: Session) -> tuple[RescueCase | None, bool]:
        claim = self.job.claim
        return (
            self.resource.find(session, claim.resource_id),
            not table.has_other_work(session, claim),
        )

    def _ask(self, case: RescueCase, rescue: Ask) -> None:
        verdict = self._verdict(case, rescue.driver_method)
        if verdict is None:
            return
        LOG.warning(
            'Rescue of %s in status %s: %s',
            case.row.id,
            self.resource.status_of(case),
            verdict.reason or 'the back end has completed it',
        )
        if verdict.reason:
            self._give_up(
                case, rescue.no, verdict.reason, rescue.driver_method
            )
            return
        self._end(
            case,
            Decision.CONVERGED,
            rescue.yes,
            self._probed.converge,
            case,
            rescue.yes,
            verdict.facts,
            evidence=f'{rescue.driver_method}: {_brief(verdict.facts)}',
        )

    def _compare(self, case: RescueCase) -> None:
        verdict = self._verdict(case, 'get_share_status')
        if verdict is None:
            return
        if verdict.reason:
            self._end(case, Decision.LEFT_ALONE, reason=verdict.reason)
            return

        def correct(session: Session, job: Claim) -> None:
            changed = self._probed.correct(session, case, verdict.facts)
            if changed or job.args.get('asked_by'):
                self._log_decision(
                    session,
                    case,
                    Decision.CORRECTED if changed else Decision.LEFT_ALONE,
                    evidence=f'get_share_status: {_brief(verdict.facts)}',
                )

        self._end(None, Decision.LEFT_ALONE, None, correct)

    def _verdict(self, case: RescueCase, method: str) -> Verdict | None:
        """Probe the back end; return None when it is to be retried later."""
        try:
            result = self.owner.probe.poll(
                self.job.claim.id, *self._probed.driver_call(case, method)
            )
        except AnswerPending:
            self.job.release(REPLY_PAUSE)
            return None
        except BackendUnresponsive as error:
            LOG.warning('%s of %s is deferred: %s', method, case.row.id, error)
            self.job.release(UNRESPONSIVE_PAUSE)
            return None
        if result.reason:
            return Verdict(reason=result.reason)
        verdict = self._probed.interpret(case, result.value)
        if verdict.retry_after is not None:
            self.job.release(verdict.retry_after)
            return None
        return verdict

    def _give_up(
        self,
        case: RescueCase,
        event: str,
        reason: str,
        evidence: str | None = None,
    ) -> None:
        self._end(
            case,
            Decision.GIVEN_UP,
            event,
            self.resource.give_up,
            case,
            event,
            reason=reason,
            evidence=evidence,
        )

    def _resubmit(self, case: RescueCase, rescue: Repeat | Resume) -> None:
        def resubmit(session: Session, job: Claim) -> None:
            self.resource.resubmit(session, case, rescue.kind)

        self._end(
            case,
            Decision.REPEATED
            if isinstance(rescue, Repeat)
            else Decision.RESUMED,
            None,
            resubmit,
            evidence=rescue.kind,
        )

    def _end(
        self,
        case: RescueCase | None,
        decision: Decision,
        event: str | None = None,
        function: typing.Callable | None = None,
        *args: typing.Any,
        evidence: str | None = None,
        reason: str | None = None,
    ) -> None:
        """Finish the work, run `function`, and release reservations.

        That a resource was left alone is logged only on an administrator's
        request.
        """
        claim = self.job.claim

        def end(session: Session) -> None:
            if function is not None:
                function(session, claim, *args)
            self.resource.release_reservations(session, claim)
            if case and (
                decision is not Decision.LEFT_ALONE
                or claim.args.get('asked_by')
            ):
                self._log_decision(
                    session,
                    case,
                    decision,
                    event,
                    evidence=evidence,
                    reason=reason,
                )

        self.job.finish(end)

    def _log_decision(
        self,
        session: Session,
        case: RescueCase,
        *args: typing.Any,
        **facts: typing.Any,
    ) -> None:
        self.owner._log_decision(
            session,
            self.job.claim,
            self.resource,
            case,
            *args,
            duration=time.monotonic() - self.started_at,
            **facts,
        )


def _brief(facts: typing.Any) -> str:
    return str(facts)[:500]
