"""Servers that listen as soon as the message broker lets them."""

from collections.abc import Callable
from concurrent import futures
import logging
import threading
import time
import typing

from manila_lite import exception

LOG = logging.getLogger(__name__)

BROKER_TIMEOUT = 5.0
"""Seconds that a start waits for a broker that does not respond."""

PAUSE = 10.0
"""Seconds until the next try after the broker has refused one."""

REASONS = {
    403: 'refuses the user, its password or its permissions',
    405: 'has another owner for a queue or an exchange',
    406: 'has a queue or an exchange that is declared otherwise',
    530: 'does not have the virtual host, or refuses it',
}
"""What the replies of AMQP mean, in words that anyone may read."""

REFUSES = 'refuses to let servers listen'
SILENT = 'does not accept messages'


class Refusals:
    """Which servers of a process the broker refuses, and why.

    `reason` says it without addresses; the log has the broker's own words,
    once in `LOG_INTERVAL` seconds for all servers together.
    """

    LOG_INTERVAL = 60.0

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._logged_at = -self.LOG_INTERVAL
        self._refused: dict[str, str] = {}
        self._lock = threading.Lock()

    @property
    def reason(self) -> str | None:
        """What the broker does to a server; None if all may listen."""
        with self._lock:
            return next(iter(self._refused.values()), None)

    def note(self, name: str, error: BaseException) -> None:
        why = reason_of(error) or REFUSES
        with self._lock:
            self._refused[name] = why
            now = self._clock()
            if now - self._logged_at < self.LOG_INTERVAL:
                return
            self._logged_at = now
            number = len(self._refused)
        LOG.error(
            'The message broker %s; until it accepts %s (%d refused), only '
            'the sweep finds work: %s',
            why,
            name,
            number,
            error,
        )

    def forget(self, name: str) -> None:
        with self._lock:
            if self._refused.pop(name, None) is None:
                return
        LOG.info('The message broker accepts %s', name)


def reason_of(error: BaseException | None) -> str | None:
    """Return what a broker does that raised this, None if it is not known.

    oslo wraps some errors into others; the reply of the broker is one of
    those that came before.
    """
    while error is not None:
        code = getattr(error, 'reply_code', None)
        if code in REASONS:
            return REASONS[code]
        error = error.__cause__ or error.__context__
    return None


THREAD = 'listen-'
"""How the names of threads begin that try to listen."""

_REPEATED = ('Failed to declare consumer', 'Unable to connect to AMQP server')


def _is_news(record: logging.LogRecord) -> bool:
    """Whether `Refusals` does not say the same, at its interval."""
    return not (
        record.threadName is not None
        and record.threadName.startswith(THREAD)
        and record.getMessage().startswith(_REPEATED)
    )


logging.getLogger('oslo.messaging._drivers.impl_rabbit').addFilter(_is_news)


class Server:
    """Receives calls and hints between `start` and `stop`."""

    def __init__(self, build: Callable[[], typing.Any], name: str, refusals: Refusals):
        self._build, self._name, self._refusals = build, name, refusals
        self._server = build()
        self._listening = False
        self._tried = threading.Event()
        self._stopping = threading.Event()
        self._changing = threading.Lock()
        self._starter = threading.Thread(
            target=self._listen, name=f'{THREAD}{name}', daemon=True
        )

    def start(self) -> None:
        """Listen; go on trying in the background if the broker is down.

        Messages only make work start sooner, so a service starts without
        its broker, also when that refuses it.
        """
        self._starter.start()
        if not self._tried.wait(BROKER_TIMEOUT):
            LOG.warning(
                '%s: the message broker does not answer; until it does, '
                'only the sweep finds work',
                self._name,
            )

    def _listen(self) -> None:
        while not self._stopping.is_set() and not self._try():
            self._tried.set()
            self._stopping.wait(PAUSE)
            # One of oslo starts once, whether it succeeds or not.
            self._server = self._build()
        self._tried.set()

    def _try(self) -> bool:
        server = self._server
        if server.executor_type == 'threading':
            # oslo's executor wakes every idle thread once a second and
            # takes as long to stop; the one of Python does neither.
            server._executor_cls = futures.ThreadPoolExecutor
        try:
            server.start()
        except Exception as error:  # noqa: BLE001 the service goes on
            self._refusals.note(self._name, error)
            return False
        self._refusals.forget(self._name)
        with self._changing:
            self._listening = not self._stopping.is_set()
        if not self._listening:
            _end(server)
        return True

    def stop(self) -> None:
        """Stop listening; return when received messages are handled."""
        with self._changing:
            self._stopping.set()
            is_listening, self._listening = self._listening, False
        self._refusals.forget(self._name)
        if is_listening:
            _end(self._server)


def _end(server: typing.Any) -> None:
    server.stop()
    server.wait()


def send_ping(transport: typing.Any, topic: str) -> str | None:
    """Send a message to a topic; return what is wrong, without addresses.

    That includes what keeps the servers of this process from listening.
    """
    if refused := transport.refusals.reason:
        return f'the broker {refused}'
    try:
        transport.client(topic).cast(None, 'ping', {})
    except exception.ServiceUnavailable as error:
        if type(error.__cause__).__name__ == 'MessageUndeliverable':
            return None  # the broker answers, without a listener
        refused = reason_of(error)
        return f'the broker {refused}' if refused else SILENT
    return None
