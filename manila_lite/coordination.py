"""Locks between workers, threads and hosts, named by what they protect.

A lock saves work: two workers do not do the same thing side by side. It
is never what makes the result right, for no network lock fences: after a
lost lease the old holder still believes in it. Guards in the database do
that. So when the lock service cannot be reached, work goes on as if the
lock had been had, with a warning.

Locks are not re-entrant.
"""

import collections
from collections.abc import Callable, Iterator
import contextlib
import hashlib
import logging
import re
import socket
import threading
import time
import typing
import urllib.parse

from manila_lite import conf as options
from manila_lite.db.fifo import FifoLock

LOG = logging.getLogger(__name__)

PREFIX = 'manila-lite-'
_SAFE_NAME = re.compile(r'[\w@#.+-]{1,128}', re.ASCII)

# tooz shares the state of a file's locks between threads through a table
# that two threads may not fill at once.
_naming = threading.Lock()


class Coordinator:
    """Locks of the service that `[coordination] backend_url` names.

    A wrong url fails here; the service is first needed by the first lock
    and may still be away.
    """

    RETRY_AFTER = 10.0
    """Seconds without locks after the lock service has failed."""

    PROBE = 1.0
    """Seconds that a Redis server may take to accept a connection."""

    def __init__(
        self,
        conf: typing.Any,
        member_id: str,
        *,
        clock: Callable[[], float] = time.monotonic,
    ):
        url = conf.coordination.backend_url
        self._address = _redis_address(url)
        self._clock = clock
        self._turns = _Turns()
        self._starting = threading.Lock()
        self._started = False
        self._away_until = float('-inf')
        # Not left to the first lock: tooz imports eventlet, and a thread
        # that does so first can never be joined.
        self._backend = _load(url, member_id)

    @contextlib.contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold the lock inside the block, after waiting for it."""
        with self._turns.of(name), self._held(name, blocking=True):
            yield

    @contextlib.contextmanager
    def try_lock(self, name: str) -> Iterator[bool]:
        """True inside the block, or False when another has the lock."""
        with self._held(name, blocking=False) as held:
            yield held

    def stop(self) -> None:
        """Leave the lock service; locks still held there run out."""
        with self._starting:
            if self._started:
                self._started = False
                with self._tolerated():
                    self._probe()
                    self._backend.stop()

    @contextlib.contextmanager
    def _held(self, name: str, *, blocking: bool) -> Iterator[bool]:
        lock, held = None, True
        if self._clock() >= self._away_until:
            with self._tolerated():
                self._probe()
                lock = self._lock(name)
                held = lock.acquire(blocking=blocking)
        try:
            yield held
        finally:
            if lock is not None and lock.acquired:
                with self._tolerated():
                    lock.release()

    def _probe(self) -> None:
        """Raise OSError at once when a Redis server is away.

        Its client and tooz both try again, for a minute on the whole.
        """
        if self._address is not None:
            socket.create_connection(self._address, self.PROBE).close()

    def _lock(self, name: str) -> typing.Any:
        with self._starting:
            if not self._started:
                self._start()
                self._started = True
        with _naming:
            return self._backend.get_lock(lock_name(name).encode())

    def _start(self) -> None:
        from tooz import coordination

        # Only a lock with a lease needs the thread that renews it.
        leased = (
            coordination.Characteristics.NON_TIMEOUT_BASED
            not in self._backend.CHARACTERISTICS
        )
        self._backend.start(start_heart=leased)

    @contextlib.contextmanager
    def _tolerated(self) -> Iterator[None]:
        """Let work go on without locks for a while after a failure."""
        import tooz

        try:
            yield
        except (tooz.ToozError, OSError) as error:
            self._away_until = self._clock() + self.RETRY_AFTER
            LOG.warning(
                'The lock service does not work; going on without '
                'locks for %d s: %r',
                self.RETRY_AFTER,
                error,
            )


class _Turns:
    """One thread of this process at a time asks for a lock of a name.

    Of tooz every waiter is woken whenever a lock is let go, most of them
    to see that another was faster: of sixteen, the last waited twice as
    long as he does in a queue.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._found: dict[str, FifoLock] = {}
        self._wanted: collections.Counter[str] = collections.Counter()

    @contextlib.contextmanager
    def of(self, name: str) -> Iterator[None]:
        with self._guard:
            turn = self._found.setdefault(name, FifoLock())
            self._wanted[name] += 1
        try:
            with turn:
                yield
        finally:
            with self._guard:
                self._wanted[name] -= 1
                if not self._wanted[name]:
                    del self._found[name], self._wanted[name]


class NullCoordinator:
    """Locks that everybody has at once: what must be right without."""

    @contextlib.contextmanager
    def lock(self, name: str) -> Iterator[None]:
        yield

    @contextlib.contextmanager
    def try_lock(self, name: str) -> Iterator[bool]:
        yield True

    def stop(self) -> None:
        """Nothing was started."""


def _load(url: str, member_id: str) -> typing.Any:
    from tooz import coordination

    try:
        return coordination.get_coordinator(url, member_id.encode())
    except (RuntimeError, ImportError) as error:
        raise options.BadConfiguration(
            f'[coordination] backend_url: {error}'
        ) from error


def _redis_address(url: str) -> tuple[str, int] | None:
    """Where to see whether a single Redis server is there, if it is one."""
    parts = urllib.parse.urlsplit(url)
    if (
        parts.scheme != 'redis'
        or not parts.hostname
        or 'sentinel' in urllib.parse.parse_qs(parts.query)
    ):
        return None
    return parts.hostname, parts.port or 6379


def lock_name(name: str) -> str:
    """A name that every back end takes, files included."""
    if _SAFE_NAME.fullmatch(name):
        return PREFIX + name
    digest = hashlib.sha256(name.encode()).hexdigest()[:32]
    return f'{PREFIX}{re.sub(r"[^a-zA-Z0-9]+", "-", name)[:64]}-{digest}'
