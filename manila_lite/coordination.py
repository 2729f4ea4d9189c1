"""Locks between workers, threads and hosts, named by what they protect.

A lock saves work: two workers do not do the same thing at the same time.
It never ensures correctness, because no network lock fences: after its
lease is lost, the old holder still believes that it holds the lock.
Guards in the database ensure correctness. So when the lock service does not
answer, or a holder does not release a lock in time, a warning is logged and
work continues without the lock. No wait is endless, and the threads that wait,
or work without a lock, are limited: a stopped holder, which may have locked
rows of the database too, leaves some for other requests.

A lock file is removed by the last that held it.

Locks are not re-entrant.
"""

import collections
from collections.abc import Callable, Iterator
from concurrent import futures
import contextlib
import functools
import hashlib
import itertools
import logging
import os
import pathlib
import re
import socket
import threading
import time
import typing
import urllib.parse

from oslo_config import cfg

from manila_lite import conf as options, exception
from manila_lite.db.write_limit import FifoLock

LOG = logging.getLogger(__name__)

T = typing.TypeVar('T')

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

    MAX_WAITING = 15
    """Threads that wait for locks, or have given up to; the API has 20.

    A burst of 16 requests about one share still needs no retries.
    """

    MAX_OVERFLOW = 2
    """Further threads that work without locks at once."""

    OVERFLOW_WAIT = 1.0
    """Seconds to wait to be one of them."""

    MAX_REMOVED = 1000
    """Abandoned lock files that a process removes when it starts."""

    CONNECT_TIMEOUT = 1.0
    """Seconds a Redis server may take to accept a connection."""

    ANSWER_TIMEOUT = 3.0
    """Seconds a lock service may take to answer."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        member_id: str,
        *,
        clock: Callable[[], float] = time.monotonic,
    ):
        url = conf.coordination.backend_url
        self._address = _redis_address(url)
        self._lock_timeout = conf.coordination.lock_timeout
        # Files need no server that may fail to answer.
        self._is_remote = not url.startswith('file:')
        self._clock = clock
        self._queues = _LockQueues()
        self._slots = threading.Semaphore(self.MAX_WAITING)
        self._overflow = threading.Semaphore(self.MAX_OVERFLOW)
        self._stuck = _StuckLocks(clock, self.RETRY_AFTER)
        self._start_guard = threading.Lock()
        self._started = False
        self._down_until = float('-inf')
        # Not deferred to the first lock: tooz imports eventlet, and the
        # thread that imports it first can never be joined.
        self._backend = _load(url, member_id)

    @contextlib.contextmanager
    def lock(self, name: str, *, can_refuse: bool = False) -> Iterator[None]:
        """Wait for the lock and hold it inside the block.

        After `[coordination] lock_timeout` the block runs without it, and
        at once while too many threads wait or if the holder was stuck
        before. With `can_refuse`, raises ResourceBusy while too many run
        without.
        """
        began = self._clock()
        with contextlib.ExitStack() as held:
            if self._slots.acquire(blocking=False):
                is_held = self._wait(held, name)
            else:
                self._join_overflow(held, can_refuse)
                is_held = self._enter(held, name, 0.0)
            if not is_held:
                LOG.warning(
                    'Continuing without the lock %s, which was not released '
                    'within %.1f s',
                    name,
                    self._clock() - began,
                )
            yield

    def _wait(self, held: contextlib.ExitStack, name: str) -> bool:
        """Wait for the lock, in a slot that is kept without it."""
        slot = held.enter_context(contextlib.ExitStack())
        slot.callback(self._slots.release)
        was_stuck = self._stuck.has(name)
        is_held = self._enter(held, name, 0.0 if was_stuck else self._lock_timeout)
        if is_held:
            slot.close()
            self._stuck.remove(name)
        elif not was_stuck:
            self._stuck.add(name)
        return is_held

    def _join_overflow(self, held: contextlib.ExitStack, can_refuse: bool) -> None:
        if self._overflow.acquire(timeout=self.OVERFLOW_WAIT):
            held.callback(self._overflow.release)
        elif can_refuse:
            raise exception.ResourceBusy()

    def _enter(self, held: contextlib.ExitStack, name: str, timeout: float) -> bool:
        """Hold the lock in the stack; return False if it is not free."""
        until = self._clock() + timeout
        return held.enter_context(
            self._queues.of(name, timeout)
        ) and held.enter_context(self._held(name, wait=until - self._clock()))

    @contextlib.contextmanager
    def try_lock(self, name: str) -> Iterator[bool]:
        """Yield True holding the lock, or False if it is held elsewhere."""
        with self._held(name, wait=0.0) as held:
            yield held

    def stop(self) -> None:
        """Disconnect; locks that are still held expire in the service."""
        with self._tolerate_failures():
            self._call(self._stop)

    def _stop(self) -> None:
        with self._start_guard:
            if self._started:
                self._started = False
                self._check_redis()
                self._backend.stop()

    @contextlib.contextmanager
    def _held(self, name: str, *, wait: float) -> Iterator[bool]:
        """Yield whether work may go on as if it held the lock."""
        lock, held = None, True
        if self._clock() >= self._down_until:
            with self._tolerate_failures():
                lock = self._call(
                    functools.partial(self._acquire, name, wait),
                    wait=wait,
                    undo=self._release,
                )
                held = lock is not None
        try:
            yield held
        finally:
            if lock is not None:
                with self._tolerate_failures():
                    self._call(functools.partial(self._release, lock))

    def _acquire(self, name: str, wait: float) -> typing.Any:
        """Return the acquired lock; None if it was not free in time."""
        import tenacity

        self._check_redis()
        lock = self._lock(name)
        until = time.monotonic() + wait
        try:
            while lock.acquire(blocking=wait if wait > 0 else False):
                if self._is_remote or _is_current(lock):
                    return lock
                lock.release()
                wait = until - time.monotonic()
        except tenacity.RetryError:  # of etcd
            pass
        return None

    def _release(self, lock: typing.Any) -> None:
        if lock is None:
            return
        if not self._is_remote:
            # While it is held: only the holder removes the file, and those
            # that wait for it notice that it is not current.
            pathlib.Path(lock.name).unlink(missing_ok=True)
        lock.release()

    def _call(
        self,
        function: Callable[[], T],
        *,
        wait: float = 0.0,
        undo: Callable[[T], object] = lambda result: None,
    ) -> T:
        """Call the lock service; raise TimeoutError if it does not answer.

        An answer that comes too late is undone.
        """
        if not self._is_remote:
            return function()
        return _LateCall(function, undo).result(max(0.0, wait) + self.ANSWER_TIMEOUT)

    def _check_redis(self) -> None:
        """Raise OSError at once when the Redis server is down.

        Its client and tooz both retry, for up to a minute altogether.
        """
        if self._address is not None:
            socket.create_connection(self._address, self.CONNECT_TIMEOUT).close()

    def _lock(self, name: str) -> typing.Any:
        with self._start_guard:
            if not self._started:
                self._start()
                self._started = True
        return self._get_lock(lock_name(name))

    def _get_lock(self, file_name: str) -> typing.Any:
        with _get_lock_guard:
            return self._backend.get_lock(file_name.encode())

    def _start(self) -> None:
        from tooz import coordination

        # Only locks with a lease need the thread that renews them.
        leased = (
            coordination.Characteristics.NON_TIMEOUT_BASED
            not in self._backend.CHARACTERISTICS
        )
        self._backend.start(start_heart=leased)
        if not self._is_remote:
            self._remove_abandoned_files()

    def _remove_abandoned_files(self) -> None:
        """Remove the lock files that killed processes have left.

        Earlier releases never removed them.
        """
        folder = pathlib.Path(self._get_lock(PREFIX).name).parent
        found = itertools.islice(folder.glob(f'{PREFIX}*'), self.MAX_REMOVED)
        for file in list(found):
            lock = self._get_lock(file.name)
            with contextlib.suppress(OSError):  # of another user
                if lock.acquire(blocking=False):
                    if _is_current(lock):
                        self._release(lock)
                    else:
                        lock.release()

    @contextlib.contextmanager
    def _tolerate_failures(self) -> Iterator[None]:
        """Catch errors of the lock service; work without locks for a while."""
        import tooz

        try:
            yield
        except (tooz.ToozError, OSError) as error:
            self._down_until = self._clock() + self.RETRY_AFTER
            LOG.warning(
                'The lock service failed; continuing without locks for %d s: %r',
                self.RETRY_AFTER,
                error,
            )


class _LateCall(typing.Generic[T]):
    """A call in a thread of its own, which may take too long."""

    def __init__(self, function: Callable[[], T], undo: Callable[[T], object]):
        self._function = function
        self._undo = undo
        self._future: futures.Future[T] = futures.Future()
        self._guard = threading.Lock()
        self._is_awaited = True
        threading.Thread(target=self._run, name='locks', daemon=True).start()

    def _run(self) -> None:
        try:
            result = self._function()
        except Exception as error:  # noqa: BLE001 raised to the caller
            self._future.set_exception(error)
            return
        with self._guard:
            if self._is_awaited:
                self._future.set_result(result)
                return
        self._undo(result)

    def result(self, timeout: float) -> T:
        """Return or raise what the call did, or TimeoutError."""
        futures.wait([self._future], timeout)
        with self._guard:
            if not self._future.done():
                self._is_awaited = False
                raise TimeoutError(f'no answer in {timeout:.0f} s')
        return self._future.result()


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
    def of(self, name: str, timeout: float) -> Iterator[bool]:
        """Wait for the threads before us; yield False if it took too long."""
        with self._guard:
            lock = self._locks.setdefault(name, FifoLock())
            self._waiting[name] += 1
        is_first = lock.acquire(timeout)
        try:
            yield is_first
        finally:
            if is_first:
                lock.release()
            with self._guard:
                self._waiting[name] -= 1
                if not self._waiting[name]:
                    del self._locks[name], self._waiting[name]


class _StuckLocks:
    """Locks that were not released in time; not waited for again for now."""

    def __init__(self, clock: Callable[[], float], seconds: float):
        self._clock, self._seconds = clock, seconds
        self._until: dict[str, float] = {}

    def has(self, name: str) -> bool:
        return self._until.get(name, float('-inf')) > self._clock()

    def add(self, name: str) -> None:
        now = self._clock()
        self._until = {
            other: until for other, until in list(self._until.items()) if until > now
        } | {name: now + self._seconds}

    def remove(self, name: str) -> None:
        self._until.pop(name, None)


class NullCoordinator:
    """Locks without effect, for tests of correctness without locks."""

    @contextlib.contextmanager
    def lock(self, name: str, *, can_refuse: bool = False) -> Iterator[None]:
        yield

    @contextlib.contextmanager
    def try_lock(self, name: str) -> Iterator[bool]:
        yield True

    def stop(self) -> None:
        """Do nothing."""


def _is_current(lock: typing.Any) -> bool:
    """Return whether the locked file still has its name.

    Its previous holder may have removed it after we opened it. tooz does not
    show the open file of a lock.
    """
    file = lock._lock.lockfile  # noqa: SLF001
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file.fileno()), os.stat(lock.name))
    return False


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
