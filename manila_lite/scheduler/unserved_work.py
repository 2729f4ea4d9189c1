"""End the work of back ends that no process serves any more."""

from collections.abc import Callable
import functools
import logging

from manila_lite import exception
from manila_lite.db.queries.admin import queues
from manila_lite.db.session import Database
from manila_lite.db.session import Session
from manila_lite.scheduler.orphan_sweep import SweepActor
from manila_lite.work import cancel
from manila_lite.work.execution import Executor

LOG = logging.getLogger(__name__)

BATCH = 100
"""The number of rows of work that are looked up at a time."""


class UnservedWork:
    """The periodic pass; `owner` is its actor.

    `build_canceller` returns the executor for the failures of a queue.
    """

    def __init__(
        self,
        db: Database,
        owner: str,
        timeout: float,
        build_canceller: Callable[[str], Executor],
    ):
        self.db = db
        self.by = SweepActor(owner)
        self.timeout = timeout
        self._canceller = functools.cache(build_canceller)

    def run_pass(self) -> int:
        """End such work; return the count. Without any, only reads."""
        return sum(
            self._end_queue(host)
            for host in self.db.read(queues.list_unserved, self.timeout)
        )

    def _end_queue(self, host: str) -> int:
        count = 0
        while True:
            batch = self.db.read(cancel.list_of_queue, host, BATCH)
            ended = sum(self._end(host, work_id) for work_id in batch)
            count += ended
            if not ended:
                break
        if count:
            LOG.warning(
                'Work of %s has failed because no process has served it for '
                '%g s: %d rows',
                host,
                self.timeout,
                count,
            )
        return count

    def _end(self, host: str, work_id: str) -> bool:
        try:
            return self.db.write(self._cancel, host, work_id, by=self.by)
        except (cancel.WorkNotFound, cancel.WorkIsRunning):
            return False
        except cancel.UnknownWork as error:
            LOG.info('%s', error)
            return False

    def _cancel(self, session: Session, host: str, work_id: str) -> bool:
        if not queues.lock_unserved(session, host, self.timeout):
            return False
        cancel.cancel(
            session,
            self._canceller(host),
            work_id,
            exception.BackendUnserved(host=host, seconds=self.timeout),
        )
        return True
