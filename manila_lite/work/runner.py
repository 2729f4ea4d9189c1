"""Runs claimed work, and owns the unhappy end of it.

One runner serves some queues with some handlers. Work reaches it by a
hint (an id to look at now) or by the sweep, which finds what no hint
announced and what another process abandoned. A handler holds the happy
way only: it ends with `job.finish`-like calls on its desk. When it
raises, the runner decides: stale work is dropped, a passing trouble is
tried again later, and anything else fires the declared failure, returns
the reserved quota and writes the user message.
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
"""Seconds by which work is looked at later than it is due."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a runner behaves; times are seconds."""

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
    """One claimed job and what a handler may do with it."""

    def __init__(self, db: Database, job: table.Claim, settings: Settings):
        self.db = db
        self.claim = job
        self.settings = settings
        self.closed = False
        self.wake_after: float | None = None
        self.progress_at = time.monotonic()

    def __getattr__(self, name: str) -> typing.Any:
        return getattr(self.claim, name)

    def read(self, query: Callable, *args: typing.Any) -> typing.Any:
        """What a query answers, in a short transaction of its own."""
        return self.db.read(query, *args, by=self.claim)

    def checkpoint(self, step: str) -> None:
        """Note progress; raises WorkLost when another took over."""
        self.db.write(table.checkpoint, self.claim, step, by=self.claim)
        self.progress_at = time.monotonic()

    def finish(self, function: Callable, *args: typing.Any) -> None:
        """End the work and write its results in one transaction.

        After a power cut the work may be run again; handlers end in the
        same place then.
        """
        self.db.write(self._finish, function, args, by=self.claim, fsync=False)
        self.closed = True

    def _finish(self, session: Session, function, args) -> None:
        ended = table.finish(session, self.claim, pause=self.settings.pause)
        self.wake_after = None if ended else self.settings.pause
        function(session, *args)

    def continue_with(
        self,
        args: Mapping[str, typing.Any],
        function: Callable,
        *function_args: typing.Any,
    ) -> None:
        """Write the results of a part; the rest is queued, as `args`."""
        self.db.write(
            self._go_on, args, function, function_args, by=self.claim
        )
        self.closed = True

    def _go_on(self, session: Session, args, function, function_args) -> None:
        table.continue_with(session, self.claim, args)
        function(session, *function_args)

    def pause(
        self, delay: float, function: Callable, *args: typing.Any
    ) -> None:
        """Write how far it has come; the same work goes on after a while."""
        self.db.write(self._pause, delay, function, args, by=self.claim)
        self.closed = True

    def _pause(self, session: Session, delay: float, function, args) -> None:
        table.release(session, self.claim, delay)
        function(session, *args)

    def release(self, delay: float) -> None:
        """Leave the work to somebody else, for now."""
        self.db.write(table.release, self.claim, delay, by=self.claim)
        self.closed = True

    def hand_over(self, function: Callable, *args: typing.Any) -> None:
        """Run a transaction that gives the work to another queue."""
        self.db.write(function, *args, by=self.claim, fsync=False)
        self.closed = True


Rescuer = Callable[[JobContext], None]


