"""What is done about resources in flight that nobody works on.

The state tables name the rescue of every status in flight; this carries
it out: ask the back end and converge, repeat the idempotent work, resume
what only waits, or give up visibly. It is called with abandoned work of a
lost holder, and with work that a pass submits for rows that no work is
owed for. What is special about a kind of resource stands in `recovery`.
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
from manila_lite.work import table

LOG = logging.getLogger(__name__)

LOCKED_PAUSE = 5.0
"""Seconds before another look at what a second manager is rescuing."""

REPLY_PAUSE = 1.0
"""Seconds before another look for the answer of a driver that thinks."""

UNRESPONSIVE_PAUSE = 30.0
"""Seconds before a back end that leaves questions unanswered is asked."""

ROUND_PAUSE = 0.2
"""Seconds between the rounds of a pass that finds a mass of resources."""

_RESCUES = tuple(
    kind for kind in ReconciliationRpc.methods if kind.startswith('rescue_')
)


@implements(ReconciliationRpc)
class ReconciliationEndpoint:
    """The rescues of one back end.

    `resources` has how each kind of resource is rescued, by the name its
    state table gives it. At most `batch` rescues are owed at a time.
    """

    def __init__(
        self,
        db: Database,
        resources: Mapping[str, ResourceRecovery],
        rescues: Client,
        service_host: str,
        locks: Coordinator | NullCoordinator,
        probe: DriverProbe,
        batch: int = 30,
    ):
        self.db = db
        self.resources = resources
        self.rescues = rescues.on(service_host)
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
        """Ask for a pass if there is something to rescue; whether so.

        With `before` only what has been in flight since before counts.
        Where nothing is stuck this reads, and does nothing else.
        """
        if not any(
            self.db.read(
                rows.list_stuck, kind, self.service_host, most=1, before=before
            )
            for kind in self._order()
        ):
            return False
        self.db.write(self._ask_for_pass, before)
        return True

    def _ask_for_pass(
        self, session: Session, before: datetime.datetime | None
    ) -> None:
        service = services.get(session, self.service_host, BINARY)
        self.rescues.recover(
            session,
            RequestContext(),
            service_id=service.id,
            before=before.isoformat() if before else '',
        )

    def recover(self, job, service_id, before='', asked_by=''):
        """Submit rescues, in as many rounds as it takes."""
        _, is_all = self._round(
            datetime.datetime.fromisoformat(before) if before else None,
            asked_by,
        )
        if is_all:
            job.finish(lambda session: None)
        else:
            job.release(ROUND_PAUSE)

    def run_pass(self) -> int:
        """One round, now: how many rows nobody worked on."""
        return self._round(None, '')[0]

    def _round(
        self, before: datetime.datetime | None, asked_by: str
    ) -> tuple[int, bool]:
        """Submit rescues while not too many are owed already.

        How many there were, and whether they were all there are.
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
        # Looked for once more: another manager may have been faster.
        stuck = rows.list_stuck(
            session, kind, self.service_host, most=room, before=before
        )
        for row in stuck:
            LOG.warning(
                '%s %s is %s and nobody works on it',
                kind.replace('_', ' ').capitalize(),
                row.id,
                row.status,
            )
        # In order, or two managers would wait for each other's.
        for about, row in sorted(
            {row.subject_id: row for row in stuck}.items()
        ):
            self.resources[kind].submit(session, about, row, asked_by)
        return len(stuck)

    def _order(self) -> Iterator[str]:
        """Kinds of resources: first what others depend on."""
        return (kind for kind in rows.KINDS if kind in self.resources)

    # The rescues as work

    def rescue_share_instance(self, job, share_instance_id, asked_by=''):
        self.rescue(job)

    def failed_rescue_share_instance(self, session, job, error):
        return self._failed(session, job, error)

    def rescue_snapshot_instance(self, job, snapshot_instance_id, asked_by=''):
        self.rescue(job)

    def failed_rescue_snapshot_instance(self, session, job, error):
        return self._failed(session, job, error)

    def rescue_access(self, job, share_instance_access_id, asked_by=''):
        self.rescue(job)

    def rescue_snapshot_access(self, job, snapshot_instance_id, asked_by=''):
        self.rescue(job)

    def rescue_share_server(self, job, share_server_id, asked_by=''):
        self.rescue(job)

    def rescue_share_server_task(self, job, share_server_task_id, asked_by=''):
        self.rescue(job)

    def _failed(self, session: Session, job, error: Exception) -> bool:
        """Not even a rescue was possible: give up visibly."""
        resource = self._resource(job)
        case = resource.find(session, job.resource_id)
        rescue = case and resource.rescue_of(case)
        if rescue and isinstance(resource, ProbedRecovery):
            event = rescue.events[-1]
            resource.give_up(session, job, case, event)
            self._note(
                session,
                job,
                resource,
                case,
                Decision.GIVEN_UP,
                event,
                reason=f'the rescue failed: {error}',
            )
        return True

    def recheck(self, session: Session, job) -> None:
        """Have somebody look at what the job was about."""
        resource = self._resource(job)
        case = resource and resource.find(session, job.resource_id)
        if case:
            resource.submit(session, job.resource_id, case.row)

    # One rescue

    def rescue(self, job) -> None:
        """Carry out the rescue of the status the resource is in.

        The lock spares two managers of one back end the same questions;
        what makes the outcome right is the fence of the work.
        """
        with self.locks.try_lock(f'rescue-{job.claim.resource_id}') as held:
            if held:
                _Rescue(self, job).carry_out()
            else:
                job.release(LOCKED_PAUSE)

    def _resource(self, job) -> ResourceRecovery:
        return self._by_kind.get(job.kind) or self.resources[job.resource]

    def _note(
        self,
        session: Session,
        job,
        resource: ResourceRecovery,
        case: RescueCase,
        deed: Decision,
        event: str | None = None,
        *,
        evidence: str | None = None,
        reason: str | None = None,
        duration: float = 0.0,
    ) -> None:
        """Write the decision down, in the transaction that acts on it."""
        before = resource.status_of(case)
        rows.record_decision(
            session,
            resource=resource.machine.resource,
            resource_id=case.row.id,
            host=case.row.host,
            status_before=before,
            evidence=evidence,
            action=str(deed),
            status_after=(resource.machine[event].target if event else before),
            reason=reason,
            duration=duration,
            asked_by=job.args.get('asked_by') or None,
        )


