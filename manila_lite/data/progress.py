"""The progress of a copy: for the database, and for a later attempt."""

from collections.abc import Callable, Collection, Iterator
import contextlib
import logging
import typing

from manila_lite import exception
from manila_lite.data.gate import Copying
from manila_lite.db import errors
from manila_lite.db.session import Session
from manila_lite.work import table
from manila_lite.work.job import JobContext

LOG = logging.getLogger(__name__)

INTERVAL = 1.0
"""Seconds between two writes."""

PAUSE = 5.0
"""Seconds after which work that waits for an earlier worker tries again."""


class CopyProgress:
    """Follows the copy of one piece of work.

    `record(session, percent)` writes the percentage, once per INTERVAL and
    only while this worker holds the claim. What it raises ends the copy.
    Without it the work would count as stuck, however slowly the percentage
    changes.
    """

    def __init__(
        self, job: JobContext, total: int, record: Callable[[Session, int], object]
    ):
        self._job, self._total, self._record = job, total, record
        self._done = 0
        self._recorded_at = job.lease.now()

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
        self.require_claim()
        self._job.require_time()
        now = self._job.lease.now()
        if now - self._recorded_at >= INTERVAL:
            self._recorded_at = now
            self._write()

    def require_claim(self) -> None:
        """Raise ClaimLost unless this worker may change something."""
        self._job.require_claim()

    def _write(self) -> None:
        try:
            self._job.checkpoint('copying', self._record, self.percent)
        except errors.UNAVAILABLE as error:
            # Until the lease expires, the copy may go on unrecorded.
            LOG.warning('The progress of a copy is not recorded: %s', error)


class Position:
    """Counts steps, whose order is the same in every attempt.

    `done` of them, the first, are done; those of earlier attempts are left
    out.
    """

    def __init__(self, done: int = 0):
        self.done = done
        self._passed = 0

    def skip(self, count: int) -> int:
        """Return how many of the next steps earlier attempts have done."""
        found = min(count, self.done - self._passed)
        self._passed += found
        return found

    def end(self) -> None:
        """Note that one more step is done."""
        self.done += 1
        self._passed += 1


def copying_of(
    job: JobContext,
    total: int,
    record: Callable[[Session, int], object],
    callable_here: Callable[[CopyProgress], typing.Any],
    ignored: Collection[str],
) -> Copying:
    """Return how the copy of one piece of work reports to it.

    `callable_here` makes an object whose methods a copy may call.
    """
    progress = callable_here(CopyProgress(job, total, record))

    def require_claim() -> None:
        if not job.lease.is_valid:  # else that is all there is to it
            progress.require_claim()

    return Copying(
        progress.add,
        progress.check,
        require_claim,
        job.claim.fence,
        ignored,
        job.db.on_step,
    )


@contextlib.contextmanager
def waiting_for_earlier(job: JobContext) -> Iterator[None]:
    """Put the work off while a worker that lost it is in a step."""
    try:
        yield
    except exception.EarlierCopyRuns as error:
        LOG.warning('Work %s waits: %s', job.claim.id, error)
        job.hand_over(table.release_waiting, job.claim, PAUSE, str(error))
