"""How long a worker may act on its claim, and when its process stops.

The database says who holds a claim. A worker that was paused, with its
process or with the whole machine, cannot know whether its lease is over
without asking, so it notes a deadline, by a clock that never stops, and asks
before it acts beyond it.
"""

from collections.abc import Callable
import threading
import time

Clock = Callable[[], float]


def boot_time() -> float:
    """Return seconds since boot, including those of a suspended machine."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Lease:
    """The deadline of one claim, in seconds of `clock`.

    The time of the database write that grants or renews the lease counts
    as used, so the deadline is never later than the one in the database.
    """

    def __init__(self, deadline: float, clock: Clock = boot_time):
        self._deadline = deadline
        self._clock = clock

    def extend(self, deadline: float) -> None:
        """Set a later deadline, after the lease was renewed."""
        self._deadline = max(self._deadline, deadline)

    def lose(self) -> None:
        """End the lease: another worker holds the claim."""
        self._deadline = float('-inf')

    def now(self) -> float:
        """Return the time by the clock of the deadline."""
        return self._clock()

    @property
    def is_valid(self) -> bool:
        return self.now() < self._deadline


class Draining:
    """What the running work of a process is asked to do.

    Once it has begun, work is handed on instead of its next step; once time
    is up, also by a copy that is in progress.
    """

    def __init__(self) -> None:
        self._begun = threading.Event()
        self._time_is_up = threading.Event()

    def begin(self) -> None:
        self._begun.set()

    def end(self) -> None:
        self._begun.set()
        self._time_is_up.set()

    @property
    def has_begun(self) -> bool:
        return self._begun.is_set()

    @property
    def time_is_up(self) -> bool:
        return self._time_is_up.is_set()