class _Rescue:
    """One rescue, from the look at the rows to what is written."""

    def __init__(self, owner: ReconciliationEndpoint, job):
        self.owner = owner
        self.job = job
        self.resource = owner._resource(job.claim)
        self.began = time.monotonic()

    def carry_out(self) -> None:
        case, is_last = self.job.read(self._look)
        if case is None or not is_last:
            # Gone, or its status is about other work: this was given up.
            self._end(case, Decision.LEFT_ALONE, reason='others work on it')
            return
        rescue = self.resource.rescue_of(case)
        if isinstance(rescue, Ask):
            self._ask(case, rescue)
        elif isinstance(rescue, GiveUp):
            self._give_up(
                case, rescue.event, 'nobody can tell how far it had come'
            )
        elif rescue is not None:
            self._again(case, rescue)
        elif isinstance(self.resource, ProbedRecovery) and (
            self.resource.is_comparable(case)
        ):
            self._compare(case)
        else:
            self._end(case, Decision.LEFT_ALONE, reason='it is at rest')

    def _look(self, session: Session):
        job = self.job.claim
        return (
            self.resource.find(session, job.resource_id),
            not table.has_other_work(session, job),
        )

    def _ask(self, case: RescueCase, rescue: Ask) -> None:
        reading = self._reading(case, rescue.driver_method)
        if reading is None:
            return
        LOG.warning(
            '%s in %s: %s',
            case.row.id,
            self.resource.status_of(case),
            reading.reason or 'the back end has it',
        )
        if reading.reason:
            self._give_up(
                case, rescue.no, reading.reason, rescue.driver_method
            )
            return
        self._end(
            case,
            Decision.CONVERGED,
            rescue.yes,
            self.resource.converge,
            case,
            rescue.yes,
            reading.facts,
            evidence=f'{rescue.driver_method}: {_brief(reading.facts)}',
        )

    def _compare(self, case: RescueCase) -> None:
        reading = self._reading(case, 'get_share_status')
        if reading is None:
            return
        if reading.reason:
            self._end(case, Decision.LEFT_ALONE, reason=reading.reason)
            return

        def correct(session: Session, job) -> None:
            changed = self.resource.correct(session, case, reading.facts)
            if changed or job.args.get('asked_by'):
                self._note(
                    session,
                    case,
                    Decision.CORRECTED if changed else Decision.LEFT_ALONE,
                    evidence=f'get_share_status: {_brief(reading.facts)}',
                )

        self._end(None, Decision.LEFT_ALONE, None, correct)

    def _reading(self, case: RescueCase, question: str) -> Verdict | None:
        """What the back end says; None when it is asked again later."""
        try:
            answer = self.owner.probe.poll(
                self.job.claim.id, *self.resource.question(case, question)
            )
        except AnswerPending:
            self.job.release(REPLY_PAUSE)
            return None
        except BackendUnresponsive as away:
            LOG.warning('%s of %s waits: %s', question, case.row.id, away)
            self.job.release(UNRESPONSIVE_PAUSE)
            return None
        if answer.reason:
            return Verdict(reason=answer.reason)
        reading = self.resource.read(case, answer.value)
        if reading.patience is not None:
            self.job.release(reading.patience)
            return None
        return reading

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

    def _again(self, case: RescueCase, rescue) -> None:
        def resubmit(session: Session, job) -> None:
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
        deed: Decision,
        event: str | None = None,
        function: typing.Callable | None = None,
        *args: typing.Any,
        evidence: str | None = None,
        reason: str | None = None,
    ) -> None:
        """Finish with what the function writes; reservations go back.

        That a resource was left alone is news to who has asked about it.
        """
        job = self.job.claim

        def end(session: Session) -> None:
            if function is not None:
                function(session, job, *args)
            self.resource.release_reservations(session, job)
            if case and (
                deed is not Decision.LEFT_ALONE or job.args.get('asked_by')
            ):
                self._note(
                    session,
                    case,
                    deed,
                    event,
                    evidence=evidence,
                    reason=reason,
                )

        self.job.finish(end)

    def _note(
        self,
        session: Session,
        case: RescueCase,
        *args: typing.Any,
        **facts: typing.Any,
    ) -> None:
        self.owner._note(
            session,
            self.job.claim,
            self.resource,
            case,
            *args,
            duration=time.monotonic() - self.began,
            **facts,
        )


def _brief(facts: typing.Any) -> str:
    return str(facts)[:500]
