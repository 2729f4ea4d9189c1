"""Claim one piece of work, run its handler, and handle the failure.

A handler contains the successful path only and ends with a call such as
`job.finish`. When it raises, the executor decides: stale work is dropped,
a transient error is retried later, and any other error fires the declared
failure event, releases the reserved quota and writes the user message.
"""

import collections
from collections.abc import Callable, Collection, Mapping
import dataclasses
import logging
import random
import time

from oslo_db import exception as db_exc

from manila_lite import exception, messages, metrics
from manila_lite.context import logged_as
from manila_lite.db import transitions
from manila_lite.db.session import Database, Session
from manila_lite.quota import charges
from manila_lite.rpc import contract
from manila_lite.work import (
    driver_calls,
    job as jobs,
    lease,
    notify,
    operation_log,
    table,
)
from manila_lite.work.blocked import BlockedWork
from manila_lite.work.job import JobContext, Settings
from manila_lite.work.lease import Draining

LOG = logging.getLogger(__name__)

UNKNOWN_PAUSE = 30.0
"""Seconds until work that this release does not know is looked at again."""

UPGRADE_PAUSE = 30.0
"""Seconds until work that needs a newer process is tried again."""

Rescuer = Callable[[JobContext], None]
Hook = Callable[[Session, table.Claim], object]
Record = Callable[[Session, table.Claim, Exception], object]


