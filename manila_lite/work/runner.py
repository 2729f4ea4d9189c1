"""Run claimed work and handle its failures.

A runner serves some queues with some handlers. Work reaches it by a hint
(the id of a row) or by the sweep, which finds work without a hint and
work abandoned by another process. A handler contains the successful path
only and ends with a call such as `job.finish`. When it raises, the runner
decides: stale work is dropped, a transient error is retried later, and
any other error fires the declared failure event, releases the reserved
quota and writes the user message.
"""

import collections
from collections.abc import Callable, Collection, Mapping
import dataclasses
import heapq
import logging
import random
import threading
import time
import typing

from oslo_db import exception as db_exc

from manila_lite import exception
from manila_lite.db import transitions
from manila_lite.db.session import Database
from manila_lite.db.session import Session
from manila_lite.quota import charges
from manila_lite.rpc import contract
from manila_lite.work import notify
from manila_lite.work import table

LOG = logging.getLogger(__name__)

CLOCK_SKEW = 0.02
"""Seconds to wait beyond the due time, for clocks that differ."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of a runner; times are in seconds."""

    lease: float = 30.0
    sweep_interval: float = 2.0
    workers: int = 2
    max_attempts: int = 5
    retry_delay: float = 1.0
    operation_timeout: float = 3600.0
    message_ttl: int = 2592000
    pause: float = 0.2
    batch: int = 50


class JobContext:
    """The claimed work that a handler runs, and how the handler ends it."""

    def __init__(self, db: Database, claim: table.Claim, settings: Settings):
        self.db = db
        self.claim = claim
        self.settings = settings
        self.closed = False
        self.wake_after: float | None = None
        self.progress_at = time.monotonic()

    def __getattr__(self, name: str) -> typing.Any:
        return getattr(self.claim, name)

    def read(self, query: Callable, *args: typing.Any) -> typing.Any:
        """Run a query in a short transaction of its own."""
        return self.db.read(query, *args, by=self.claim)

    def checkpoint(self, step: str) -> None:
        """Record progress; raise ClaimLost when another worker took over."""
        self.db.write(table.checkpoint, self.claim, step, by=self.claim)
        self.progress_at = time.monotonic()

    def finish(self, function: Callable, *args: typing.Any) -> None:
        """End the work and write its results in one transaction.

        The commit may be lost in a power cut. The work is then run again,
        and handlers are idempotent.
        """
        self.db.write(self._finish, function, args, by=self.claim, fsync=False)
        self.closed = True

    def _finish(
        self, session: Session, function: Callable, args: tuple
    ) -> None:
        ended = table.finish(session, self.claim, pause=self.settings.pause)
        self.wake_after = None if ended else self.settings.pause
        function(session, *args)

    def continue_with(
        self,
        args: Mapping[str, typing.Any],
        function: Callable,
        *function_args: typing.Any,
    ) -> None:
        """Write the results so far; queue the rest as work with `args`."""
        self.db.write(
            self._continue_with, args, function, function_args, by=self.claim
        )
        self.closed = True

    def _continue_with(
        self,
        session: Session,
        args: Mapping[str, typing.Any],
        function: Callable,
        function_args: tuple,
    ) -> None:
        table.continue_with(session, self.claim, args)
        function(session, *function_args)

    def pause(
        self, delay: float, function: Callable, *args: typing.Any
    ) -> None:
        """Write the progress; run the same work again after `delay`."""
        self.db.write(self._pause, delay, function, args, by=self.claim)
        self.closed = True

    def _pause(
        self, session: Session, delay: float, function: Callable, args: tuple
    ) -> None:
        table.release(session, self.claim, delay)
        function(session, *args)

    def release(self, delay: float) -> None:
        """Give up the claim; any worker may claim it after `delay`."""
        self.db.write(table.release, self.claim, delay, by=self.claim)
        self.closed = True

    def hand_over(self, function: Callable, *args: typing.Any) -> None:
        """Run a transaction that moves the work to another queue."""
        self.db.write(function, *args, by=self.claim, fsync=False)
        self.closed = True


