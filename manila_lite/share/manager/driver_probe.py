"""Questions to a driver that may never answer."""

from collections.abc import Callable
from concurrent import futures
import logging
import threading
import time
import typing

from oslo_db import exception as db_exc

from manila_lite import exception

LOG = logging.getLogger(__name__)

# What may well be over soon is for the runner to try again.
_PASSING = (exception.ServiceUnavailable, db_exc.DBError)


SLOW_AFTER = 1.0
"""Seconds that a worker waits for an answer before it does other work."""

FORGET_AFTER = 600.0
"""Seconds for which an answer is kept that nobody has come back for."""


class BackendUnresponsive(exception.ManilaLiteError):
    """So many questions are unanswered that no more is asked."""

    message = 'The back end has left {count} questions unanswered.'


class ProbeResult(typing.NamedTuple):
    """What a driver said; `reason` is why that is nothing to go by."""

    value: typing.Any
    reason: str | None


class AnswerPending(exception.ManilaLiteError):
    """The answer is waited for by nobody in particular; ask again."""

    message = 'The driver has not answered yet.'


class _Asked(typing.NamedTuple):
    said: futures.Future
    until: float


class DriverProbe:
    """Asks in threads of their own, and waits for no answer too long.

    A question that hangs keeps its thread, and as many as `limit` may.
    """

    def __init__(self, timeout: float, limit: int):
        self.timeout = timeout
        self.limit = limit
        self._free = threading.BoundedSemaphore(limit)
        self._asked: dict[str, _Asked] = {}
        self._lock = threading.Lock()

    def ask(
        self,
        method: Callable[..., typing.Any],
        *args: typing.Any,
        on_slow: Callable[[], object] | None = None,
    ) -> ProbeResult:
        """The answer, or why there is none; raises BackEndAway.

        Trouble that may pass is raised as it is. `late` is called when
        there is no answer for `PATIENCE` seconds, which is waited for on.
        """
        asked = self._begin(method, args)
        patience = min(SLOW_AFTER, self.timeout)
        if on_slow and not futures.wait([asked.said], patience).done:
            on_slow()
        futures.wait([asked.said], asked.until - time.monotonic())
        return self._answer(asked, method)

    def poll(
        self, key: str, method: Callable[..., typing.Any], *args: typing.Any
    ) -> ProbeResult:
        """The same for who has other work to do meanwhile.

        Raises StillAsked when there is no answer for `PATIENCE` seconds:
        it is kept for who comes back with the key.
        """
        with self._lock:
            asked = self._asked.get(key)
        if asked is None:
            asked = self._begin(method, args)
            futures.wait([asked.said], min(SLOW_AFTER, self.timeout))
        is_open = not (asked.said.done() or time.monotonic() >= asked.until)
        with self._lock:
            self._asked.pop(key, None)
            if is_open:
                self._asked[key] = asked
                raise AnswerPending
        return self._answer(asked, method)

    def _begin(self, method: Callable[..., typing.Any], args: tuple) -> _Asked:
        if not self._free.acquire(blocking=False):
            raise BackendUnresponsive(count=self.limit)
        asked = _Asked(futures.Future(), time.monotonic() + self.timeout)
        with self._lock:
            # What nobody has come back for, others have rescued.
            self._asked = {
                key: one
                for key, one in self._asked.items()
                if time.monotonic() < one.until + FORGET_AFTER
            }
        threading.Thread(
            target=self._ask,
            args=(asked.said, method, args),
            name='question',
            daemon=True,
        ).start()
        return asked

    def _answer(
        self, asked: _Asked, method: Callable[..., typing.Any]
    ) -> ProbeResult:
        if asked.said.done():
            return _answer(asked.said)
        LOG.error(
            'The driver has not answered %s within %s s', method, self.timeout
        )
        return ProbeResult(
            None, f'the back end did not answer within {self.timeout:g} s'
        )

    def _ask(
        self,
        said: futures.Future,
        method: Callable[..., typing.Any],
        args: tuple,
    ) -> None:
        value, error = None, None
        try:
            value = method(*args)
        except BaseException as raised:  # noqa: BLE001 for who asked
            error = raised
        self._free.release()
        if error is None:
            said.set_result(value)
        else:
            said.set_exception(error)


def _answer(said: futures.Future) -> ProbeResult:
    error = said.exception()
    if error is None:
        return ProbeResult(said.result(), None)
    if isinstance(error, NotImplementedError):
        return ProbeResult(None, 'the back end cannot tell what became of it')
    if isinstance(
        error,
        (exception.ShareResourceNotFound, exception.SnapshotResourceNotFound),
    ):
        return ProbeResult(None, 'the back end does not have it')
    if isinstance(error, _PASSING) or not isinstance(error, Exception):
        raise error
    LOG.warning('A question to the driver failed', exc_info=error)
    return ProbeResult(None, f'the back end fails to tell: {error}')
