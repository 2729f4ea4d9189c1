"""How long a worker may act on its claim, by a clock that never stops.

The database says who holds a claim. A worker that was paused, with its
process or with the whole machine, cannot know whether its lease is over
without asking, so it notes a deadline and asks before it acts beyond it.
"""

from collections.abc import Callable
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
