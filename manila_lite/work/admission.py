"""Refuses new work while too much of it waits."""

from collections.abc import Callable
import functools
import time
import typing

from manila_lite import exception
from manila_lite.db.session import Database
from manila_lite.work import table


class AdmissionControl:
    """Knows, to the second, whether the queue is full.

    The API accepts faster than workers finish, and an answer of 503 with
    Retry-After is better than a wait without end. A limit of 0 never
    refuses.
    """

    def __init__(
        self,
        db: Database,
        limit: int,
        *,
        every: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._db = db
        self._limit = limit
        self._every = every
        self._clock = clock
        self._looked_at: float | None = None
        self._full = False

    def check(self) -> None:
        """Return when there is room; raises ServiceUnavailable."""
        if not self._limit:
            return
        now = self._clock()
        if self._looked_at is None or now - self._looked_at >= self._every:
            self._looked_at = now
            self._full = self._db.read(table.queue_length) >= self._limit
        if self._full:
            raise exception.ServiceUnavailable(
                f'More than {self._limit} operations wait to be carried '
                'out; try again later.'
            )


def admission_controlled(method: Callable) -> Callable:
    """Have a method of an object with a `brake` refused while it is full."""

    @functools.wraps(method)
    def run(self: typing.Any, *args, **kwargs):
        self.admission.check()
        return method(self, *args, **kwargs)

    return run
