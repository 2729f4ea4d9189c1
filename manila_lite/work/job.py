"""The claimed work that a handler runs."""

from collections.abc import Callable, Iterator, Mapping
import contextlib
import contextvars
import dataclasses
import threading
import time
import typing
import uuid

from manila_lite import exception
from manila_lite.context import FencingToken, RequestContext
from manila_lite.db.session import Database, Session
from manila_lite.work import operation_log, table
from manila_lite.work.driver_calls import CallLog
from manila_lite.work.lease import Draining, Lease


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of a runner; times are in seconds.

    There are at most `workers`. Without work `spare_workers` of them stay; more
    are added when work waits and none has become free for `growth_pause`.
    """

    lease: float = 30.0
    sweep_interval: float = 2.0
    urgent_interval: float = 0.5
    workers: int = 2
    spare_workers: int = 2
    growth_pause: float = 0.02
    max_attempts: int = 5
    retry_delay: float = 1.0
    operation_timeout: float = 3600.0
    message_ttl: int = 2592000
    pause: float = 0.2
    batch: int = 50


def write_nothing(session: Session) -> None:
    """End work that has no results to write."""


class JobContext:
    """The claimed work that a handler runs, and how the handler ends it.

    When `draining` begins it is handed on where that loses nothing; work that
    is `repeatable` may begin again after any of its steps.
    """

    def __init__(
        self,
        db: Database,
        claim: table.Claim,
        settings: Settings,
        lease: Lease,
        draining: Draining | None = None,
        *,
        repeatable: bool = False,
        call_log: CallLog | None = None,
    ):
        self.db = db
        self._call_log = call_log
        self.claim = claim
        self.settings = settings
        self.lease = lease
        self.closed = False
        self.has_effects = False
        self.is_lost = False
        self.last_call: str | None = None
        self._draining = draining or Draining()
        self._repeatable = repeatable
        self._renewing = threading.Lock()
        self.wake_after: float | None = None
        self.progress_at = time.monotonic()

    def __getattr__(self, name: str) -> typing.Any:
        return getattr(self.claim, name)

    def read(self, query: Callable, *args: object) -> typing.Any:
        """Run a query in a short transaction of its own."""
        return self.db.read(query, *args, by=self.claim)

    # The lease

    def renew(self) -> bool:
        """Renew the lease; return False when the claim is lost."""
        with self._renewing:
            return self._renew()

    def renew_at_once(self) -> bool:
        """Do the same, or raise WorkLocked where that would wait for a lock.

        The leases of other work must not end meanwhile.
        """
        if not self._renewing.acquire(blocking=False):
            raise table.WorkLocked
        try:
            return self._renew(wait=False)
        finally:
            self._renewing.release()

    def _renew(self, *, wait: bool = True) -> bool:
        deadline = self.lease.now() + self.settings.lease
        if not self.db.write(table.renew, self.claim, self.settings.lease, wait=wait):
            self.lease.lose()
            return False
        self.lease.extend(deadline)
        return True

    def name_call(self, error: Exception) -> None:
        """Add to an error about a reply of the driver which call that was."""
        if isinstance(error, exception.ShareBackendException) and (
            self.last_call and not hasattr(error, '__notes__')
        ):
            error.add_note(self.last_call)

    def raise_fence(self, above: int) -> None:
        """Take a fence larger than `above`; raise ClaimLost if fenced off."""
        with self._renewing:
            fence = max(self.claim.fence, above) + 1
            self.db.write(table.raise_fence, self.claim, fence)
            self.claim.fence = fence

    def require_claim(self) -> None:
        """Raise ClaimLost unless this worker may still act on the claim.

        It may within its lease, and after it as long as no other worker
        has taken over; the lease is then renewed.
        """
        if not self.lease.is_valid and not self.renew():
            raise exception.ClaimLost(id=self.claim.id)

    def require_step(self) -> None:
        """Raise WorkHandedOn instead of a step that others can begin as well.

        If the driver was called, that is work which may simply run again.
        """
        if self._draining.has_begun and (self._repeatable or not self.has_effects):
            raise exception.WorkHandedOn(id=self.claim.id)

    def require_time(self) -> None:
        """Raise WorkHandedOn when the time of the process to stop is up."""
        if self._draining.time_is_up:
            raise exception.WorkHandedOn(id=self.claim.id)

    @property
    def fencing_token(self) -> FencingToken:
        """The token by which back ends order the workers on a resource."""
        return FencingToken(self.claim.exclusion_key, self.claim.fence)

    def request_context(self) -> RequestContext:
        """Return the context of the request that the work is done for."""
        return self.claim.request_context()

    # Progress and end

    def checkpoint(
        self, step: str, function: Callable = write_nothing, *args: object
    ) -> None:
        """Record progress; raise ClaimLost when another worker took over.

        `function` may write more of it in the same transaction.
        """
        self.db.write(self._checkpoint, step, function, args, by=self.claim)
        self.progress_at = time.monotonic()

    def _checkpoint(
        self, session: Session, step: str, function: Callable, args: tuple
    ) -> None:
        table.checkpoint(session, self.claim, step)
        function(session, *args)

    def finish(self, function: Callable = write_nothing, *args: object) -> None:
        """End the work and write its results in one transaction.

        The commit may be lost in a power cut. The work is then run again,
        and handlers are idempotent.
        """
        self.db.write(self._finish, function, args, by=self.claim, fsync=False)
        self.closed = True
        operation_log.finished(self.claim)

    def _finish(self, session: Session, function: Callable, args: tuple) -> None:
        ended = table.finish(
            session, self.claim, pause=self.settings.pause, call_log=self._call_log
        )
        self.wake_after = None if ended else self.settings.pause
        function(session, *args)

    def continue_with(
        self,
        args: Mapping[str, typing.Any],
        function: Callable = write_nothing,
        *function_args: object,
    ) -> None:
        """Write the results so far; queue the rest as work with `args`."""
        self.db.write(self._continue_with, args, function, function_args, by=self.claim)
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
        self, delay: float, function: Callable = write_nothing, *args: object
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

    def hand_over(self, function: Callable, *args: object) -> None:
        """Run a transaction that moves the work to another queue."""
        self.db.write(function, *args, by=self.claim, fsync=False)
        self.closed = True


class RecordedCall:
    """A call of a driver that a job makes; it begins at once."""

    def __init__(self, job: JobContext, method: str):
        self._calls, self._db = job.claim.driver_calls, job.db
        self._call = self._calls.begin(str(uuid.uuid4()), method, self._db.utcnow())

    def end(self, outcome: str, error: Exception | None, *, is_poll: bool) -> None:
        """Record the end; a poll is recorded only if it failed."""
        self._calls.end(self._call, self._db.utcnow(), outcome, error, is_poll=is_poll)


_current: contextvars.ContextVar[JobContext | None] = contextvars.ContextVar(
    'job', default=None
)


def current_job() -> JobContext | None:
    """Return the job that this thread runs, if any."""
    return _current.get()


def running(job: JobContext) -> contextlib.AbstractContextManager[None]:
    """Make this the current job of the thread inside the block."""
    return _current_set_to(job)


def outside_of_jobs() -> contextlib.AbstractContextManager[None]:
    """Run the block as code that belongs to no job."""
    return _current_set_to(None)


@contextlib.contextmanager
def _current_set_to(job: JobContext | None) -> Iterator[None]:
    token = _current.set(job)
    try:
        yield
    finally:
        _current.reset(token)
