"""Rescue of resources that are in flight without a living worker.

The state tables name the rescue of every status in flight; this module
carries it out: ask the back end and converge, repeat the idempotent work,
resume what only waits, or give up visibly. It handles abandoned work of a
lost holder, and the work that a pass submits for rows in flight that have
none. The other modules of `recovery` hold what is specific to one kind of
resource.
"""

from collections.abc import Mapping
import datetime
import logging
from typing import Annotated

from manila_lite import messages
from manila_lite.conf import Option
from manila_lite.context import RequestContext
from manila_lite.coordination import Coordinator, NullCoordinator
from manila_lite.db.queries.recovery import recovery as rows
from manila_lite.db.queries.services import services
from manila_lite.db.session import Database, Session
from manila_lite.host import ServiceHost
from manila_lite.rpc.contract import Client, implements, work
from manila_lite.rpc.share import BINARY, ReconciliationRpc
from manila_lite.share.manager.driver_probe import DriverProbe
from manila_lite.share.manager.recovery import base
from manila_lite.share.manager.recovery.rescue import (
    RescueRun,
    is_elsewhere,
    log_decision,
)
from manila_lite.states.machine import Decision
from manila_lite.work.job import JobContext
from manila_lite.work.table import Claim

LOG = logging.getLogger(__name__)

