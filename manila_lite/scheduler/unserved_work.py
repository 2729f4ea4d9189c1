"""End the work of back ends that no process serves any more."""

from collections.abc import Callable
import contextlib
import logging

from manila_lite import exception
from manila_lite.db.queries.admin import queues
from manila_lite.db.session import Database
from manila_lite.db.session import Session
from manila_lite.scheduler.orphan_sweep import SweepActor
from manila_lite.work import cancel
from manila_lite.work.execution import Executor

LOG = logging.getLogger(__name__)


class _BackendIsServed(Exception):
    """A process of the back end has returned."""


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
        return sum(
            self._end_queue(host)
            for host in self.db.read(queues.list_unserved, self.timeout)
        )

    def _end_queue(self, host: str) -> int:
        executor, count = self._build_canceller(host), 0
        with contextlib.suppress(_BackendIsServed):
            for work_id in cancel.iterate_queue(self.db, host):
                count += self._end(executor, host, work_id)
        if count:
            LOG.warning(
                'Work of %s has failed because no process has served it for '
                '%g s: %d rows',
                host,
                self.timeout,
                count,
            )
        return count

    def _end(self, executor: Executor, host: str, work_id: str) -> bool:
        try:
            self.db.write(self._cancel, executor, host, work_id, by=self.by)
        except (
            cancel.WorkNotFound,
            cancel.WorkIsRunning,
            cancel.WorkIsBlocked,
        ):
            return False
        except cancel.WorkNotCancellable as error:
            LOG.info('%s', error)
            return False
        return True

    def _cancel(
        self, session: Session, executor: Executor, host: str, work_id: str
    ) -> None:
        if not queues.lock_unserved(session, host, self.timeout):
            raise _BackendIsServed
        cancel.cancel(
            session,
            executor,
            work_id,
            exception.BackendUnserved(host=host, seconds=self.timeout),
        )
