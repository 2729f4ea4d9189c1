"""The lock that serializes driver calls about the replicas of a share.

It spares drivers conflicts. Correctness does not depend on it, but on the
guards and the generation with which outcomes are written.
"""

from collections.abc import Iterable, Iterator
import contextlib
import types

from manila_lite.coordination import Coordinator, NullCoordinator
from manila_lite.work.job import JobContext

LOCKED_PAUSE = 1.0
"""Seconds until a retry when another worker holds the lock."""


def replica_lock_name(share_id: str) -> str:
    """Return the name of the lock for the replicas of a share."""
    return f'replicas-{share_id}'


@contextlib.contextmanager
def replica_lock(
    locks: Coordinator | NullCoordinator, job: JobContext, share_id: str
) -> Iterator[bool]:
    """Try the lock and yield whether it is held; else release the work."""
    with locks.try_lock(replica_lock_name(share_id)) as held:
        if not held:
            job.release(LOCKED_PAUSE)
            job.wake_after = LOCKED_PAUSE
        yield held


class ReplicaLocks:
    """Holds the locks of several shares, as far as they are free."""

    def __init__(self, locks: Coordinator | NullCoordinator, share_ids: Iterable[str]):
        self._locks = locks
        self._wanted = sorted(set(share_ids))
        self._held: dict[str, contextlib.ExitStack] = {}
        self._all = contextlib.ExitStack()
        self.are_released = False

    def __enter__(self) -> 'ReplicaLocks':
        with self._all:
            for share_id in self._wanted:
                own = self._all.enter_context(contextlib.ExitStack())
                if own.enter_context(self._locks.try_lock(replica_lock_name(share_id))):
                    self._held[share_id] = own
            self._all = self._all.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self._all.__exit__(kind, error, trace)

    def has(self, share_id: str) -> bool:
        return share_id in self._held

    def release_others(self, kept: str) -> None:
        """Release all locks but one, as its driver call takes long."""
        for share_id, own in self._held.items():
            if share_id != kept:
                own.close()
        self.are_released = True
