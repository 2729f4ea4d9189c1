"""End the work of back ends and queues that no process serves."""

from collections.abc import Callable
import contextlib
import logging

from manila_lite import exception
from manila_lite.db.queries.work import queues
from manila_lite.db.session import Database, Session
from manila_lite.rpc import data
from manila_lite.scheduler.orphan_sweep import SweepActor
from manila_lite.work import cancel
from manila_lite.work.execution import Executor

LOG = logging.getLogger(__name__)


class _IsServed(Exception):
    """A process that takes the work has returned."""


class UnservedWork:
    """The periodic pass; `owner` is its actor.

    `build_canceller` builds the executor for the failures of a queue; it
    is called outside of transactions.
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
        self._build_canceller = build_canceller

    def run_pass(self) -> int:
        """End such work; return the count. Without any, only reads."""
        unserved = list(self.db.read(queues.list_unserved, self.timeout))
        if self.db.read(self._is_data_unserved):
            unserved.append(data.TOPIC)
        return sum(self._end_queue(queue) for queue in unserved)

    def _is_data_unserved(self, session: Session) -> bool:
        return queues.is_unserved(session, data.TOPIC, data.BINARY, self.timeout)

    def _end_queue(self, queue: str) -> int:
        executor, count = self._build_canceller(queue), 0
        with contextlib.suppress(_IsServed):
            for work_id in cancel.iterate_queue(self.db, queue):
                count += self._end(executor, queue, work_id)
        if count:
            LOG.warning(
                'Work of %s has failed because no process has served it for '
                '%g s: %d rows',
                queue,
                self.timeout,
                count,
            )
        return count

    def _end(self, executor: Executor, queue: str, work_id: str) -> bool:
        try:
            self.db.write(self._cancel, executor, queue, work_id, by=self.by)
        except (cancel.WorkNotFound, cancel.WorkIsRunning, cancel.WorkIsBlocked):
            return False
        except cancel.WorkNotCancellable as error:
            LOG.info('%s', error)
            return False
        return True

    def _cancel(
        self, session: Session, executor: Executor, queue: str, work_id: str
    ) -> None:
        if queue == data.TOPIC:
            # Any new process may take the work; no row could be locked.
            is_unserved = self._is_data_unserved(session)
        else:
            is_unserved = queues.lock_unserved(session, queue, self.timeout)
        if not is_unserved:
            raise _IsServed
        cancel.cancel(
            session,
            executor,
            work_id,
            exception.BackendUnserved(host=queue, seconds=self.timeout),
        )
