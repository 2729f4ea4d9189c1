"""Limits for sign-ins by password: delays after failures, few hashes at once.

A hash is slow on purpose. Without limits a few strangers with wrong passwords
would occupy all threads and processors of the API.
"""

import collections
from collections.abc import Callable, Iterator
import contextlib
import hashlib
import ipaddress
import logging
import math
import secrets
import threading

from manila_lite import exception

LOG = logging.getLogger(__name__)

_FORGET_AFTER = 900
"""Seconds without a failure after which earlier ones are forgotten."""


class Backoff:
    """A delay per key that doubles with each failure.

    The first `free` failures have no delay, later ones 1, 2, 4 … seconds, up
    to `longest`. Only the `size` keys that failed last are kept.
    """

    def __init__(
        self, free: int, longest: float, clock: Callable[[], float], size: int = 10_000
    ):
        self._free, self._longest, self._size = free, longest, size
        self._clock = clock
        # Per key the number of failures and the time of the last one.
        self._failures: collections.OrderedDict[bytes, tuple[int, float]]
        self._failures = collections.OrderedDict()
        self._lock = threading.Lock()

    def delay(self, key: bytes) -> float:
        """Return the seconds until the next attempt; 0 if it may be now."""
        with self._lock:
            count, failed_at = self._recent(key)
        if count <= self._free:
            return 0.0
        doublings = min(count - self._free - 1, 30)
        delay = min(2.0**doublings, self._longest)
        return max(0.0, failed_at + delay - self._clock())

    def failed(self, key: bytes) -> bool:
        """Record a failure; return whether it is the first with a delay."""
        with self._lock:
            count, _ = self._recent(key)
            self._failures[key] = (count + 1, self._clock())
            self._failures.move_to_end(key)
            if len(self._failures) > self._size:
                self._failures.popitem(last=False)
        return count == self._free

    def forget(self, key: bytes) -> None:
        with self._lock:
            self._failures.pop(key, None)

    def _recent(self, key: bytes) -> tuple[int, float]:
        count, failed_at = self._failures.get(key, (0, 0.0))
        if self._clock() - failed_at >= _FORGET_AFTER:
            return 0, 0.0
        return count, failed_at


class SignInThrottle:
    """Refuses sign-ins that follow many failures.

    Failures count for the name at the address, for the name and for the
    address. A name that has signed in from an address is refused only for
    failures of both together, so failures from elsewhere, or of other names
    behind the same proxy, do not lock a user out.
    """

    def __init__(self, clock: Callable[[], float], size: int = 10_000):
        self._pairs = Backoff(3, 60, clock, size)
        self._names = Backoff(10, 60, clock, size)
        self._addresses = Backoff(20, 4, clock, size)
        # Pairs that have signed in, the last one at the end.
        self._known: collections.OrderedDict[bytes, None]
        self._known = collections.OrderedDict()
        self._size = size
        self._lock = threading.Lock()
        self._key = secrets.token_bytes(16)

    def check(self, name: str, address: str) -> None:
        """Raise TooManySignIns if the caller has to wait."""
        pair = self._digest(name, _network(address))
        delay = self._pairs.delay(pair)
        if pair not in self._known:
            delay = max(
                delay,
                self._names.delay(self._digest(name)),
                self._addresses.delay(self._digest(_network(address))),
            )
        if delay:
            raise exception.TooManySignIns(retry_after=math.ceil(delay))

    def failed(self, name: str, address: str) -> None:
        """Record a wrong name or password."""
        network = _network(address)
        self._pairs.failed(self._digest(name, network))
        self._names.failed(self._digest(name))
        if self._addresses.failed(self._digest(network)):
            LOG.warning('Many sign-ins from %s failed; delaying more', network)

    def succeeded(self, name: str, address: str) -> None:
        """Record a sign-in."""
        pair = self._digest(name, _network(address))
        self._pairs.forget(pair)
        with self._lock:
            self._known[pair] = None
            self._known.move_to_end(pair)
            if len(self._known) > self._size:
                self._known.popitem(last=False)

    def _digest(self, *words: str) -> bytes:
        # Of fixed length, because names are as long as their senders like.
        return hashlib.blake2b(
            '\0'.join(words).encode(), digest_size=16, key=self._key
        ).digest()


def _network(address: str) -> str:
    """Return the network that one caller may have addresses of.

    Of a list, which proxies append to, only the last address can be trusted.
    """
    last = address.rpartition(',')[2].strip()
    try:
        parsed = ipaddress.ip_address(last)
    except ValueError:
        return last
    if parsed.version == 6 and parsed.ipv4_mapped is None:
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return last


class _Places:
    """A number of places, of which one network leaves `kept` to others."""

    def __init__(self, number: int, kept: int):
        self._number = number
        self._most_of_one = max(1, number - kept)
        self._taken: collections.Counter[str] = collections.Counter()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def taken(self, network: str) -> Iterator[None]:
        with self._lock:
            if (
                self._taken.total() >= self._number
                or self._taken[network] >= self._most_of_one
            ):
                raise exception.TooManySignIns
            self._taken[network] += 1
        try:
            yield
        finally:
            with self._lock:
                self._taken -= {network: 1}


class HashSlots:
    """Limits how many hashes are computed at the same time.

    A few more callers wait for a slot, for some time, or for the hash that
    another one computes. All others are refused at once, so that some threads
    of the API remain free for other requests. However many come from one
    network, `kept` places are free for other ones.
    """

    def __init__(
        self,
        running: int = 2,
        waiting: int = 8,
        sharing: int = 5,
        kept: int = 3,
        timeout: float = 2.0,
    ):
        self._places = _Places(running + waiting + sharing, kept)
        self._hashes = _Places(running + waiting, kept)
        self._running = threading.Semaphore(running)
        self._timeout = timeout

    @contextlib.contextmanager
    def place(self, address: str = '') -> Iterator[None]:
        """Wait for a hash that is computed; raises TooManySignIns."""
        with self._places.taken(_network(address)):
            yield

    @contextlib.contextmanager
    def slot(self, address: str = '') -> Iterator[None]:
        """Occupy a slot; raises TooManySignIns if none is free in time."""
        network = _network(address)
        with self._places.taken(network), self._hashes.taken(network):
            if not self._running.acquire(timeout=self._timeout):
                raise exception.TooManySignIns
            try:
                yield
            finally:
                self._running.release()