LOCKED_PAUSE = 5.0
"""Seconds until a retry when another manager holds the rescue lock."""

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
        resources: Mapping[str, base.ResourceRecovery],
        rescue_client: Client[ReconciliationRpc],
        service_host: ServiceHost,
        locks: Coordinator | NullCoordinator,
        probe: DriverProbe,
        batch: Annotated[int, Option('recovery.batch')] = 30,
    ):
        self.db = db
        self.resources = resources
        self.rescue_client = rescue_client.on(service_host)
        self.service_host = service_host
        self.locks = locks
        self.probe = probe
        self.batch = batch
        self._kinds = [f'{ReconciliationRpc.name}.{method}' for method in _RESCUES]
        self._by_kind = {
            kind: one
            for one in resources.values()
            for kind in (f'{ReconciliationRpc.name}.{one.rescue}', *one.work_kinds)
        }

    # The pass

    def request_pass(self, before: datetime.datetime | None = None) -> bool:
        """Submit a pass if anything needs a rescue; return whether so.

        With `before`, only what has been in flight since then counts.
        When nothing is stuck, this only reads.
        """
        if not self.db.read(self._list_stuck_kinds, before):
            return False
        self.db.write(self._submit_pass, before)
        return True

    def _submit_pass(self, session: Session, before: datetime.datetime | None) -> None:
        service = services.get(session, self.service_host, BINARY)
        self.rescue_client.recover(
            session,
            RequestContext(),
            service_id=service.id,
            before=before.isoformat() if before else '',
        )

    def recover(
        self, job: JobContext, service_id: str, before: str = '', asked_by: str = ''
    ) -> None:
        """Submit rescues, in as many rounds as needed."""
        _, is_complete = self._round(
            datetime.datetime.fromisoformat(before) if before else None, asked_by
        )
        if is_complete:
            job.finish()
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
        queued, kinds = self.db.read(self._look, before)
        submitted, room = 0, self.batch - queued
        for kind in kinds:
            if room - submitted <= 0:
                return submitted, False
            submitted += self.db.write(
                self._submit, kind, room - submitted, before, asked_by
            )
        return submitted, submitted < room

    def _look(
        self, session: Session, before: datetime.datetime | None
    ) -> tuple[int, list[str]]:
        """Return how many rescues are queued, and what is stuck."""
        queued = rows.count_queued_rescues(session, self.service_host, self._kinds)
        return queued, self._list_stuck_kinds(session, before)

    def _list_stuck_kinds(
        self, session: Session, before: datetime.datetime | None
    ) -> list[str]:
        """Return the kinds of stuck resources, those others need first."""
        return rows.list_stuck_kinds(session, self.resources, self.service_host, before)

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
        for subject_id, row in sorted({row.subject_id: row for row in stuck}.items()):
            self.resources[kind].submit(session, subject_id, row, asked_by)
        return len(stuck)

    # The rescues as work

    @work(failed='_failed')
    def rescue_share_instance(
        self, job: JobContext, share_instance_id: str, asked_by: str = ''
    ) -> None:
        self.rescue(job)

    @work(failed='_failed')
    def rescue_snapshot_instance(
        self, job: JobContext, snapshot_instance_id: str, asked_by: str = ''
    ) -> None:
        self.rescue(job)

    def rescue_access(
        self, job: JobContext, share_instance_access_id: str, asked_by: str = ''
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

    def rescue_share_task(
        self, job: JobContext, share_task_id: str, asked_by: str = ''
    ) -> None:
        self.rescue(job)

    def rescue_share_transfer(
        self, job: JobContext, share_transfer_id: str, asked_by: str = ''
    ) -> None:
        self.rescue(job)

    @work(failed='_failed')
    def rescue_share_group(
        self, job: JobContext, share_group_id: str, asked_by: str = ''
    ) -> None:
        self.rescue(job)

    @work(failed='_failed')
    def rescue_share_group_snapshot(
        self, job: JobContext, share_group_snapshot_id: str, asked_by: str = ''
    ) -> None:
        self.rescue(job)

    def rescue_share_backup(
        self, job: JobContext, share_backup_id: str, asked_by: str = ''
    ) -> None:
        self.rescue(job)

    def _failed(self, session: Session, job: Claim, error: Exception) -> bool:
        """Give up visibly when the rescue itself has failed."""
        resource = self._resource(job)
        case = resource.find(session, job.resource_id)
        rescue = case and resource.rescue_of(case)
        if case and rescue and isinstance(resource, base.ProbedRecovery):
            event = rescue.events[-1]
            reason = f'the rescue failed: {error}'
            said = messages.explanation_in(error) or f'{error}'
            said = f'The work was interrupted. {said}'
            resource.give_up(session, case, base.Ending(job, event, explanation=said))
            log_decision(
                session, job, resource, case, Decision.GIVEN_UP, event, reason=reason
            )
        return True

    def recheck(self, session: Session, job: Claim) -> None:
        """Submit a comparison of the resource with the back end.

        A worker that lost its claim, or whose outcome could not be
        recorded, may have changed the back end after the rows.
        """
        resource, case = self._find_case(session, job)
        if resource and case and not is_elsewhere(resource, case, job.queue):
            resource.recheck(session, case, job.resource_id)

    def record_exhausted(self, session: Session, job: Claim, error: Exception) -> None:
        """Record that work was given up without asking the driver."""
        resource, case = self._find_case(session, job)
        if resource and case:
            log_decision(
                session,
                job,
                resource,
                case,
                Decision.GIVEN_UP,
                evidence=job.kind,
                reason=str(error),
            )

    def _find_case(
        self, session: Session, job: Claim
    ) -> tuple[base.ResourceRecovery | None, base.RescueCase | None]:
        """Return how the resource of a job is rescued, and its state."""
        resource = self._by_kind.get(job.kind) or self.resources.get(job.resource)
        if resource is None:
            return None, None
        return resource, resource.find(session, job.resource_id)

    # One rescue

    def rescue(self, job: JobContext) -> None:
        """Carry out the rescue for the current status of the resource.

        The lock saves a second manager of the back end the same driver
        calls; correctness comes from the fence of the work.
        """
        with self.locks.try_lock(f'rescue-{job.claim.resource_id}') as held:
            if held:
                RescueRun(self._resource(job), job, self.probe).carry_out()
            else:
                job.release(LOCKED_PAUSE)

    def _resource(self, job: Claim | JobContext) -> base.ResourceRecovery:
        return self._by_kind.get(job.kind) or self.resources[job.resource]
