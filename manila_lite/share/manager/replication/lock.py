"""The lock that serializes driver calls about the replicas of a share.

It spares drivers conflicts. Correctness does not depend on it, but on the
guards and the generation with which outcomes are written.
"""

from collections.abc import Iterator
import contextlib

from manila_lite.coordination import Coordinator
from manila_lite.coordination import NullCoordinator
from manila_lite.work.runner import JobContext

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
