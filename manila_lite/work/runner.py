"""Find work of some queues and run it in threads.

Work reaches a runner by a hint (the id of a row) or by the sweep, which
finds work without a hint and work abandoned by another process.
"""

import collections
from collections.abc import Callable, Collection, Mapping
import functools
import heapq
import itertools
import logging
import math
import random
import threading
import time

from manila_lite.db.session import Database
from manila_lite.release import NUMBER as THIS_RELEASE
from manila_lite.rpc import contract
from manila_lite.work import lease, operation_log, table
from manila_lite.work.execution import Executor, Hook, Record, Rescuer
from manila_lite.work.job import Settings

LOG = logging.getLogger(__name__)

HAND_ON_TIME = 5.0
"""Seconds for copies to be handed on when the time to stop is up."""

CLOCK_SKEW = 0.02
"""Seconds to wait beyond the due time, for clocks that differ."""

MOST_AT_ONCE = 10
"""Pieces of work in one transaction without a claim, at most."""

Shortcut = Callable[[list[str]], Collection[str]]


class SweepProbe:
    """Asks for all runners of a process at once whether a sweep finds work.

    They sweep at the same interval and were started together, so that one
    statement serves all of them while nothing is to be done.
    """

    SHARED_FOR = 0.25
    """The part of an interval for which an answer is good enough."""

    def __init__(self, db: Database, clock: Callable[[], float] = time.monotonic):
        self._db = db
        self._clock = clock
        self._lock = threading.Lock()
        self._queues: set[str] = set()
        self._found: frozenset[str] = frozenset()
        self._asked_at = -math.inf

    def may_find(
        self, queues: Collection[str], settings: Settings, release: int
    ) -> bool:
        """Return whether there may be work for a runner of these queues."""
        with self._lock:
            is_new = not self._queues.issuperset(queues)
            self._queues.update(queues)
            now, interval = self._clock(), settings.sweep_interval
            if is_new or now - self._asked_at >= self.SHARED_FOR * interval:
                found = self._db.read(
                    table.list_queues_to_sweep,
                    sorted(self._queues),
                    settings.batch,
                    interval,
                    release=release,
                )
                self._found, self._asked_at = frozenset(found), now
            return not self._found.isdisjoint(queues)