class Runner:
    """Claims and runs the work of some queues.

    `handlers` is what `contract.endpoint_handlers` gives. `rescue` is
    called with abandoned work whose handler may not simply run again, and
    `recheck` with a session and work whose handler did something that
    could not be written down.
    Handlers that act outside of the database run when their claim is on
    the disk. `step` runs one piece of work in the calling thread; `start`
    runs the same in threads, for as long as the service lives.
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
        self._hinted: collections.deque[tuple[str, bool]] = collections.deque()
        self._known: set[str] = set()
        self._later: list[tuple[float, str]] = []
        self._wanted = threading.Condition()
        self._running: set[JobContext] = set()
        self._dry = threading.Event()
        self._stop = threading.Event()
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._lease_keeper: threading.Thread | None = None

    # What others call

    def wake(self, work_id: str, abandoned: bool = False) -> None:
        """Look at this work soon; never blocks."""
        with self._wanted:
            if work_id in self._known:
                return
            self._known.add(work_id)
            self._hinted.append((work_id, abandoned))
            self._wanted.notify()

    def step(self) -> bool:
        """Run one piece of due work now; False when there was none."""
        with self._wanted:
            found = self._hinted.popleft() if self._hinted else None
        if found is None:
            if not self.sweep():
                return False
            return self.step()
        self._known.discard(found[0])
        self._run(*found)
        return True

    def sweep(self) -> int:
        """Find due and abandoned work that no hint announced."""
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
        self._lease_keeper = threading.Thread(
            target=self._renew_forever,
            name=f'{self.queues[0]}-lease',
            daemon=True,
        )
        self._lease_keeper.start()

    def stop(self, timeout: float = 60.0) -> bool:
        """Claim nothing more; True when the work in hand has ended.

        Until then its leases are kept.
        """
        self._stop.set()
        self._dry.set()
        with self._wanted:
            self._wanted.notify_all()
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if any(thread.is_alive() for thread in self._threads):
            return False
        self._ended.set()
        if self._lease_keeper is None:
            return True
        self._lease_keeper.join(max(0.0, deadline - time.monotonic()))
        return not self._lease_keeper.is_alive()

    @property
    def in_hand(self) -> int:
        """How much work this runner holds at the moment."""
        return len(self._running)

    # Threads

    def _spawn(self, target: Callable[[], None], name: str) -> None:
        thread = threading.Thread(
            target=target, name=f'{self.queues[0]}-{name}', daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        while True:
            with self._wanted:
                while not (self._ripe() or self._stop.is_set()):
                    self._dry.set()
                    self._wanted.wait(self._until_ripe())
                if self._stop.is_set():
                    return
                work_id, abandoned = self._hinted.popleft()
                self._known.discard(work_id)
            try:
                self._run(work_id, abandoned)
            except Exception:
                # The database is away, say; the sweep comes back to it.
                LOG.exception('Work %s could not be run', work_id)

    def _ripe(self) -> bool:
        """Whether there is work to look at now."""
        while self._later and self._later[0][0] <= time.monotonic():
            work_id = heapq.heappop(self._later)[1]
            if work_id not in self._known:
                self._known.add(work_id)
                self._hinted.append((work_id, False))
        return bool(self._hinted)

    def _until_ripe(self) -> float | None:
        if not self._later:
            return None
        return max(0.0, self._later[0][0] - time.monotonic())

    def _wake_in(self, delay: float, work_id: str) -> None:
        """Look at this work when it is due again."""
        if not self._threads:
            return  # whoever steps this runner has a clock of his own
        with self._wanted:
            heapq.heappush(
                self._later, (time.monotonic() + delay + CLOCK_SKEW, work_id)
            )
            self._wanted.notify()

    def _sweep_forever(self) -> None:
        while not self._stop.is_set():
            self._dry.clear()
            # After a full batch there may be more, for when this is done.
            pause = self._dry if self._sweep_once() else self._stop
            pause.wait(self.settings.sweep_interval)

    def _sweep_once(self) -> bool:
        """Whether there may be more than was found."""
        if len(self._hinted) >= self.settings.batch:
            return True
        try:
            return self.sweep() >= self.settings.batch
        except Exception:
            LOG.exception('The sweep of %s failed', self.queues)
            return False

    def _renew_forever(self) -> None:
        while not self._ended.wait(self.settings.lease / 3):
            try:
                self.renew()
            except Exception:
                LOG.exception('Leases of %s were not renewed', self.queues)

    def renew(self) -> None:
        """Keep the work in hand that has not been still for too long."""
        jobs = self._alive()
        if jobs:
            self.db.write(table.renew, jobs, self.settings.lease)

    def _alive(self) -> list[table.Claim]:
        limit = time.monotonic() - self.settings.operation_timeout
        return [
            job.claim for job in list(self._running) if job.progress_at > limit
        ]

    # One piece of work

    def _run(self, work_id: str, abandoned: bool) -> None:
        if abandoned and any(job.id == work_id for job in self._alive()):
            # The database was away for a lease, and we were not.
            self.renew()
            return
        job = self._prepared(work_id, abandoned)
        if job is None:
            return
        self._running.add(job)
        try:
            self._handle(job)
        finally:
            self._running.discard(job)

    def _prepared(self, work_id: str, abandoned: bool) -> JobContext | None:
        """Work that is ours now; None when it is not, or needs no more."""
        try:
            return self.db.write(
                self._prepare, work_id, abandoned, fsync=self.has_side_effects
            )
        except _UnknownKind as unknown:
            LOG.info('Work %s is left to others: %s', work_id, unknown)
        except _STALE as error:
            LOG.info('Work %s is out of date: %s', work_id, error)
            self.db.write(self._drop_unclaimed, work_id, abandoned)
        except db_exc.DBConnectionError:
            raise  # not the fault of this work; the sweep comes back to it
        except Exception as error:  # noqa: BLE001 handled as declared
            job = self.db.write(self._claim, work_id, abandoned)
            if job is not None:
                self._unhappy(job, self.handlers[job.kind], error)
        return None

    def _prepare(
        self, session: Session, work_id: str, abandoned: bool
    ) -> JobContext | None:
        job = self._claim(session, work_id, abandoned)
        if job is None:
            return None
        handler = self.handlers[job.kind]
        if handler.prepare and not self._needs_rescue(job, handler):
            job.prepared = handler.prepare(session, job)
        return JobContext(self.db, job, self.settings)

    def _claim(
        self, session: Session, work_id: str, abandoned: bool
    ) -> table.Claim | None:
        job = table.claim(
            session,
            work_id,
            self.queues,
            self.owner,
            self.settings.lease,
            abandoned=abandoned,
        )
        if job is not None and job.kind not in self.handlers:
            raise _UnknownKind(job.kind)
        session.by = job
        return job

    def _drop_unclaimed(
        self, session: Session, work_id: str, abandoned: bool
    ) -> None:
        job = self._claim(session, work_id, abandoned)
        if job is not None:
            self._drop(session, job)

    def _needs_rescue(self, job: table.Claim, handler) -> bool:
        return (
            job.abandoned
            and self.rescue is not None
            and not handler.durable.repeatable
        )

    def _handle(self, job: JobContext) -> None:
        handler = self.handlers[job.claim.kind]
        try:
            if self._needs_rescue(job.claim, handler):
                self.rescue(job)
            else:
                handler.run(job, **job.claim.args)
            if not job.closed:
                raise RuntimeError(f'{job.claim.kind} ended without an end')
            if job.wake_after is not None:
                self._wake_in(job.wake_after, job.claim.id)
        except exception.ClaimLost as error:
            self._lost(job.claim, error)
        except _STALE as error:
            LOG.info('Work %s is out of date: %s', job.claim.id, error)
            self._quietly(self._drop, job.claim)
            self._look_again(job.claim)
        except Exception as error:  # noqa: BLE001 handled as declared
            self._unhappy(job.claim, handler, error)

    def _unhappy(self, job: table.Claim, handler, error: Exception) -> None:
        if _passes(error) and job.attempt < self.settings.max_attempts:
            delay = (
                self.settings.retry_delay
                * 2 ** (job.attempt - 1)
                * self.rng.uniform(0.5, 1.5)
            )
            LOG.warning(
                '%s %s is tried again in %.1f s: %s',
                job.kind,
                job.resource_id,
                delay,
                error,
            )
            self._quietly(table.retry, job, delay, str(error))
            return
        # That no storage fits is an answer, not a fault to be traced.
        LOG.error(
            '%s %s failed: %s',
            job.kind,
            job.resource_id,
            error,
            exc_info=(
                None if isinstance(error, exception.NoValidHost) else error
            ),
        )
        try:
            self._quietly(self.fail, job, handler, error)
        except db_exc.DBConnectionError:
            raise
        except Exception:
            LOG.exception('The end of %s itself failed', job.kind)
            plain = dataclasses.replace(handler, failed=None)
            self._quietly(self.fail, job, plain, error)

    def _quietly(
        self, function: Callable, job: table.Claim, *args: typing.Any
    ) -> None:
        try:
            self.db.write(function, job, *args, by=job)
        except exception.ClaimLost as error:
            self._lost(job, error)

    def _lost(self, job: table.Claim, error: exception.ClaimLost) -> None:
        LOG.warning('%s', error)
        self._look_again(job)

    def _look_again(self, job: table.Claim) -> None:
        if self.recheck and not self.handlers[job.kind].durable.repeatable:
            self.db.write(self.recheck, job, by=job)

    def _drop(self, session: Session, job: table.Claim) -> None:
        table.finish(session, job)
        charges.release_reservations(session, job.charges)
        handler = self.handlers[job.kind]
        if handler.dropped:
            handler.dropped(session, job)

    def fail(
        self, session: Session, job: table.Claim, handler, error: Exception
    ) -> None:
        """End the work visibly: failure event, quota back, user message.

        A handler may have an end of its own for the error. Where the
        resource has moved on by itself only the work goes.
        """
        self._drop(session, job)
        try:
            self._fire_failure(session, job, handler, error)
        except _STALE as stale:
            LOG.info('%s', stale)

    def _fire_failure(
        self, session: Session, job: table.Claim, handler, error: Exception
    ) -> None:
        if handler.failed and handler.failed(session, job, error):
            return
        failure = handler.durable.failure_of(error)
        if failure is None:
            return
        transitions.fire(
            session, failure.machine, job.resource_id, failure.event
        )
        if failure.action is not None:  # else there is no user to tell
            notify.notify_user(
                session,
                job,
                failure.action,
                notify.detail_of(error, failure),
                self.settings.message_ttl,
            )


class _UnknownKind(Exception):
    """Work of a kind that nobody here knows; it stays as it is."""


_STALE = (exception.InvalidStatus, exception.ResourceNotFound)

_PASSING = (
    db_exc.DBConnectionError,
    db_exc.DBDeadlock,
    exception.ServiceUnavailable,
)


def _passes(error: Exception) -> bool:
    """Whether trying again later may well help."""
    return isinstance(error, _PASSING)
