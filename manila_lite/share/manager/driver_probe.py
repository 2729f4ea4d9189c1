"""Calls to a driver that may never return."""

from collections.abc import Callable
from concurrent import futures
import logging
import threading
import time
import typing
from typing import Annotated

from oslo_db import exception as db_exc

from manila_lite import exception, messages
from manila_lite.conf import Option
from manila_lite.context import in_callers_context

LOG = logging.getLogger(__name__)

# Errors that say nothing about the back end: the runner handles them.
_UNRELATED = (exception.ClaimLost, exception.ServiceUnavailable, db_exc.DBError)


SLOW_AFTER = 1.0
"""Seconds that a worker waits for a reply before it does other work."""

REPLY_PAUSE = 1.0
"""Seconds until a caller that polls should look for the reply again."""

FORGET_AFTER = 600.0
"""Seconds after its timeout until an uncollected reply is discarded."""

RETRY_PAUSE, RETRIES_PER_SECOND = 10.0, 10
"""How often callers that wait for a free thread should look again."""


class BackendUnresponsive(exception.ManilaLiteError):
    """Too many calls are pending; no more are made."""

    message = 'The back end has not replied to {count} pending calls.'

    @property
    def retry_after(self) -> float:
        """Seconds until a caller that polls should look again."""
        return float(typing.cast(float, self.params['retry_after']))


class ProbeResult(typing.NamedTuple):
    """The value returned by a driver, or the reason why there is none.

    `is_absent` if the reason is that the back end does not have the resource.
    """

    value: typing.Any
    reason: str | None
    is_absent: bool = False


class AnswerPending(exception.ManilaLiteError):
    """The driver has not replied yet; poll again later."""

    message = 'The driver has not replied yet.'
    retry_after = REPLY_PAUSE


class _Call(typing.NamedTuple):
    future: futures.Future
    deadline: float


class DriverProbe:
    """Calls driver methods in threads, with a time limit for the reply.

    A call that hangs occupies its thread; at most `limit` calls run at a
    time.
    """

    def __init__(
        self,
        timeout: Annotated[float, Option('recovery.question_timeout')],
        limit: Annotated[int, Option('recovery.unanswered_questions')],
    ):
        self.timeout = timeout
        self.limit = limit
        self._free = threading.BoundedSemaphore(limit)
        self._calls: dict[str, _Call] = {}
        self._waiting: dict[str, float] = {}
        self._lock = threading.Lock()

    def ask(
        self,
        method: Callable[..., typing.Any],
        *args: object,
        on_slow: Callable[[], object] | None = None,
    ) -> ProbeResult:
        """Return the reply, or the reason why there is none.

        Transient errors are raised unchanged, and BackendUnresponsive when
        too many calls are pending. `on_slow` is called when there is no
        reply within `SLOW_AFTER` seconds; the wait then goes on.
        """
        call = self._begin(method, args, self.timeout)
        patience = min(SLOW_AFTER, self.timeout)
        if on_slow and not futures.wait([call.future], patience).done:
            on_slow()
        futures.wait([call.future], call.deadline - time.monotonic())
        return self._result(call, method)

    def poll(
        self, key: str, method: Callable[..., typing.Any], *args: object
    ) -> ProbeResult:
        """Return the reply, without blocking the worker until it comes.

        Raises AnswerPending when there is none within `SLOW_AFTER`
        seconds; a later call with the same key collects it. Raises
        BackendUnresponsive while too many calls are pending, but not for
        longer than one may take: then there is no reply.
        """
        with self._lock:
            call = self._calls.get(key)
        if call is None:
            waited = self._seconds_waited(key)
            try:
                # Together with the wait it takes at most half as long again.
                call = self._begin(
                    method, args, max(self.timeout - waited, self.timeout / 2)
                )
            except BackendUnresponsive:
                if waited < self.timeout:
                    raise
                self._end_wait(key)
                return ProbeResult(
                    None,
                    f'the back end did not reply to {self.limit} other calls '
                    f'for {self.timeout:g} s',
                )
            self._end_wait(key)
            futures.wait([call.future], min(SLOW_AFTER, self.timeout))
        is_pending = not (call.future.done() or time.monotonic() >= call.deadline)
        with self._lock:
            self._calls.pop(key, None)
            if is_pending:
                self._calls[key] = call
                raise AnswerPending
        return self._result(call, method)

    def _seconds_waited(self, key: str) -> float:
        """Return for how long there has been no thread for this call."""
        now = time.monotonic()
        with self._lock:
            oldest = now - self.timeout - FORGET_AFTER
            self._waiting = {
                key: since for key, since in self._waiting.items() if since > oldest
            }
            return now - self._waiting.setdefault(key, now)

    def _end_wait(self, key: str) -> None:
        with self._lock:
            self._waiting.pop(key, None)

    def _begin(
        self, method: Callable[..., typing.Any], args: tuple, timeout: float
    ) -> _Call:
        if not self._free.acquire(blocking=False):
            raise BackendUnresponsive(
                count=self.limit,
                retry_after=max(
                    min(RETRY_PAUSE, self.timeout / 2),
                    len(self._waiting) / RETRIES_PER_SECOND,
                ),
            )
        call = _Call(futures.Future(), time.monotonic() + timeout)
        with self._lock:
            # Uncollected replies: another process has done the rescue.
            self._calls = {
                key: one
                for key, one in self._calls.items()
                if time.monotonic() < one.deadline + FORGET_AFTER
            }
        threading.Thread(
            # With the job of this thread, whose claim the call needs.
            target=in_callers_context(self._run),
            args=(call.future, method, args),
            name='driver-probe',
            daemon=True,
        ).start()
        return call

    def _result(self, call: _Call, method: Callable[..., typing.Any]) -> ProbeResult:
        if call.future.done():
            return _result(call.future)
        LOG.error('The driver did not reply to %s within %s s', method, self.timeout)
        return ProbeResult(
            None, f'the back end did not reply within {self.timeout:g} s'
        )

    def _run(
        self, future: futures.Future, method: Callable[..., typing.Any], args: tuple
    ) -> None:
        value, error = None, None
        try:
            value = method(*args)
        except BaseException as raised:  # noqa: BLE001 raised in the caller
            error = raised
        self._free.release()
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)


def _result(future: futures.Future) -> ProbeResult:
    error = future.exception()
    if error is None:
        return ProbeResult(future.result(), None)
    if isinstance(error, NotImplementedError):
        return ProbeResult(None, 'the driver does not support the query')
    if isinstance(
        error,
        (
            exception.ShareResourceNotFound,
            exception.ShareGroupResourceNotFound,
            exception.SnapshotResourceNotFound,
        ),
    ):
        return ProbeResult(None, 'the back end does not have it', True)
    if isinstance(error, _UNRELATED) or not isinstance(error, Exception):
        raise error
    LOG.warning('A probe of the driver failed', exc_info=error)
    said = messages.explanation_in(error) or error
    return ProbeResult(None, f'the query of the back end failed: {said}')