Rescuer = Callable[[JobContext], None]


class Runner:
    """Claims and runs the work of some queues.

    `handlers` is the result of `contract.endpoint_handlers`. `rescue` is
    called with abandoned work whose handler must not simply run again.
    `recheck` is called with a session and a claim when the effects of a
    handler could not be recorded.
    Handlers with side effects outside of the database run only after
    their claim has reached the disk. `step` runs one piece of work in the
    calling thread; `start` does the same in threads until `stop`.
    """

    def __init__(
        self,
        db: Database,
        *,
        queues: Collection[str],
        handlers: Mapping[str, contract.Handler],
        owner: str,
        rescue: Rescuer | None = None,
        recheck: Callable[[Session, table.Claim], None] | None = None,
        settings: Settings | None = None,
        rng: random.Random | None = None,
        has_side_effects: bool = True,
    ):
        self.db = db
        self.queues = tuple(queues)
        self.handlers = dict(handlers)
        self.owner = owner
        self.rescue = rescue
        self.recheck = recheck
        self.settings = settings or Settings()
        self.rng = rng or random.Random()
        self.has_side_effects = has_side_effects
        self._hints: collections.deque[tuple[str, bool]] = collections.deque()
        self._queued_ids: set[str] = set()
        self._delayed: list[tuple[float, str]] = []
        self._changed = threading.Condition()
        self._running: set[JobContext] = set()
        self._idle = threading.Event()
        self._stop = threading.Event()
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []
        self._renewer: threading.Thread | None = None

    # Public interface

    def wake(self, work_id: str, abandoned: bool = False) -> None:
        """Schedule this work to be claimed soon; never blocks."""
        with self._changed:
            if work_id in self._queued_ids:
                return
            self._queued_ids.add(work_id)
            self._hints.append((work_id, abandoned))
            self._changed.notify()

    def step(self) -> bool:
        """Run one piece of due work now; return False when there is none."""
        with self._changed:
            hint = self._hints.popleft() if self._hints else None
        if hint is None:
            if not self.sweep():
                return False
            return self.step()
        self._queued_ids.discard(hint[0])
        self._run(*hint)
        return True

    def sweep(self) -> int:
        """Find due and abandoned work without a hint; return the count."""
        found = self.db.read(
            table.sweep, self.queues, self.handlers, self.settings.batch
        )
        for work_id, abandoned in found:
            self.wake(work_id, abandoned)
        return len(found)

    def start(self) -> None:
        for number in range(self.settings.workers):
            self._spawn(self._work, f'worker-{number}')
        self._spawn(self._sweep_forever, 'sweep')
        self._renewer = threading.Thread(
            target=self._renew_forever,
            name=f'{self.queues[0]}-lease',
            daemon=True,
        )
        self._renewer.start()

    def stop(self, timeout: float = 60.0) -> bool:
        """Claim no more work; return True when running work has ended.

        Its leases are renewed until then.
        """
        self._stop.set()
        self._idle.set()
        with self._changed:
            self._changed.notify_all()
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if any(thread.is_alive() for thread in self._threads):
            return False
        self._stopped.set()
        if self._renewer is None:
            return True
        self._renewer.join(max(0.0, deadline - time.monotonic()))
        return not self._renewer.is_alive()

    # Threads

    def _spawn(self, target: Callable[[], None], name: str) -> None:
        thread = threading.Thread(
            target=target, name=f'{self.queues[0]}-{name}', daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        while True:
            with self._changed:
                while not (self._has_due_work() or self._stop.is_set()):
                    self._idle.set()
                    self._changed.wait(self._next_due_in())
                if self._stop.is_set():
                    return
                work_id, abandoned = self._hints.popleft()
                self._queued_ids.discard(work_id)
            try:
                self._run(work_id, abandoned)
            except Exception:
                # For instance, the database is down; the sweep retries.
                LOG.exception('Could not run work %s', work_id)

    def _has_due_work(self) -> bool:
        """Whether there is work to claim now."""
        while self._delayed and self._delayed[0][0] <= time.monotonic():
            work_id = heapq.heappop(self._delayed)[1]
            if work_id not in self._queued_ids:
                self._queued_ids.add(work_id)
                self._hints.append((work_id, False))
        return bool(self._hints)

    def _next_due_in(self) -> float | None:
        if not self._delayed:
            return None
        return max(0.0, self._delayed[0][0] - time.monotonic())

    def _wake_after(self, delay: float, work_id: str) -> None:
        """Schedule this work for when it is due again."""
        if not self._threads:
            return  # the caller of `step` has a clock of its own
        with self._changed:
            heapq.heappush(
                self._delayed, (time.monotonic() + delay + CLOCK_SKEW, work_id)
            )
            self._changed.notify()

    def _sweep_forever(self) -> None:
        while not self._stop.is_set():
            self._idle.clear()
            # After a full batch, sweep again as soon as it is done.
            pause = self._idle if self._sweep_once() else self._stop
            pause.wait(self.settings.sweep_interval)

    def _sweep_once(self) -> bool:
        """Sweep; return whether there may be more work than was found."""
        if len(self._hints) >= self.settings.batch:
            return True
        try:
            return self.sweep() >= self.settings.batch
        except Exception:
            LOG.exception('The sweep of queues %s failed', self.queues)
            return False

    def _renew_forever(self) -> None:
        while not self._stopped.wait(self.settings.lease / 3):
            try:
                self.renew()
            except Exception:
                LOG.exception(
                    'Could not renew the leases of queues %s', self.queues
                )

    def renew(self) -> None:
        """Renew the leases of running jobs that have made progress."""
        claims = self._live_claims()
        if claims:
            self.db.write(table.renew, claims, self.settings.lease)

    def _live_claims(self) -> list[table.Claim]:
        limit = time.monotonic() - self.settings.operation_timeout
        return [
            job.claim for job in list(self._running) if job.progress_at > limit
        ]

    # One piece of work

    def _run(self, work_id: str, abandoned: bool) -> None:
        if abandoned and any(
            claim.id == work_id for claim in self._live_claims()
        ):
            # The database was down for a whole lease; this process was not.
            self.renew()
            return
        job = self._claim_and_prepare(work_id, abandoned)
        if job is None:
            return
        self._running.add(job)
        try:
            self._handle(job)
        finally:
            self._running.discard(job)

    def _claim_and_prepare(
        self, work_id: str, abandoned: bool
    ) -> JobContext | None:
        """Claim the work; return None when there is nothing to run."""
        try:
            return self.db.write(
                self._prepare, work_id, abandoned, fsync=self.has_side_effects
            )
        except _UnknownKind as unknown:
            LOG.info('Work %s has an unknown kind: %s', work_id, unknown)
        except _STALE as error:
            LOG.info('Work %s is stale: %s', work_id, error)
            self.db.write(self._drop_unclaimed, work_id, abandoned)
        except db_exc.DBConnectionError:
            raise  # not caused by this work; the sweep retries
        except Exception as error:  # noqa: BLE001 handled as declared
            claim = self.db.write(self._claim, work_id, abandoned)
            if claim is not None:
                self._handle_failure(claim, self.handlers[claim.kind], error)
        return None

    def _prepare(
        self, session: Session, work_id: str, abandoned: bool
    ) -> JobContext | None:
        claim = self._claim(session, work_id, abandoned)
        if claim is None:
            return None
        handler = self.handlers[claim.kind]
        if handler.prepare and not self._needs_rescue(claim, handler):
            claim.prepared = handler.prepare(session, claim)
        return JobContext(self.db, claim, self.settings)

    def _claim(
        self, session: Session, work_id: str, abandoned: bool
    ) -> table.Claim | None:
        claim = table.claim(
            session,
            work_id,
            self.queues,
            self.owner,
            self.settings.lease,
            abandoned=abandoned,
        )
        if claim is not None and claim.kind not in self.handlers:
            raise _UnknownKind(claim.kind)
        session.by = claim
        return claim

    def _drop_unclaimed(
        self, session: Session, work_id: str, abandoned: bool
    ) -> None:
        claim = self._claim(session, work_id, abandoned)
        if claim is not None:
            self._drop(session, claim)

    def _needs_rescue(
        self, claim: table.Claim, handler: contract.Handler
    ) -> bool:
        return (
            claim.abandoned
            and self.rescue is not None
            and not handler.durable.repeatable
        )

    def _handle(self, job: JobContext) -> None:
        handler = self.handlers[job.claim.kind]
        try:
            if self.rescue and self._needs_rescue(job.claim, handler):
                self.rescue(job)
            else:
                handler.run(job, **job.claim.args)
            if not job.closed:
                raise RuntimeError(
                    f'the handler of {job.claim.kind} did not end its job'
                )
            if job.wake_after is not None:
                self._wake_after(job.wake_after, job.claim.id)
        except exception.ClaimLost as error:
            self._handle_lost_claim(job.claim, error)
        except _STALE as error:
            LOG.info('Work %s is stale: %s', job.claim.id, error)
            self._write_if_held(self._drop, job.claim)
            self._recheck(job.claim)
        except Exception as error:  # noqa: BLE001 handled as declared
            self._handle_failure(job.claim, handler, error)

    def _handle_failure(
        self, claim: table.Claim, handler: contract.Handler, error: Exception
    ) -> None:
        if _is_transient(error) and claim.attempt < self.settings.max_attempts:
            delay = (
                self.settings.retry_delay
                * 2 ** (claim.attempt - 1)
                * self.rng.uniform(0.5, 1.5)
            )
            LOG.warning(
                '%s %s will be retried in %.1f s: %s',
                claim.kind,
                claim.resource_id,
                delay,
                error,
            )
            self._write_if_held(table.retry, claim, delay, str(error))
            return
        # NoValidHost is a regular outcome; a traceback would not help.
        LOG.error(
            '%s %s failed: %s',
            claim.kind,
            claim.resource_id,
            error,
            exc_info=(
                None if isinstance(error, exception.NoValidHost) else error
            ),
        )
        try:
            self._write_if_held(self.fail, claim, handler, error)
        except db_exc.DBConnectionError:
            raise
        except Exception:
            LOG.exception('The failure hook of %s failed', claim.kind)
            plain = dataclasses.replace(handler, failed=None)
            self._write_if_held(self.fail, claim, plain, error)

    def _write_if_held(
        self, function: Callable, claim: table.Claim, *args: typing.Any
    ) -> None:
        try:
            self.db.write(function, claim, *args, by=claim)
        except exception.ClaimLost as error:
            self._handle_lost_claim(claim, error)

    def _handle_lost_claim(
        self, claim: table.Claim, error: exception.ClaimLost
    ) -> None:
        LOG.warning('%s', error)
        self._recheck(claim)

    def _recheck(self, claim: table.Claim) -> None:
        if self.recheck and not self.handlers[claim.kind].durable.repeatable:
            self.db.write(self.recheck, claim, by=claim)

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
        self._drop(session, claim)
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
        transitions.fire(
            session, failure.machine, claim.resource_id, failure.event
        )
        if failure.action is not None:  # else users are not notified
            notify.notify_user(
                session,
                claim,
                failure.action,
                notify.detail_of(error, failure),
                self.settings.message_ttl,
            )


class _UnknownKind(Exception):
    """Work of a kind without a handler here; it is left alone."""


_STALE = (exception.InvalidStatus, exception.ResourceNotFound)

_TRANSIENT = (
    db_exc.DBConnectionError,
    db_exc.DBDeadlock,
    exception.ServiceUnavailable,
)


def _is_transient(error: Exception) -> bool:
    """Whether a later retry may succeed."""
    return isinstance(error, _TRANSIENT)
