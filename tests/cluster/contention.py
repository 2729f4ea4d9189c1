"""Writes of the same rows through another Galera node.

Each node lets its own writes through at first, and the cluster rejects those
that come second: at once where they wait for a lock, else at the commit.
"""

import contextlib
import threading

import sqlalchemy as sa

from tests.cluster.databases import NAME, Galera
from tests.cluster.nodes import Node
from tests.support.processes import wait_until

CONFLICT_WITHIN = 60.0
PAUSE = 0.003
"""Seconds between two writes: others need a chance."""

# What changes means nothing to the service, see `mend`.
WRITES = (
    'UPDATE quota_usages SET hard_limit = -3 - hard_limit WHERE hard_limit IN (-1, -2)',
    'UPDATE share_instances SET updated_at = TIMESTAMPADD(MICROSECOND, 1, updated_at)',
)
MEND = 'UPDATE quota_usages SET hard_limit = -1 WHERE hard_limit = -2'


class Contention:
    """Writes to one node what services write to another one."""

    def __init__(self, database: Galera):
        self._database = database
        self._writer = database.nodes[0]
        self._other = database.nodes[-1]
        self._before: dict[str, int] = {}
        self._end = threading.Event()
        self._threads: list[threading.Thread] = []

    def begin(self, writer: Node) -> None:
        """Begin, while services write to a node."""
        self._writer = writer
        self._other = next(one for one in self._database.nodes if one is not writer)
        self._before = self._database.conflicts(writer)
        self._end.clear()
        self._threads = [
            threading.Thread(target=self._run, args=(write,), daemon=True)
            for write in WRITES
        ]
        for thread in self._threads:
            thread.start()

    def has_failed_commits(self) -> bool:
        """Whether transactions of services fail at their commit, soon."""
        with contextlib.suppress(AssertionError):
            wait_until(
                lambda: self.conflicts()['cert_failures'],
                'commits fail',
                CONFLICT_WITHIN,
                interval=0.5,
            )
        return self.conflicts()['cert_failures'] > 0

    def conflicts(self) -> dict[str, int]:
        """Return how many transactions of services have failed so far."""
        now = self._database.conflicts(self._writer)
        return {name: now[name] - self._before[name] for name in now}

    def mend(self) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()
        wait_until(lambda: self._write(MEND), 'limits are as before')

    def _run(self, statement: str) -> None:
        while not self._end.wait(PAUSE):
            self._write(statement)

    def _write(self, statement: str) -> bool:
        """Write once; return whether the cluster has let it through."""
        try:
            self._database.ask(self._other, statement, NAME)
        except sa.exc.DBAPIError:
            return False
        return True