class Executor:
    """Runs work of some queues, one piece per call.

    `rescue` is called with abandoned work whose handler must not simply
    run again, `recheck` with a session and a claim when the effects of a
    handler could not be recorded, `record` with a session, a claim and an
    error when work is given up without asking the driver. Handlers with
    side effects outside of the database run only after their claim has
    reached the disk.
    """

    def __init__(
        self,
        db: Database,
        *,
        queues: Collection[str],
        handlers: Mapping[str, contract.Handler],
        owner: str,
        rescue: Rescuer | None,
        recheck: Hook | None,
        record: Record | None,
        settings: Settings,
        rng: random.Random,
        has_side_effects: bool,
        clock: lease.Clock,
        release: int,
    ):
        self.db = db
        self.queues = tuple(queues)
        self.handlers = dict(handlers)
        self.owner = owner
        self.rescue = rescue
        self.recheck = recheck
        self.record = record
        self.settings = settings
        self.rng = rng
        self.has_side_effects = has_side_effects
        self.clock = clock
        self.release = release
        self.draining = Draining()
        self.call_log = driver_calls.CallLog()
        self._running: set[JobContext] = set()
        self.blocked = BlockedWork()
        self._unchecked: collections.deque[table.Claim] = collections.deque()

    # Public interface

    def run(self, work_id: str, abandoned: bool) -> JobContext | None:
        """Claim and run this work; return its job if there was any."""
        if abandoned and self._is_mine(work_id):
            # The database was down for a whole lease; this process was not.
            self.renew()
            return None
        job = self._claim_and_prepare(work_id, abandoned)
        if job is None:
            return None
        metrics.CLAIMS.increment(job.claim.kind)
        self._running.add(job)
        self.blocked.hold(work_id, job.claim.exclusion_key)
        try:
            with jobs.running(job), logged_as(job.request_context()):
                self._handle(job)
        finally:
            self._running.discard(job)
            self.blocked.release(job.claim.exclusion_key)
        return job

    def renew(self) -> bool:
        """Renew the leases of running jobs that have made progress.

        Returns False if another transaction has locked the work of some:
        they should be tried again soon.
        """
        complete = True
        for job in self._live_jobs():
            try:
                is_held = job.renew_at_once()
            except table.WorkLocked:
                complete = False
                continue
            if is_held:
                continue
            if job.is_lost:
                LOG.warning('Work %s was taken over while it ran', job.claim.id)
            job.is_lost = True  # or it is just ending
        return complete

    def running(self) -> list[table.Claim]:
        """Return the claims of running work."""
        return [job.claim for job in list(self._running)]

    def retry_failed_rechecks(self) -> None:
        """Submit the rechecks that met an error of the database."""
        for _ in range(len(self._unchecked)):
            self._recheck(self._unchecked.popleft())

    def _block(self, work_id: str) -> None:
        """Remember that the work waits for the end of other work."""
        key = self.db.read(table.find_exclusion_key, work_id)
        if key is None:
            self.blocked.pass_on(work_id)
        else:
            self.blocked.add(work_id, key)

    def claim(
        self, session: Session, work_id: str, abandoned: bool
    ) -> table.Claim | None:
        """Claim work and complete its arguments; None if there is none.

        Raises ResourceBusy, and UnknownWork for work of a newer release.
        """
        claim = table.claim(
            session,
            work_id,
            self.queues,
            self.owner,
            self.settings.lease,
            abandoned=abandoned,
            release=self.release,
        )
        if claim is not None:
            self._require_known(claim)
            durable = claim.durable = self.handlers[claim.kind].durable
            claim.args = {**durable.defaults, **claim.args}
        return claim

    def _is_mine(self, work_id: str) -> bool:
        return any(job.claim.id == work_id for job in self._live_jobs())

    def _live_jobs(self) -> list[JobContext]:
        limit = time.monotonic() - self.settings.operation_timeout
        return [job for job in list(self._running) if job.progress_at > limit]

    # Claim

    def _claim_and_prepare(self, work_id: str, abandoned: bool) -> JobContext | None:
        """Claim the work; return None when there is nothing to run."""
        started = self.clock()
        try:
            claim = self.db.write(
                self._prepare, work_id, abandoned, fsync=self.has_side_effects
            )
        except table.ResourceBusy as error:
            LOG.debug('%s', error)
            self._block(work_id)
            return None
        except UnknownWork as unknown:
            # A newer release has submitted it, and will carry it out.
            LOG.info('Work %s is left to others: %s', work_id, unknown)
            self.db.write(table.postpone, work_id, UNKNOWN_PAUSE)
        except _UNAVAILABLE:
            self.blocked.leave_to_sweep(work_id)
            raise  # not caused by this work; the sweep retries
        except Exception as error:  # noqa: BLE001 handled as declared
            self._handle_unprepared(work_id, abandoned, error)
        else:
            if claim is not None:
                return self._job(claim, started)
        self.blocked.pass_on(work_id)
        return None

    def _job(self, claim: table.Claim, started: float) -> JobContext:
        return JobContext(
            self.db,
            claim,
            self.settings,
            lease.Lease(started + self.settings.lease, self.clock),
            self.draining,
            repeatable=not self._has_rescue(self.handlers[claim.kind]),
            call_log=self.call_log,
        )

    def _handle_unprepared(
        self, work_id: str, abandoned: bool, error: Exception
    ) -> None:
        """End work whose `prepare` has failed; the claim was rolled back."""
        started = self.clock()
        try:
            claim = self.db.write(self._claim, work_id, abandoned)
        except table.ResourceBusy:
            return
        if claim is None:
            return
        if isinstance(error, _STALE):
            LOG.info('Work %s is stale: %s', work_id, error)
            self._write_if_held(self._drop, claim)
        else:
            self._handle_failure(self._job(claim, started), error)

    def _prepare(
        self, session: Session, work_id: str, abandoned: bool
    ) -> table.Claim | None:
        claim = self._claim(session, work_id, abandoned)
        if claim is None or self._is_exhausted(claim):
            return claim
        handler = self.handlers[claim.kind]
        if handler.prepare and not self._needs_rescue(claim, handler):
            claim.prepared = handler.prepare(session, claim)
        return claim

    def _claim(
        self, session: Session, work_id: str, abandoned: bool
    ) -> table.Claim | None:
        """Claim work, in whose name the transaction then is."""
        claim = self.claim(session, work_id, abandoned)
        session.by = claim
        return claim

    def _require_known(self, claim: table.Claim) -> None:
        handler = self.handlers.get(claim.kind)
        if handler is None:
            raise UnknownWork(f'its kind is {claim.kind}')
        unknown = claim.args.keys() - set(handler.durable.args)
        if unknown:
            raise UnknownWork(f'{claim.kind} has the arguments {sorted(unknown)}')

    def _is_exhausted(self, claim: table.Claim) -> bool:
        """Whether work has ended its processes too often to try again."""
        return claim.abandoned and claim.attempt > self.settings.max_attempts

    def _needs_rescue(self, claim: table.Claim, handler: contract.Handler) -> bool:
        return claim.abandoned and self._has_rescue(handler)

    def _has_rescue(self, handler: contract.Handler) -> bool:
        return self.rescue is not None and not handler.durable.repeatable

    # Run

    def _handle(self, job: JobContext) -> None:
        claim = job.claim
        try:
            if self._is_exhausted(claim):
                raise exception.AttemptsExhausted(attempts=claim.attempt - 1)
            self._call_handler(job)
        except exception.WorkHandedOn as error:
            LOG.info('%s: %s', operation_log.describe(claim), error)
            self._write_if_held(table.hand_on, claim)
        except exception.ClaimLost as error:
            self._handle_lost_claim(claim, error)
        except _STALE as error:
            LOG.info('Work %s is stale: %s', claim.id, error)
            self._write_if_held(self._drop, claim)
            self._recheck(claim)
        except exception.NewerReleaseNeeded as error:
            self._wait_for_upgrade(job, error)
        except Exception as error:  # noqa: BLE001 handled as declared
            self._handle_failure(job, error)

    def _call_handler(self, job: JobContext) -> None:
        claim = job.claim
        handler = self.handlers[claim.kind]
        if self.rescue and self._needs_rescue(claim, handler):
            metrics.RESCUES.increment(claim.kind)
            self.rescue(job)
        else:
            handler.run(job, **claim.args)
        if not job.closed:
            raise RuntimeError(f'the handler of {claim.kind} did not end its job')

    # Failure

    def _wait_for_upgrade(
        self, job: JobContext, error: exception.NewerReleaseNeeded
    ) -> None:
        """Put the work back; waiting is no attempt.

        Unless a driver was called: what it did is rescued, as after any
        other temporary error.
        """
        claim = job.claim
        if job.has_effects and self._has_rescue(self.handlers[claim.kind]):
            self._handle_failure(job, error)
            return
        LOG.info('%s waits: %s', operation_log.describe(claim), error)
        self._write_if_held(table.release_waiting, claim, UPGRADE_PAUSE, str(error))

    def _handle_failure(self, job: JobContext, error: Exception) -> None:
        claim, handler = job.claim, self.handlers[job.claim.kind]
        job.name_call(error)
        if _is_transient(error) and claim.attempt < self.settings.max_attempts:
            delay = (
                self.settings.retry_delay
                * 2 ** (claim.attempt - 1)
                * self.rng.uniform(0.5, 1.5)
            )
            metrics.RETRIES.increment(claim.kind)
            LOG.warning(
                '%s will be retried in %.1f s: %s',
                operation_log.describe(claim),
                delay,
                error,
            )
            self._write_if_held(
                table.abandon
                if job.has_effects and self._has_rescue(handler)
                else table.retry,
                claim,
                delay,
                str(error),
            )
            return
        metrics.FAILURES.increment(claim.kind)
        operation_log.failed(claim, error)
        try:
            self._write_if_held(self.fail, claim, handler, error)
        except _TRANSIENT:
            raise  # the hook is not at fault; the lease will be over
        except Exception:
            LOG.exception('The failure hook of %s failed', claim.kind)
            plain = dataclasses.replace(handler, failed=None)
            self._write_if_held(self.fail, claim, plain, error)

    def _write_if_held(
        self, function: Callable, claim: table.Claim, *args: object
    ) -> None:
        try:
            self.db.write(function, claim, *args, by=claim)
        except exception.ClaimLost as error:
            self._handle_lost_claim(claim, error)

    def _handle_lost_claim(
        self, claim: table.Claim, error: exception.ClaimLost
    ) -> None:
        metrics.LOST_CLAIMS.increment()
        LOG.warning('%s', error)
        self._recheck(claim)

    def _recheck(self, claim: table.Claim) -> None:
        """Submit a comparison of the resource with the back end.

        This worker may have called the driver after its successor did.
        """
        if self.recheck is None:
            return
        try:
            self.db.write(self._submit_recheck, claim, by=claim)
        except (db_exc.DBError, exception.ServiceUnavailable):
            self._unchecked.append(claim)
            LOG.exception('The recheck of work %s is deferred', claim.id)

    def _submit_recheck(self, session: Session, claim: table.Claim) -> None:
        if self.recheck is not None:
            self.recheck(session, claim)
        driver_calls.record_ended(session, claim)

    def _drop(self, session: Session, claim: table.Claim) -> None:
        table.finish(session, claim)
        charges.release_reservations(session, claim.charges)
        handler = self.handlers[claim.kind]
        if handler.dropped:
            handler.dropped(session, claim)

    def fail(
        self,
        session: Session,
        claim: table.Claim,
        handler: contract.Handler,
        error: Exception,
    ) -> None:
        """End failed work: fire the event, release quota, notify the user.

        A handler may end the work itself for this error. When the status
        of the resource has changed meanwhile, only the work is deleted.
        """
        session.reason = str(error)
        self._drop(session, claim)
        if self.record and isinstance(error, exception.AttemptsExhausted):
            self.record(session, claim, error)
        try:
            self._fire_failure(session, claim, handler, error)
        except _STALE as stale:
            LOG.info('%s', stale)

    def _fire_failure(
        self,
        session: Session,
        claim: table.Claim,
        handler: contract.Handler,
        error: Exception,
    ) -> None:
        if handler.failed and handler.failed(session, claim, error):
            return
        failure = handler.durable.failure_of(error)
        if failure is None:
            return
        transitions.fire(session, failure.machine, claim.resource_id, failure.event)
        if failure.action is not None:  # else users are not notified
            notify.notify_user(
                session,
                claim,
                failure.action,
                notify.detail_of(error, failure),
                self.settings.message_ttl,
                messages.reason_in(error),
                messages.explanation_in(error),
            )


class UnknownWork(Exception):
    """Work of a kind or with arguments that this release does not know."""


_STALE = (exception.InvalidStatus, exception.ResourceNotFound)

_UNAVAILABLE = (
    db_exc.DBConnectionError,
    exception.DatabaseBusy,
    exception.DatabaseFull,
    exception.OutcomeUnknown,
)
"""Errors of the database, which any other work would meet, too."""

_TRANSIENT = (db_exc.DBConnectionError, db_exc.DBDeadlock, exception.ServiceUnavailable)


def _is_transient(error: Exception) -> bool:
    """Whether a later retry may succeed."""
    return isinstance(error, _TRANSIENT)
