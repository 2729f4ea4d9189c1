"""The driver calls of claimed work, recorded for later diagnosis.

They are written in transactions that the worker makes anyway: at its next
checkpoint, when it ends the work or gives up the claim. A call that runs
when the lease is renewed is written then, so that it is visible if its
process dies. Calls of work that has succeeded, all of them well, are written a
moment later with those of other work.
"""

from collections.abc import Callable, Collection
import dataclasses
import datetime
import threading
import typing

from manila_lite import masking
from manila_lite.db.queries.recovery import recovery
from manila_lite.db.session import Session

MOST = 50
"""Calls kept between two transactions; of more, only those that fail."""

MOST_WAITING = 500
"""Calls that wait to be written with others; further ones do not."""

OK = 'ok'
_MAX_ERROR_LENGTH = 1000


@dataclasses.dataclass(slots=True, eq=False)
class DriverCall:
    """One call; `is_written` says that its row may be in the database."""

    id: str
    method: str
    started_at: datetime.datetime
    ended_at: datetime.datetime | None = None
    outcome: str | None = None
    error: str | None = None
    is_written: bool = False


class DriverCalls:
    """The calls of a claim that are yet to be written."""

    def __init__(self) -> None:
        self._calls: list[DriverCall] = []

    def begin(self, id: str, method: str, now: datetime.datetime) -> DriverCall:
        call = DriverCall(id, method, now)
        self._calls.append(call)
        return call

    def end(
        self,
        call: DriverCall,
        now: datetime.datetime,
        outcome: str,
        error: BaseException | None,
        *,
        is_poll: bool,
    ) -> None:
        """Note how a call has ended; a poll is kept only if it failed."""
        call.outcome = outcome
        if error is not None:
            text = str(error) or type(error).__name__
            call.error = masking.mask(text)[:_MAX_ERROR_LENGTH]
        call.ended_at = now
        is_dull = is_poll or len(self._calls) > MOST
        if outcome == OK and is_dull and not call.is_written:
            self._calls.remove(call)

    def list_ended(self) -> list[DriverCall]:
        return [call for call in list(self._calls) if call.ended_at]

    def list_running(self) -> list[DriverCall]:
        """Return the calls that run and have not been written."""
        return [
            call
            for call in list(self._calls)
            if not call.ended_at and not call.is_written
        ]

    def forget(self, calls: Collection[DriverCall]) -> None:
        self._calls = [call for call in self._calls if call not in calls]


class Claimed(typing.Protocol):
    """What a record says about the work of a call."""

    @property
    def id(self) -> str: ...

    @property
    def resource(self) -> str: ...

    @property
    def resource_id(self) -> str: ...

    @property
    def queue(self) -> str: ...

    @property
    def attempt(self) -> int: ...

    @property
    def request_id(self) -> str | None: ...

    @property
    def driver_calls(self) -> DriverCalls: ...


class CallLog:
    """Calls of work that has succeeded, written together. Safe for threads.

    A process that is killed loses those since the last `write`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[dict[str, object]] = []
        self._may_be_written = False

    def accepts(self, calls: Collection[DriverCall]) -> bool:
        """Whether these calls may wait."""
        return len(self._waiting) < MOST_WAITING and all(
            call.outcome == OK and not call.is_written for call in calls
        )

    def add(self, claim: Claimed, calls: Collection[DriverCall]) -> None:
        with self._lock:
            self._waiting += [_row(claim, call) for call in calls]

    def write(self, run: Callable[..., object]) -> None:
        """Write what waits by `run(function, *args)`, in a transaction.

        After an error it is written again: its commit may have got no answer.
        One thread calls this.
        """
        with self._lock:
            rows = self._waiting[:]
        if not rows:
            return
        written = [str(row['id']) for row in rows] if self._may_be_written else []
        self._may_be_written = True
        run(recovery.replace_driver_calls, rows, written=written)
        self._may_be_written = False
        with self._lock:
            del self._waiting[: len(rows)]


def record_ended(session: Session, claim: Claimed, log: CallLog | None = None) -> None:
    """Write the calls that have ended, or leave them to a log.

    The transaction has changed or locked the row of the work before, so
    that it does not meet the one of a renewal.
    """
    calls = claim.driver_calls.list_ended()
    if not calls:
        return
    if log is not None and log.accepts(calls):
        session.after_commit(log.add, claim, calls)
    else:
        _write(session, claim, calls)
    session.after_commit(claim.driver_calls.forget, calls)


def record_running(session: Session, claim: Claimed) -> None:
    """Write the calls that run; same condition as `record_ended`."""
    calls = claim.driver_calls.list_running()
    if calls:
        _write(session, claim, calls)


def _write(session: Session, claim: Claimed, calls: list[DriverCall]) -> None:
    written = [call.id for call in calls if call.is_written]
    for call in calls:
        call.is_written = True  # also if the commit is not confirmed
    recovery.replace_driver_calls(
        session, [_row(claim, call) for call in calls], written=written
    )


def _row(claim: Claimed, call: DriverCall) -> dict[str, object]:
    return {
        'id': call.id,
        'resource': claim.resource,
        'resource_id': claim.resource_id,
        'method': call.method,
        'host': claim.queue,
        'work_id': claim.id,
        'attempt': claim.attempt,
        'request_id': claim.request_id,
        'started_at': call.started_at,
        'ended_at': call.ended_at,
        'outcome': call.outcome,
        'error': call.error,
    }
