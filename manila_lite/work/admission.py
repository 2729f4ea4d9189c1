"""Admission control: refuse new work while the queue is full."""

from collections.abc import Callable
import functools
import time
import typing

from manila_lite import exception
from manila_lite.db.session import Database
from manila_lite.work import table


class AdmissionControl:
    """Checks the length of the queue, at most once per `interval` seconds.

    The API accepts requests faster than workers finish them, and a 503
    with Retry-After is better than an endless wait. A limit of 0 disables
    the check.
    """

    def __init__(
        self,
        db: Database,
        limit: int,
        *,
        interval: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._db = db
        self._limit = limit
        self._interval = interval
        self._clock = clock
        self._checked_at: float | None = None
        self._full = False

    def check(self) -> None:
        """Raise ServiceUnavailable while the queue is full."""
        if not self._limit:
            return
        now = self._clock()
        if (
            self._checked_at is None
            or now - self._checked_at >= self._interval
        ):
            self._checked_at = now
            self._full = self._db.read(table.queue_length) >= self._limit
        if self._full:
            raise exception.ServiceUnavailable(
                f'More than {self._limit} operations are queued; '
                'try again later.'
            )


def admission_controlled(method: Callable) -> Callable:
    """Make a method of an object check its `admission` before it runs."""

    @functools.wraps(method)
    def run(
        self: typing.Any, *args: typing.Any, **kwargs: typing.Any
    ) -> typing.Any:
        self.admission.check()
        return method(self, *args, **kwargs)

    return run
