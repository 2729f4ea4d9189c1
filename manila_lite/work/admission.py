"""Admission control: refuse new work for queues that are full."""

from collections.abc import Callable
import functools
import typing

from manila_lite import exception
from manila_lite.db.queries.work import queues
from manila_lite.db.session import Database
from manila_lite.host import Host

COST_FACTOR = 20
"""A check is repeated after this many times its own duration."""


class _CachedResult(typing.NamedTuple):
    """Whether a queue was full when it was read, and how long that counts."""

    is_full: bool
    read_at: float
    valid_until: float


class AdmissionControl:
    """Checks whether a queue is full, at most once per `interval` seconds.

    The API accepts requests faster than workers finish them, and a 503
    with Retry-After is better than an endless wait. A full queue refuses
    only the requests that would wait in it: those of one back end or, for
    placements, those of the scheduler and of all back ends that could get
    the share. Back ends without a living process do not count. A limit of
    0 disables the check.
    """

    def __init__(
        self,
        db: Database,
        limit: int,
        *,
        placement_queue: str,
        down_time: float,
        interval: float = 1.0,
        clock: Callable[[], float] | None = None,
    ):
        self._db = db
        self._limit = limit
        self._placement_queue = placement_queue
        self._down_time = down_time
        self._interval = interval
        self._clock = clock or db.clock
        self._cached: dict[str, _CachedResult] = {}

    def check_backend(self, host: str | None) -> None:
        """Raise ServiceUnavailable while the queue of a host is full."""
        if host is not None:
            self._check(Host.parse(host).service_host, queues.is_backend_full)

    def check_placement(self) -> None:
        """Raise ServiceUnavailable while no queue can take a new share."""
        self._check(self._placement_queue, queues.is_placement_closed)

    def _check(self, queue: str, is_full: Callable[..., bool]) -> None:
        if not self._limit:
            return
        now = self._clock()
        cached = self._cached.get(queue)
        # The clock may have been set back.
        if cached is None or not cached.read_at <= now < cached.valid_until:
            cached = self._read(queue, is_full, now)
        if cached.is_full:
            raise exception.ServiceUnavailable(
                f'More than {self._limit} operations are queued; try again later.'
            )

    def _read(
        self, queue: str, is_full: Callable[..., bool], now: float
    ) -> _CachedResult:
        if queue in self._cached:  # other threads use it during the read
            self._cached[queue] = self._cached[queue]._replace(
                read_at=now, valid_until=now + self._interval
            )
        found = self._db.read(is_full, queue, self._limit, self._down_time)
        # Reading many full queues takes long, so it is done less often.
        taken = max(0.0, self._clock() - now)
        cached = self._cached[queue] = _CachedResult(
            found, now, now + max(self._interval, COST_FACTOR * taken)
        )
        return cached


def admission_controlled(method: Callable) -> Callable:
    """Check the queue of the host of the target before a method runs.

    The method takes a context and its target, and its object has an
    `admission`.
    """

    @functools.wraps(method)
    def run(
        self: typing.Any,
        ctx: typing.Any,
        target: typing.Any,
        /,  # a method may have an argument of the same name
        *args: typing.Any,
        **kwargs: typing.Any,
    ) -> typing.Any:
        self.admission.check_backend(target.host)
        return method(self, ctx, target, *args, **kwargs)

    return run


def placement_controlled(method: Callable) -> Callable:
    """Check the queues that a new share may wait in before a method runs."""

    @functools.wraps(method)
    def run(self: typing.Any, *args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        self.admission.check_placement()
        return method(self, *args, **kwargs)

    return run