class Runner:
    """Claims and runs the work of some queues.

    `handlers` is the result of `contract.endpoint_handlers`; the other
    arguments are those of `Executor`. Work that needs a newer `release`
    than this one is left to others. `step` runs one piece of work
    in the calling thread; `start` does the same in threads until `stop`.

    While work waits for slow calls, workers are added one by one up to a limit.
    Quick work gets none, as they would only compete for the processor. While all
    workers are busy, another thread runs the kinds of work that are `urgent`.

    `shortcut` is called with the ids of work that hints tell of, and returns
    those that it has carried out without a claim. It has one try: what it
    leaves, or a sweep finds, is claimed, so that attempts are counted.
    """

    def __init__(
        self,
        db: Database,
        *,
        queues: Collection[str],
        handlers: Mapping[str, contract.Handler],
        owner: str,
        rescue: Rescuer | None = None,
        recheck: Hook | None = None,
        record: Record | None = None,
        settings: Settings | None = None,
        rng: random.Random | None = None,
        has_side_effects: bool = True,
        urgent: Collection[str] = (),
        clock: lease.Clock = lease.boot_time,
        release: int = THIS_RELEASE,
        probe: SweepProbe | None = None,
        shortcut: Shortcut | None = None,
    ):
        self.db, self.shortcut, self._probe = db, shortcut, probe
        self.queues = tuple(queues)
        self.owner = owner
        self.urgent = frozenset(urgent)
        self.settings = settings or Settings()
        self.release = release
        self.executor = Executor(
            db,
            queues=queues,
            handlers=handlers,
            owner=owner,
            rescue=rescue,
            recheck=recheck,
            record=record,
            settings=self.settings,
            rng=rng or random.Random(),
            has_side_effects=has_side_effects,
            clock=clock,
            release=release,
        )
        self._hints: collections.deque[tuple[str, bool]] = collections.deque()
        self._queued_ids: set[str] = set()
        self._hinted_ids: set[str] = set()
        self._delayed: list[tuple[float, str]] = []
        self._changed = threading.Condition()
        self._worker_numbers = itertools.count()
        self._worker_count = self._occupied_count = 0
        self._moved_at = 0.0
        self._busy_since: float | None = None
        self._enabled = True
        self._idle = threading.Event()
        self._stop = threading.Event()
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []
        self._renewer: threading.Thread | None = None
        self._swept_at = self._renewed_at = 0.0
        self._due_at: dict[str, float] = {}  # the next pass of each loop

    # Public interface

    def wake(self, work_id: str, abandoned: bool = False) -> None:
        """Schedule this work, of which a hint tells; never blocks."""
        self._schedule(
            work_id, abandoned, is_hinted=not abandoned and self.shortcut is not None
        )

    def _schedule(
        self, work_id: str, abandoned: bool, *, is_hinted: bool = False
    ) -> None:
        with self._changed:
            if work_id in self._queued_ids or not self._enabled:
                return
            self._queued_ids.add(work_id)
            if is_hinted:
                self._hinted_ids.add(work_id)
            self._hints.append((work_id, abandoned))
            self._changed.notify()
            self._add_workers()

    def step(self) -> bool:
        """Run one piece of due work now; return False when there is none."""
        with self._changed:
            batch = self._next_batch() if self._hints else None
        if batch is None:
            self._write_calls()
            if not self.sweep():
                return False
            return self.step()
        self._run_batch(*batch)
        return True

    def sweep(self) -> int:
        """Find due and abandoned work without a hint; return the count."""
        if not self._enabled:
            return 0
        due, soon = self.db.read(
            table.sweep_ahead,
            self.queues,
            self.executor.handlers,
            self.settings.batch,
            self.settings.sweep_interval,
            release=self.release,
        )
        for work_id, abandoned in due:
            self._schedule(work_id, abandoned)
        for work_id, delay in soon:
            self._wake_after(delay, work_id)
        return len(due)

    def start(self) -> None:
        self._swept_at = self._renewed_at = time.monotonic()
        self._due_at = {
            'sweep': self._swept_at,
            'lease': self._renewed_at + self.settings.lease / 3,
        }
        with self._changed:
            for _ in range(self._spare_workers):
                self._add_worker()
        if self.urgent:
            self._spawn(self._work_on_urgent, 'urgent')
        self._spawn(self._sweep_forever, 'sweep')
        self._renewer = threading.Thread(
            target=self._renew_forever, name=f'{self.queues[0]}-lease', daemon=True
        )
        self._renewer.start()

    def set_enabled(self, enabled: bool) -> None:
        """Claim work only while enabled; work without a claim is left."""
        with self._changed:
            if enabled == self._enabled:
                return
            self._enabled = enabled
            self._hints.clear()
            self._queued_ids.clear()
            self._hinted_ids.clear()
            self._delayed.clear()
        self.executor.blocked.leave_all_to_sweep()
        self._idle.set()
        LOG.info(
            'Work of %s is claimed again'
            if enabled
            else 'No work of %s is claimed: the service is disabled',
            ', '.join(self.queues),
        )

    def drain(self) -> None:
        """Claim no more work, and hand running work on before its next step.

        Leases of running work are still renewed.
        """
        self.executor.draining.begin()
        self._stop.set()
        self._idle.set()
        with self._changed:
            self._changed.notify_all()

    def stop(self, timeout: float = 60.0) -> bool:
        """Drain; return True when all running work has ended in time.

        Copies are then handed on. Calls that have not returned are left to
        their leases.
        """
        self.drain()
        deadline = time.monotonic() + timeout
        if not self._join(deadline):
            self.executor.draining.end()
            deadline = time.monotonic() + HAND_ON_TIME
            if not self._join(deadline):
                self._report_unfinished()
                return False
        self._stopped.set()
        if self._renewer is None:
            return True
        self._write_calls()
        self._renewer.join(max(0.0, deadline - time.monotonic()))
        return not self._renewer.is_alive()

    # Threads

    def _join(self, deadline: float) -> bool:
        """Wait for the threads; return whether all have ended."""
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _report_unfinished(self) -> None:
        for claim in self.executor.running():
            LOG.warning(
                '%s has not ended in time; it is taken over when its lease '
                'is over, in %g s at the latest',
                operation_log.describe(claim),
                self.settings.lease,
            )

    def _spawn(self, target: Callable[[], None], name: str) -> None:
        thread = threading.Thread(
            target=target, name=f'{self.queues[0]}-{name}', daemon=True
        )
        thread.start()
        self._threads.append(thread)

    @property
    def _spare_workers(self) -> int:
        return min(self.settings.spare_workers, self.settings.workers)

    def _add_workers(self) -> None:
        """Add a worker if something waits and all are occupied.

        It waits for what is due later, too. The caller has the lock.
        """
        if (
            not self._threads
            or self._stop.is_set()
            or self._worker_count == self.settings.workers
            or self._occupied_count < self._worker_count
            or not (self._hints or self._delayed)
        ):
            return
        try:
            self._add_worker()
        except RuntimeError as error:  # a limit of the system
            LOG.warning('%s works on with fewer threads: %s', self.queues, error)

    def _add_worker(self) -> None:
        self._spawn(self._work, f'worker-{next(self._worker_numbers)}')
        self._worker_count += 1

    def _work(self) -> None:
        while (batch := self._wait_for_batch()) is not None:
            try:
                self._run_batch(*batch)
            except Exception:
                # For instance, the database is down; the sweep retries.
                LOG.exception('Could not run work %s', batch[0])
            with self._changed:
                self._occupied_count -= 1
                self._busy_since = None
                self._moved_at = time.monotonic()

    def _wait_for_batch(self) -> tuple[str, bool, list[str]] | None:
        """Return the next work, and count the calling worker as occupied.

        Returns None if the worker is to end.
        """
        with self._changed:
            while not self._stop.is_set():
                if not self._has_due_work():
                    self._idle.set()
                    if self._is_superfluous():
                        self._worker_count -= 1
                        self._threads.remove(threading.current_thread())
                        return None
                    self._changed.wait(self._next_due_in())
                elif (pause := self._pause_of_growth()) > 0.0:
                    self._changed.wait(pause)
                else:
                    return self._occupy()
        return None

    def _is_superfluous(self) -> bool:
        """Whether more workers are free than are to wait for work."""
        return self._worker_count - self._occupied_count > self._spare_workers

    def _pause_of_growth(self) -> float:
        """Return the seconds until one more may be occupied.

        Where work is taken and ended all the time, those that are can do it.
        """
        if self._occupied_count < self._spare_workers:
            return 0.0
        return self._moved_at + self.settings.growth_pause - time.monotonic()

    def _occupy(self) -> tuple[str, bool, list[str]]:
        batch = self._next_batch()
        self._moved_at = time.monotonic()
        self._occupied_count += 1
        if self._occupied_count == self.settings.workers:
            self._busy_since = self._moved_at
        self._add_workers()
        return batch

    def _next_batch(self) -> tuple[str, bool, list[str]]:
        """Return the next work, and the ids with which it may be carried out.

        There are none if the work has to be claimed.
        """
        work_id, abandoned = self._hints.popleft()
        self._queued_ids.discard(work_id)
        if work_id not in self._hinted_ids:
            return work_id, abandoned, []
        at_once = [work_id]
        while (
            self._hints
            and self._hints[0][0] in self._hinted_ids
            and len(at_once) < MOST_AT_ONCE
        ):
            at_once.append(self._hints.popleft()[0])
        self._queued_ids.difference_update(at_once)
        self._hinted_ids.difference_update(at_once)
        return work_id, abandoned, at_once

    def _run_batch(self, work_id: str, abandoned: bool, at_once: list[str]) -> None:
        if at_once:
            done = self._take_shortcut(at_once)
            for other in at_once[1:]:
                if other not in done:
                    self._schedule(other, False)
            if work_id in done:
                return
        self._run(work_id, abandoned)

    def _take_shortcut(self, work_ids: list[str]) -> Collection[str]:
        """Return the ids of the work that was carried out without a claim."""
        assert self.shortcut is not None
        try:
            return self.shortcut(work_ids)
        except Exception:
            # Its claim meets the same problem, and that is handled.
            LOG.debug('Work %s is claimed', ', '.join(work_ids), exc_info=True)
            return ()

    def _try_to_run(self, work_id: str, abandoned: bool) -> None:
        try:
            self._run(work_id, abandoned)
        except Exception:
            # For instance, the database is down; the sweep retries.
            LOG.exception('Could not run work %s', work_id)

    def _work_on_urgent(self) -> None:
        """Run urgent work while all other workers are busy."""
        while not self._stop.wait(self.settings.urgent_interval):
            if self._busy_since is None or not self._enabled:
                continue
            try:
                found = self.db.read(
                    table.sweep,
                    self.queues,
                    self.urgent,
                    self.settings.batch,
                    release=self.release,
                )
            except Exception:
                LOG.exception('No urgent work of %s was found', self.queues)
                continue
            for work_id, abandoned in found:
                if not self._stop.is_set():
                    self._try_to_run(work_id, abandoned)

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
            if not self._enabled:
                return
            heapq.heappush(
                self._delayed, (time.monotonic() + delay + CLOCK_SKEW, work_id)
            )
            self._changed.notify()
            self._add_workers()

    def _sweep_forever(self) -> None:
        while not self._stop.is_set():
            self._idle.clear()
            self._write_calls()
            # After a full batch, sweep again as soon as it is done.
            pause = self._idle if self._sweep_once() else self._stop
            self._due_at['sweep'] = time.monotonic() + self.settings.sweep_interval
            pause.wait(self.settings.sweep_interval)

    def _sweep_once(self) -> bool:
        """Sweep; return whether there may be more work than was found."""
        if len(self._hints) >= self.settings.batch:
            self._swept_at = time.monotonic()
            return True
        try:
            self.executor.retry_failed_rechecks()
            found = self.sweep() if self._may_find_work() else 0
        except Exception:
            LOG.exception('The sweep of queues %s failed', self.queues)
            return False
        self._swept_at = time.monotonic()
        return found >= self.settings.batch

    def _write_calls(self) -> None:
        """Record the driver calls of work that has succeeded since."""
        try:
            # They are for diagnosis: after a power failure some may be missing.
            self.executor.call_log.write(functools.partial(self.db.write, fsync=False))
        except Exception:
            LOG.exception('Driver calls of %s were not recorded yet', self.queues)

    def _may_find_work(self) -> bool:
        return self._probe is None or self._probe.may_find(
            self.queues, self.settings, self.release
        )

    def _renew_forever(self) -> None:
        pause = interval = self.settings.lease / 3
        while not self._stopped.wait(pause):
            self._due_at['lease'] = time.monotonic() + interval
            try:
                pause = interval if self.renew() else interval / 10
                self._renewed_at = time.monotonic()
            except Exception:
                LOG.exception('Could not renew the leases of queues %s', self.queues)

    def renew(self) -> bool:
        """Renew the leases of running jobs that have made progress.

        Returns False if some have to be tried again soon.
        """
        return self.executor.renew()

    @property
    def is_busy(self) -> bool:
        """Whether any work is running."""
        return bool(self.executor.running())

    def busy_since(self) -> float | None:
        """Return since when all workers are occupied; None if one is free.

        In seconds of `time.monotonic`.
        """
        return self._busy_since

    def stall_reason(self) -> str | None:
        """Return why the queue does not move; None if it does.

        The reason is for a public health check, so it names nothing.
        """
        if not self._threads:
            return 'has not started'
        if self._stop.is_set():
            return 'is stopping'
        if not self._enabled:
            return 'is disabled'
        with self._changed:  # else a worker might end meanwhile
            all_alive = all(thread.is_alive() for thread in self._threads)
        if not all_alive:
            return 'a thread has ended'
        now, lease = time.monotonic(), self.settings.lease
        if now - self._swept_at > max(3 * self.settings.sweep_interval, lease):
            return 'new work is not found'
        if now - self._renewed_at > lease:
            return 'leases are not renewed'
        return None

    def overdue_by(self) -> float:
        """Return for how many seconds one of its loops has been overdue.

        It is the one that looks for work, or the one that renews leases: 0
        while both go round, even if each statement fails, and while the runner
        does not run.
        """
        if not self._threads or self._stop.is_set():
            return 0.0
        return max(0.0, time.monotonic() - min(self._due_at.values()))

    def _run(self, work_id: str, abandoned: bool) -> None:
        try:
            job = self.executor.run(work_id, abandoned)
        finally:
            for waiting in self.executor.blocked.take_free():
                self._schedule(waiting, False)
        if job is not None and job.wake_after is not None:
            self._wake_after(job.wake_after, work_id)
