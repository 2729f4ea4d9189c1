"""Promotion of replicas: the active role moves from one to another.

Roles are recorded at the replicas themselves. Of those that claim to be active,
the one with the highest generation is.
"""

import abc
from collections.abc import Callable, Iterable, Sequence
import contextlib
import dataclasses
import pathlib
from typing import Generic, Protocol, TypeVar

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.contract.replication import (
    ACTIVE,
    OUT_OF_SYNC,
    ReplicaList,
    find_active,
)
from manila_lite.share.drivers.files.replication import (
    ReplicaUnreachable,
    Role,
    format_time,
)

LOG = log.getLogger(__name__)


class State(Protocol):
    """What is recorded of a replica."""

    @property
    def role(self) -> str: ...

    @property
    def generation(self) -> int: ...

    @property
    def source(self) -> str | None: ...

    @property
    def synced_at(self) -> float | None: ...

    @property
    def has_content(self) -> bool:
        """Whether it has ever been a complete copy."""
        ...


class Replica(Protocol):
    name: str

    def find(self) -> object | None: ...

    def state(self) -> State: ...


R = TypeVar('R', bound=Replica)


class Peers(Protocol[R]):
    """The back ends that have replicas of a share."""

    def own_replica(self, share: base.ShareForDriver) -> R: ...

    def reachable(self, shares: ReplicaList) -> list[R]: ...

    def reachable_active(self, replica_list: ReplicaList) -> R | None: ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class Takeover(Generic[R]):
    """A replica that is to be active, and the others within reach.

    `active` is the one of them that was active, or None. While they are locked,
    a back end may have a directory to `work` in.
    """

    own: R
    active: R | None
    others: list[R]
    replica_list: ReplicaList
    replication_type: str | None
    work: pathlib.Path | None = None


class Promotion(abc.ABC, Generic[R]):
    """It moves the active role from one replica to another."""

    def __init__(
        self,
        peers: Peers[R],
        clock: Callable[[], float],
        sleep: Callable[[float], object],
    ):
        self._replicas = peers
        self._clock = clock
        self._sleep = sleep

    @abc.abstractmethod
    def _locked(
        self, takeover: Takeover[R]
    ) -> contextlib.AbstractContextManager[Takeover[R]]:
        """Lock both replicas, and complete what was interrupted.

        Without the active one if that has got out of reach.
        """

    @abc.abstractmethod
    def _hand_over(self, takeover: Takeover[R], active: R, generation: int) -> None:
        """Copy the active replica, which denies all clients, and become it.

        If that fails, it is as before. Raises ReplicaUnreachable if it cannot
        be copied.
        """

    @abc.abstractmethod
    def _activate(self, takeover: Takeover[R], generation: int) -> None:
        """Make our replica active with the content that it has."""

    @abc.abstractmethod
    def _demote(self, takeover: Takeover[R], active: R) -> None:
        """Make the previously active replica passive, if possible."""

    @abc.abstractmethod
    def _reinstate(self, replica: R, generation: int) -> None:
        """Make a replica active again that was retiring."""

    @abc.abstractmethod
    def _reaching(self, replica: R, action: str) -> contextlib.AbstractContextManager:
        """Ignore that a replica is out of reach: it is repaired later."""

    @abc.abstractmethod
    def _locations(self, own: R) -> list[base.ExportLocation]:
        """Return where clients find our replica."""

    def promote_replica(
        self,
        replica_list: ReplicaList,
        replica: base.ShareForDriver,
        quiesce_wait_time: int | None = None,
    ) -> Sequence[base.ReplicaReply]:
        """Make a replica active, with the latest content it can get.

        The previously active replica denies all clients before it is copied
        for the last time. If it is out of reach, it becomes passive when it is
        back.
        """
        own = self._replicas.own_replica(replica)
        if own.find() is None:
            raise exception.ShareResourceNotFound(share_id=replica['id'])
        others = self._replicas.reachable(
            [each for each in replica_list if each['id'] != replica['id']]
        )
        leader = find_active(replica_list)
        takeover = Takeover(
            own=own,
            active=next(
                (each for each in others if leader and each.name == leader['name']),
                None,
            ),
            others=others,
            replica_list=replica_list,
            replication_type=replica['replication_type'],
        )
        if takeover.active and quiesce_wait_time and not self._is_complete(takeover):
            self._sleep(quiesce_wait_time)
        with self._locked(takeover) as takeover:
            if not self._is_complete(takeover):
                self._take_over(takeover)
            if takeover.active is not None:
                self._demote(takeover, takeover.active)
        return [self._reply(each, own) for each in replica_list]

    def _take_over(self, takeover: Takeover[R]) -> None:
        own, active = takeover.own, takeover.active
        generation = self._next_generation(own, takeover.others)
        if active is not None:
            try:
                self._hand_over(takeover, active, generation)
            except ReplicaUnreachable as error:
                LOG.warning(
                    'Cannot copy the active replica %(name)s before the '
                    'promotion: %(error)s',
                    {'name': active.name, 'error': error},
                )
            else:
                return
        state = own.state()
        if not state.has_content:
            raise exception.ShareBackendException(
                msg=f'replica {own.name} has never been in sync, and the '
                'active replica is out of reach'
            )
        LOG.warning(
            'Replica %(name)s takes over with its content of %(at)s',
            {'name': own.name, 'at': format_time(state.synced_at)},
        )
        self._activate(takeover, generation)

    def _reply(self, each: base.ShareForDriver, own: R) -> base.ReplicaReply:
        if each['name'] != own.name:
            return {'id': each['id'], 'replica_state': OUT_OF_SYNC}
        return {
            'id': each['id'],
            'replica_state': ACTIVE,
            'export_locations': self._locations(own),
        }

    def return_active_role(self, own: R, replica_list: ReplicaList) -> None:
        """Give the active role back to the other replica if it is ours.

        That happens when a promotion was interrupted and abandoned.
        """
        active = self._replicas.reachable_active(replica_list)
        if active is None or active.name == own.name:
            return
        with self._reaching(active, 'become active again'):
            state = active.state()
            if state.role != Role.ACTIVE and state.source == own.name:
                self._reinstate(active, self._next_generation(active, [own]))

    def _is_complete(self, takeover: Takeover[R]) -> bool:
        """Return whether an earlier call has made our replica active.

        If the previously active replica is still writable, it must be copied
        again.
        """
        state, active = takeover.own.state(), takeover.active
        return (
            state.role == Role.ACTIVE
            and all(
                other.generation < state.generation
                for other in self._states(takeover.others)
            )
            and all(
                other.role != Role.ACTIVE
                for other in self._states([active] if active else [])
            )
        )

    def _next_generation(self, own: R, others: Iterable[R]) -> int:
        """Return a generation above all others, even those out of reach."""
        states = [own.state(), *self._states(others)]
        highest = max(state.generation for state in states)
        return max(highest + 1, int(self._clock()))

    def _states(self, replicas: Iterable[R]) -> list[State]:
        """Return the states of those replicas that are still within reach."""
        states = []
        for each in replicas:
            with self._reaching(each, 'be read'):
                if each.find() is not None:
                    states.append(each.state())
        return states
