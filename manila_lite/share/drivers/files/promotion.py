"""Promotion of replicas: the active role moves from one to another."""

import abc
from collections.abc import Callable, Iterable, Sequence
import contextlib
import dataclasses
from typing import Generic

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.contract.replication import (
    ACTIVE,
    OUT_OF_SYNC,
    ReplicaList,
    find_active,
)
from manila_lite.share.drivers.files.replicas import (
    Peers,
    R,
    ReplicaState,
    ReplicaUnreachable,
    Role,
    format_time,
    ignoring_failures,
)

LOG = log.getLogger(__name__)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Takeover(Generic[R]):
    """A replica that is to be active, and the others within reach.

    `active` is the one of them that was active, or None.
    """

    own: R
    active: R | None
    others: list[R]
    replica_list: ReplicaList
    replication_type: str | None


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
    def _locations(self, share: base.ShareForDriver) -> list[base.ExportLocation]:
        """Return where clients find our replica."""

    @abc.abstractmethod
    def _reinstate(self, replica: R, generation: int) -> None:
        """Make a replica active again that was retiring."""

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
                with ignoring_failures(takeover.active.name, 'become passive'):
                    takeover.active.become_passive(own, takeover.replication_type)
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
            'export_locations': self._locations(each),
        }

    def return_active_role(self, own: R, replica_list: ReplicaList) -> None:
        """Give the active role back to the other replica if it is ours.

        That happens when a promotion was interrupted and abandoned.
        """
        active = self._replicas.reachable_active(replica_list)
        if active is None or active.name == own.name:
            return
        with ignoring_failures(active.name, 'become active again'):
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

    def _states(self, replicas: Iterable[R]) -> list[ReplicaState]:
        """Return the states of those replicas that are still within reach."""
        states = []
        for each in replicas:
            with ignoring_failures(each.name, 'be read'):
                if each.find() is not None:
                    states.append(each.state())
        return states
