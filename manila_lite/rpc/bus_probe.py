"""Whether messages can be sent, for a health check that cannot wait."""

from collections.abc import Callable
import threading
import time
import typing

from manila_lite import exception

INTERVAL = 10.0
"""Seconds after which a message is sent again."""

PATIENCE = 5.0
"""Seconds after which a message that is not sent counts as lost."""


class BusProbe:
    """Sends a message to a topic now and then, in a thread of its own.

    It is sent when somebody asks, and the answer is about the last one.
    """

    def __init__(
        self,
        transport: typing.Any,
        topic: str,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._transport = transport
        self._topic = topic
        self._clock = clock
        self._lock = threading.Lock()
        self._began: float | None = None
        self._ended: float | None = None
        self._reason: str | None = None

    def __call__(self) -> str | None:
        """Return what is wrong, or None; without addresses."""
        now = self._clock()
        with self._lock:
            is_running = self._began is not None
            is_due = self._ended is None or now - self._ended >= INTERVAL
            if is_due and not is_running:
                self._began = now
                threading.Thread(
                    target=self._probe, name='bus-probe', daemon=True
                ).start()
            if is_running and now - typing.cast(float, self._began) > PATIENCE:
                return 'does not accept messages'
            return self._reason

    @property
    def has_answer(self) -> bool:
        """Whether no message is on its way, and one was before."""
        with self._lock:
            return self._began is None and self._ended is not None

    def _probe(self) -> None:
        reason: str | None = 'does not accept messages'
        try:
            reason = self._send()
        finally:
            with self._lock:
                self._reason = reason
                self._began, self._ended = None, self._clock()

    def _send(self) -> str | None:
        try:
            self._transport.client(self._topic).cast(None, 'ping', {})
        except exception.ServiceUnavailable as error:
            if type(error.__cause__).__name__ == 'MessageUndeliverable':
                return None  # the broker answers, without a listener
            return 'does not accept messages'
        return None
