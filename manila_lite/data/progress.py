"""How far a copy has come, written to the database now and then."""

from collections.abc import Callable
import time

from manila_lite.db.session import Session
from manila_lite.work.job import JobContext

INTERVAL = 1.0
"""Seconds between two writes."""


class CopyProgress:
    """Follows the copy of one piece of work.

    `record(session, percent)` writes the percentage, once per INTERVAL and
    only while this worker holds the claim. What it raises ends the copy.
    Without it the work would count as stuck, however slowly the percentage
    changes.
    """

    def __init__(
        self,
        job: JobContext,
        total: int,
        record: Callable[[Session, int], object],
        clock: Callable[[], float] = time.monotonic,
    ):
        self._job = job
        self._total = total
        self._record = record
        self._clock = clock
        self._done = 0
        self._recorded_at = clock()

    @property
    def percent(self) -> int:
        """From 0 to 99: only the end of the work makes it 100."""
        if not self._total:
            return 0
        return min(99, 100 * self._done // self._total)

    def add(self, count: int) -> None:
        """Count bytes that are done."""
        self._done += count

    def check(self) -> None:
        """Raise unless this worker may go on; call it often."""
        self._job.require_claim()
        self._job.require_time()
        now = self._clock()
        if now - self._recorded_at >= INTERVAL:
            self._recorded_at = now
            self._job.checkpoint('copying', self._record, self.percent)
