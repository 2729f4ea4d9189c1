"""One rescue: read the resource, decide, ask the back end, record."""

import logging
import time
import typing

from manila_lite.db.queries.recovery import recovery as rows
from manila_lite.db.session import Session
from manila_lite.share.manager.driver_probe import (
    AnswerPending,
    BackendUnresponsive,
    DriverProbe,
)
from manila_lite.share.manager.endpoint import is_on
from manila_lite.share.manager.recovery.base import (
    Ending,
    ProbedRecovery,
    RescueCase,
    ResourceRecovery,
    Verdict,
)
from manila_lite.states.machine import Ask, Decision, GiveUp, Repeat, Resume
from manila_lite.work import table
from manila_lite.work.job import JobContext
from manila_lite.work.table import Claim

LOG = logging.getLogger(__name__)

MOST_REPETITIONS = 3
"""How often the same work is asked for without a move in between."""


class RescueRun:
    """One rescue, from reading the rows to writing the outcome."""

    def __init__(self, resource: ResourceRecovery, job: JobContext, probe: DriverProbe):
        self.resource, self.job, self.probe = resource, job, probe
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
        if is_elsewhere(self.resource, case, self.job.claim.queue):
            self._end(case, Decision.LEFT_ALONE, reason='it is on another back end')
            return
        if self.job.read(
            rows.is_waiting, self.resource.machine.resource, self.job.claim.resource_id
        ):
            # A service of the previous release may have submitted this: it
            # does not know all that a resource can wait for.
            self._end(case, Decision.LEFT_ALONE, reason='it waits for another one')
            return
        rescue = self.resource.rescue_of(case)
        if isinstance(rescue, Ask):
            self._ask(case, rescue)
        elif isinstance(rescue, GiveUp):
            self._give_up(case, rescue.event, self.resource.reason_of_loss(case))
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
            if verdict.is_absent and rescue.repeats and self._is_own_work():
                self._run_again(case, verdict.reason, rescue.driver_method)
                return
            self._give_up(case, rescue.no, verdict.reason, rescue.driver_method)
            return
        end = Ending(self.job.claim, rescue.yes, verdict.facts)
        self._end(
            case,
            Decision.CONVERGED,
            rescue.yes,
            lambda session: self._probed.converge(session, case, end),
            evidence=f'{rescue.driver_method}: {_brief(verdict.facts)}',
        )

    def _compare(self, case: RescueCase) -> None:
        verdict = self._verdict(case, 'get_share_status')
        if verdict is None:
            return
        if verdict.reason:
            self._end(case, Decision.LEFT_ALONE, reason=verdict.reason)
            return

        def correct(session: Session) -> None:
            changed = self._probed.store_differences(session, case, verdict.facts)
            if changed or self.job.claim.args.get('asked_by'):
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
            result = self.probe.poll(
                self.job.claim.id, *self._probed.driver_call(case, method)
            )
        except AnswerPending as error:
            self.job.release(error.retry_after)
            return None
        except BackendUnresponsive as error:
            LOG.warning('%s of %s is deferred: %s', method, case.row.id, error)
            self.job.release(error.retry_after)
            return None
        if result.reason:
            return Verdict(reason=result.reason, is_absent=result.is_absent)
        verdict = self._probed.interpret(case, result.value)
        if verdict.retry_after is not None:
            self.job.release(verdict.retry_after)
            return None
        return verdict

    def _is_own_work(self) -> bool:
        """Whether this is the abandoned work itself, not that of a rescue."""
        return self.job.claim.abandoned and not (
            self.job.claim.kind.endswith(f'.{self.resource.rescue}')
        )

    def _run_again(self, case: RescueCase, reason: str, evidence: str) -> None:
        """Let the work run as if its process had not been killed."""

        def run_again(session: Session) -> None:
            table.run_again(session, self.job.claim, reason)
            self._log_decision(
                session, case, Decision.REPEATED, evidence=evidence, reason=reason
            )

        self.job.hand_over(run_again)

    def _give_up(
        self, case: RescueCase, event: str, reason: str, evidence: str | None = None
    ) -> None:
        explanation = _explanation(case, reason, evidence)
        end = Ending(self.job.claim, event, explanation=explanation)
        self._end(
            case,
            Decision.GIVEN_UP,
            event,
            lambda session: self.resource.give_up(session, case, end),
            reason=reason,
            evidence=evidence,
        )

    def _resubmit(self, case: RescueCase, rescue: Repeat | Resume) -> None:
        """Ask for the work again, unless that has led nowhere before."""
        asked = self.job.read(
            rows.count_repetitions,
            self.resource.machine.resource,
            case.row.id,
            rescue.kind,
        )
        event = self.resource.last_event(rescue)
        if asked >= MOST_REPETITIONS and event is not None:
            self._give_up(
                case,
                event,
                f'{rescue.kind} was asked for {asked} times and has changed nothing',
                rescue.kind,
            )
            return
        self._end(
            case,
            Decision.REPEATED if isinstance(rescue, Repeat) else Decision.RESUMED,
            None,
            lambda session: self.resource.resubmit(session, case, rescue.kind),
            evidence=rescue.kind,
        )

    def _end(
        self,
        case: RescueCase | None,
        decision: Decision,
        event: str | None = None,
        function: typing.Callable[[Session], None] | None = None,
        *,
        evidence: str | None = None,
        reason: str | None = None,
    ) -> None:
        """Finish the work, run `function`, and release reservations.

        That a resource was left alone is logged only on an administrator's
        request.
        """
        claim = self.job.claim

        def end(session: Session) -> None:
            session.reason = reason
            if function is not None:
                function(session)
            self.resource.release_reservations(session, claim)
            if case and (
                decision is not Decision.LEFT_ALONE or claim.args.get('asked_by')
            ):
                self._log_decision(
                    session, case, decision, event, evidence=evidence, reason=reason
                )

        self.job.finish(end)

    def _log_decision(
        self, session: Session, case: RescueCase, *args: typing.Any, **facts: typing.Any
    ) -> None:
        log_decision(
            session,
            self.job.claim,
            self.resource,
            case,
            *args,
            duration=time.monotonic() - self.started_at,
            **facts,
        )


def _brief(facts: object) -> str:
    return str(facts)[:500]


def _explanation(case: RescueCase, reason: str, evidence: str | None) -> str:
    """Return why a resource is given up, for administrators."""
    found = f'{evidence} of back end {case.row.host}: ' if evidence else ''
    return f'The work was interrupted. {found}{reason}'


def is_elsewhere(
    resource: ResourceRecovery, case: RescueCase, service_host: str
) -> bool:
    """Whether another back end would have to be asked about a resource."""
    return isinstance(resource, ProbedRecovery) and not is_on(case.row, service_host)


def log_decision(
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
