"""Delete rows that have been kept long enough.

One process of the cluster does it at a time, in short transactions with
pauses, so that requests and claims go on. If it dies, another one
continues where it was.
"""

from collections.abc import Callable, Mapping
import dataclasses
import logging
import time

from manila_lite.db.queries.services import services
from manila_lite.db.session import Database, Session

LOG = logging.getLogger(__name__)

LEASE = 60.0
"""Seconds after which another process continues; a batch takes less."""

PAUSE = 0.05
"""Seconds between two batches, in which others write."""

LOOK_INTERVAL = 1.0
"""Seconds between two looks whether another process has finished."""

Deletion = Callable[[Session, int], int]
"""Deletes at most the given number of rows and returns the count."""


@dataclasses.dataclass(eq=False)
class Purge:
    """A purge of the cluster; `deletions` are run to their ends in turn.

    They are named by the tables whose rows they delete.
    """

    db: Database
    name: str
    owner: str
    interval: float
    deletions: Mapping[str, Deletion]
    _: dataclasses.KW_ONLY
    batch: int
    sleep: Callable[[float], None] = time.sleep

    def run_pass(self) -> int:
        """Purge if it is due and no other process does; return the count.

        Otherwise this only reads.
        """
        if not self.db.read(services.is_claimable, self.name) or not self.db.write(
            services.claim, self.name, self.owner, LEASE
        ):
            return 0
        return sum(self._run_claimed().values())

    def run_now(self) -> dict[str, int]:
        """Purge, whether it is due or not; return the count per table.

        Waits until another process that purges has finished, or is dead.
        """
        is_waiting = False
        while not self.db.write(
            services.claim, self.name, self.owner, LEASE, early=True
        ):
            if not is_waiting:
                LOG.warning(
                    'Purge of %s waits for another process that does it', self.name
                )
            is_waiting = True
            self.sleep(LOOK_INTERVAL)
        return self._run_claimed()

    def _run_claimed(self) -> dict[str, int]:
        counts = dict.fromkeys(self.deletions, 0)
        for table, deletion in self.deletions.items():
            while deleted := self._delete(deletion):
                counts[table] += deleted
                if deleted < self.batch:
                    break
                self.sleep(PAUSE)
        self.db.write(services.finish, self.name, self.owner, self.interval)
        if any(counts.values()):
            LOG.info('Purge of %s: %d rows deleted', self.name, sum(counts.values()))
        return counts

    def _delete(self, deletion: Deletion) -> int:
        # Lost rows would be deleted by the next pass.
        return self.db.write(self._delete_batch, deletion, fsync=False)

    def _delete_batch(self, session: Session, deletion: Deletion) -> int:
        if not services.renew(session, self.name, self.owner, LEASE):
            return 0  # another process has taken the task over
        return deletion(session, self.batch)
