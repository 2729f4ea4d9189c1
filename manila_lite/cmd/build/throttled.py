"""A check that anyone may repeat as often as they like, at a limited cost."""

from collections.abc import Callable
import logging
import threading
import time

from manila_lite.api.health import Check, NotKnown

LOG = logging.getLogger(__name__)

NOT_KNOWN = NotKnown('is being checked')


class Throttled:
    """Runs a check at intervals; all calls in between get its last answer.

    The check runs in a thread of its own. The call that starts it waits for
    it, but only for `wait` seconds, by default as long as `patience`. While
    the check has been running for more than `patience` seconds, the answer
    is `late`, and before it has ended for the first time `NOT_KNOWN`.
    """

    def __init__(
        self,
        check: Check,
        interval: float,
        retry_interval: float,
        *,
        patience: float,
        late: str,
        wait: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._check = check
        self._interval, self._retry_interval = interval, retry_interval
        self._patience, self._late = patience, late
        self._wait = patience if wait is None else wait
        self._clock = clock
        self._lock = threading.Lock()
        self._running_since: float | None = None
        self._ended_at: float | None = None
        self._reason: str | None = None

    def __call__(self) -> str | None:
        """Return what is wrong, or None."""
        if self._begin():
            thread = threading.Thread(target=self._run, name='check', daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # the limit of threads is reached
                LOG.warning('A check does not start: %s', error)
                self._end('cannot be checked')
            else:
                thread.join(self._wait)
        with self._lock:
            since = self._running_since
            if since is not None and self._clock() - since >= self._patience:
                return self._late
            return NOT_KNOWN if self._ended_at is None else self._reason

    @property
    def is_running(self) -> bool:
        return self._running_since is not None

    def _begin(self) -> bool:
        """Whether the caller is to start the check now."""
        now = self._clock()
        with self._lock:
            pause = self._retry_interval if self._reason else self._interval
            if self._running_since is not None or (
                self._ended_at is not None and now - self._ended_at < pause
            ):
                return False
            self._running_since = now
            return True

    def _run(self) -> None:
        reason: str | None = 'failed'
        try:
            reason = self._check()
        finally:
            self._end(reason)

    def _end(self, reason: str | None) -> None:
        with self._lock:
            self._reason = reason
            self._running_since = None
            self._ended_at = self._clock()
