"""Replicas of a share: what is recorded of each, where they are, which is active.

Roles are recorded at the replicas themselves. Of those that claim to be active,
the one with the highest generation is.
"""

import abc
from collections.abc import Iterator
import contextlib
import dataclasses
import errno
import time
from typing import Generic, Self, TypeVar

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.contract.replication import (
    ACTIVE,
    ReplicaList,
    find_active,
)

LOG = log.getLogger(__name__)

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


@contextlib.contextmanager
def reaching(name: str) -> Iterator[None]:
    """Turn errors of another back end into ReplicaUnreachable."""
    try:
        yield
    except (exception.StaleFencingToken, ReplicaUnreachable):
        raise
    except (OSError, exception.DriverError) as error:
        raise ReplicaUnreachable(msg=f'{name}: {error}') from error


@contextlib.contextmanager
def ignoring_failures(name: str, action: str) -> Iterator[None]:
    """Log that a replica cannot do something: it is repaired later."""
    try:
        yield
    except exception.StaleFencingToken:
        raise
    except (OSError, exception.DriverError) as error:
        LOG.warning(
            'Replica %(name)s cannot %(action)s: %(error)s',
            {'name': name, 'action': action, 'error': error},
        )


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


@dataclasses.dataclass(frozen=True)
class ReplicaState(abc.ABC):
    """What is recorded of every replica.

    A passive replica has the content of `source` as of `synced_at`. The source of a
    retiring one is its successor.
    """

    role: str = Role.ACTIVE
    generation: int = 0
    source: str | None = None
    source_host: str | None = None
    synced_at: float | None = None

    @property
    @abc.abstractmethod
    def has_content(self) -> bool:
        """Whether it has ever been a complete copy."""


class Replica(abc.ABC):
    """One replica, addressed by the name of its share instance."""

    name: str
    host: str | None

    @abc.abstractmethod
    def find(self) -> object | None:
        """Return what is recorded of the share, or None if it does not exist."""

    @abc.abstractmethod
    def state(self) -> ReplicaState: ...

    @abc.abstractmethod
    def has_snapshot(self, name: str) -> bool:
        """Return whether its back end has a snapshot."""

    @abc.abstractmethod
    def become_passive(self, leader: Self, replication_type: str | None) -> None:
        """Become an outdated follower of another replica, unless it is already.

        Clients lose write access, and all access without READABLE.
        """

    @contextlib.contextmanager
    def copying(self) -> Iterator[bool]:
        """Lock the content without waiting; yield False if another call copies it."""
        yield True


def require_leading(name: str, leader: ReplicaState, own: ReplicaState) -> None:
    """Raise ReplicaUnreachable if the leader is not active."""
    if leader.role == Role.PASSIVE or leader.generation < own.generation:
        # A promotion was interrupted and will be repeated.
        raise ReplicaUnreachable(msg=f'{name} is not active')


R = TypeVar('R', bound=Replica)


class Peers(abc.ABC, Generic[R]):
    """The back ends that have replicas of a share."""

    @abc.abstractmethod
    def own_replica(self, share: base.ShareForDriver) -> R: ...

    @abc.abstractmethod
    def _address(self, host: str, name: str) -> R | None:
        """Return a replica whether or not it exists; None without its back end."""

    def replica_at(self, host: str | None, name: str | None) -> R | None:
        """Return a replica that exists within reach, or None.

        What is on a disk that cannot be read is out of reach.
        """
        replica = self._address(host, name) if host and name else None
        if replica is None:
            return None
        with ignoring_failures(replica.name, 'be reached'):
            if replica.find() is not None:
                replica.state()
                return replica
        return None

    def reachable(self, shares: ReplicaList) -> list[R]:
        found = (self.replica_at(one['host'], one['name']) for one in shares)
        return [replica for replica in found if replica is not None]

    def reachable_active(self, replica_list: ReplicaList) -> R | None:
        """Return the active replica, or None if it is out of reach."""
        leader = find_active(replica_list)
        return self.replica_at(leader['host'], leader['name']) if leader else None


class Roles(Generic[R]):
    """The roles of our replicas, which both sides have to agree on."""

    def __init__(self, peers: Peers[R]):
        self._replicas = peers

    def role_of(self, share: base.ShareForDriver) -> str:
        """Return the effective role: both sides have to agree on it."""
        if share['replica_state'] not in (None, ACTIVE):
            return Role.PASSIVE
        own = self._replicas.own_replica(share)
        state = own.state()
        if state.role != Role.RETIRING:
            return state.role
        with own.copying() as is_free, contextlib.suppress(ReplicaUnreachable):
            if not is_free or own.state() != state:
                return Role.PASSIVE  # the promotion is in progress
            successor = self._replicas.replica_at(state.source_host, state.source)
            if successor is not None and self._resumes(own, successor):
                return Role.ACTIVE
        return Role.PASSIVE

    def _resumes(self, own: R, successor: R) -> bool:
        """Return whether a retiring replica remains active after all."""
        return not is_superseded(own.state(), successor.state())

    def denies_all(self, share: base.ShareForDriver) -> bool:
        """Return whether no clients are admitted, whatever the rules say."""
        return share['replication_type'] == DR and self.role_of(share) != Role.ACTIVE

    def is_read_only(self, share: base.ShareForDriver) -> bool:
        """Return whether clients may only read, whatever the rules say."""
        return self.role_of(share) != Role.ACTIVE


def is_superseded(old: ReplicaState, new: ReplicaState) -> bool:
    """Return whether another replica was promoted while this one was out of reach."""
    return (
        old.role != Role.PASSIVE
        and new.role == Role.ACTIVE
        and new.generation > old.generation
    )


def warn_of_successor(old: Replica, new: Replica) -> None:
    LOG.warning(
        'Replica %(name)s is no longer active: %(other)s has taken over',
        {'name': old.name, 'other': new.name},
    )
