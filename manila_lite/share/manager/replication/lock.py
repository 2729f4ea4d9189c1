"""Drivers are asked about the replicas of one share one at a time.

That spares them conflicts. What makes the outcome right is what is
written, and in which round.
"""

from collections.abc import Iterator
import contextlib
import typing

from manila_lite.coordination import Coordinator
from manila_lite.coordination import NullCoordinator

LOCKED_PAUSE = 1.0
"""Seconds before another try at replicas that somebody else works on."""


def replica_lock_name(share_id: str) -> str:
    """What orders all that drivers are asked about replicas of a share."""
    return f'replicas-{share_id}'


@contextlib.contextmanager
def replica_lock(
    locks: Coordinator | NullCoordinator, job: typing.Any, share_id: str
) -> Iterator[bool]:
    """Whether it is our turn; if not, the work is put back for it."""
    with locks.try_lock(replica_lock_name(share_id)) as held:
        if not held:
            job.release(LOCKED_PAUSE)
            job.wake_after = LOCKED_PAUSE
        yield held
