"""Locks between workers, threads and hosts, named by what they protect.

A lock saves work: two workers do not do the same thing at the same time.
It never ensures correctness, because no network lock fences: after its
lease is lost, the old holder still believes that it holds the lock.
Guards in the database ensure correctness. So when the lock service cannot
be reached, a warning is logged and work continues without the lock.

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

# tooz shares the state of file locks between threads in a table that is not
# thread-safe.
_get_lock_guard = threading.Lock()


class Coordinator:
    """Locks of the lock service in `[coordination] backend_url`.

    An invalid URL fails here. The service is contacted by the first lock,
    and may be down until then.
    """

    RETRY_AFTER = 10.0
    """Seconds to work without locks after the lock service failed."""

    CONNECT_TIMEOUT = 1.0
    """Seconds a Redis server may take to accept a connection."""

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
        self._queues = _LockQueues()
        self._start_guard = threading.Lock()
        self._started = False
        self._down_until = float('-inf')
        # Not deferred to the first lock: tooz imports eventlet, and the
        # thread that imports it first can never be joined.
        self._backend = _load(url, member_id)

    @contextlib.contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Wait for the lock and hold it inside the block."""
        with self._queues.of(name), self._held(name, blocking=True):
            yield

    @contextlib.contextmanager
    def try_lock(self, name: str) -> Iterator[bool]:
        """Yield True holding the lock, or False if it is held elsewhere."""
        with self._held(name, blocking=False) as held:
            yield held

    def stop(self) -> None:
        """Disconnect; locks that are still held expire in the service."""
        with self._start_guard:
            if self._started:
                self._started = False
                with self._tolerate_failures():
                    self._check_redis()
                    self._backend.stop()

    @contextlib.contextmanager
    def _held(self, name: str, *, blocking: bool) -> Iterator[bool]:
        lock, held = None, True
        if self._clock() >= self._down_until:
            with self._tolerate_failures():
                self._check_redis()
                lock = self._lock(name)
                held = lock.acquire(blocking=blocking)
        try:
            yield held
        finally:
            if lock is not None and lock.acquired:
                with self._tolerate_failures():
                    lock.release()

    def _check_redis(self) -> None:
        """Raise OSError at once when the Redis server is down.

        Its client and tooz both retry, for up to a minute altogether.
        """
        if self._address is not None:
            socket.create_connection(
                self._address, self.CONNECT_TIMEOUT
            ).close()

    def _lock(self, name: str) -> typing.Any:
        with self._start_guard:
            if not self._started:
                self._start()
                self._started = True
        with _get_lock_guard:
            return self._backend.get_lock(lock_name(name).encode())

    def _start(self) -> None:
        from tooz import coordination

        # Only locks with a lease need the thread that renews them.
        leased = (
            coordination.Characteristics.NON_TIMEOUT_BASED
            not in self._backend.CHARACTERISTICS
        )
        self._backend.start(start_heart=leased)

    @contextlib.contextmanager
    def _tolerate_failures(self) -> Iterator[None]:
        """Catch errors of the lock service; work without locks for a while."""
        import tooz

        try:
            yield
        except (tooz.ToozError, OSError) as error:
            self._down_until = self._clock() + self.RETRY_AFTER
            LOG.warning(
                'The lock service failed; continuing without locks '
                'for %d s: %r',
                self.RETRY_AFTER,
                error,
            )


class _LockQueues:
    """Queues the threads of this process that wait for the same lock.

    tooz wakes every waiter when a lock is released, and most of them find
    that another was faster: the last of sixteen waiters waited twice as
    long as in a queue.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: dict[str, FifoLock] = {}
        self._waiting: collections.Counter[str] = collections.Counter()

    @contextlib.contextmanager
    def of(self, name: str) -> Iterator[None]:
        with self._guard:
            lock = self._locks.setdefault(name, FifoLock())
            self._waiting[name] += 1
        try:
            with lock:
                yield
        finally:
            with self._guard:
                self._waiting[name] -= 1
                if not self._waiting[name]:
                    del self._locks[name], self._waiting[name]


class NullCoordinator:
    """Locks without effect, for tests of correctness without locks."""

    @contextlib.contextmanager
    def lock(self, name: str) -> Iterator[None]:
        yield

    @contextlib.contextmanager
    def try_lock(self, name: str) -> Iterator[bool]:
        yield True

    def stop(self) -> None:
        """Do nothing."""


def _load(url: str, member_id: str) -> typing.Any:
    from tooz import coordination

    try:
        return coordination.get_coordinator(url, member_id.encode())
    except (RuntimeError, ImportError) as error:
        raise options.BadConfiguration(
            f'[coordination] backend_url: {error}'
        ) from error


def _redis_address(url: str) -> tuple[str, int] | None:
    """Return host and port of a single Redis server; None for others."""
    parts = urllib.parse.urlsplit(url)
    if (
        parts.scheme != 'redis'
        or not parts.hostname
        or 'sentinel' in urllib.parse.parse_qs(parts.query)
    ):
        return None
    return parts.hostname, parts.port or 6379


def lock_name(name: str) -> str:
    """Return a lock name that every lock service accepts, files included."""
    if _SAFE_NAME.fullmatch(name):
        return PREFIX + name
    digest = hashlib.sha256(name.encode()).hexdigest()[:32]
    return f'{PREFIX}{re.sub(r"[^a-zA-Z0-9]+", "-", name)[:64]}-{digest}'
