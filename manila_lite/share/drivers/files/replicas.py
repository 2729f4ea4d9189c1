"""Replicas of shares, whatever file system keeps them."""

from collections.abc import Iterator
import contextlib
import errno
import time
from typing import Protocol

from manila_lite import exception
from manila_lite.share.drivers import base

READABLE, DR = 'readable', 'dr'


class Role:
    """The role recorded for a replica.

    A retiring replica was active and can no longer be written to. Only its
    successor knows whether the promotion was completed.
    """

    ACTIVE = 'active'
    RETIRING = 'retiring'
    PASSIVE = 'passive'


class ReplicaUnreachable(exception.ShareBackendException):
    """The other replica is missing, or does not have the expected role."""


class ReplicaState(Protocol):
    @property
    def synced_at(self) -> float | None: ...


class Replica(Protocol):
    def state(self) -> ReplicaState: ...


class Peers(Protocol):
    def own_replica(self, share: base.ShareForDriver) -> Replica: ...


@contextlib.contextmanager
def ignoring_read_only() -> Iterator[None]:
    """Ignore errors of a read-only file system."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EROFS:
            raise


def format_time(at: float | None) -> str:
    """Return a time of synchronisation as logs show it."""
    if at is None:
        return 'an unknown time'
    return time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(at))
