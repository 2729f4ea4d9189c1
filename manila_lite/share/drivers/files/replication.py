"""Replicas on one back end, which copy the active one, and their states."""

import abc
from collections.abc import Callable, Iterator
import contextlib
import errno
import time
from typing import Protocol

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.contract.replication import (
    ACTIVE,
    OUT_OF_SYNC,
    ReplicaList,
    replica_state_reply,
)

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


LOG = log.getLogger(__name__)


class Replication(abc.ABC):
    """Replicas on this back end, which copy the active one."""

    def __init__(
        self,
        peers: Peers,
        role_of: Callable[[base.ShareForDriver], str],
        status_of: Callable[[base.ShareForDriver], base.StatusReply],
    ):
        self._replicas = peers
        self._role_of = role_of
        self._status_of = status_of

    @abc.abstractmethod
    def _update(
        self,
        replica_list: ReplicaList,
        replica: base.ShareForDriver,
        access_rules: base.AccessRules,
        replica_snapshots: list[base.ReplicaSnapshot],
    ) -> str | None:
        """Copy what has changed; no state if another thread is doing so."""

    def update_replica_state(
        self,
        replica_list: ReplicaList,
        replica: base.ShareForDriver,
        access_rules: base.AccessRules,
        replica_snapshots: list[base.ReplicaSnapshot],
    ) -> base.ReplicaStateReply:
        """Copy what has changed, unless another thread is doing so."""
        replica_state = self._update(
            replica_list, replica, access_rules, replica_snapshots
        )
        return replica_state_reply(
            replica_state, self._replicas.own_replica(replica).state().synced_at
        )

    def get_replica_status(self, replica: base.ShareForDriver) -> base.StatusReply:
        """Return the status, as for a share.

        It is an error if the others do not follow the replica even though it
        should be active.
        """
        status = self._status_of(replica)
        if replica['replica_state'] == ACTIVE and self._role_of(replica) != Role.ACTIVE:
            LOG.error('Replica %s is no longer active', replica['name'])
            status['status'] = 'error'
            status['replica_state'] = OUT_OF_SYNC
        return status
