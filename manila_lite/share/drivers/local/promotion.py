"""Promotion of replicas of the local driver."""

from collections.abc import Sequence
import contextlib
import pathlib

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.contract.replication import (
    ACTIVE,
    OUT_OF_SYNC,
    ReplicaList,
)
from manila_lite.share.drivers.files.replication import (
    ReplicaUnreachable,
    Role,
    format_time,
    ignoring_read_only,
)
from manila_lite.share.drivers.local.backend import LocalBackend
from manila_lite.share.drivers.local.peers import LocalPeers
from manila_lite.share.drivers.local.replica import LocalReplica, raising_unreachable

LOG = log.getLogger(__name__)


class LocalPromotion:
    """It moves the active role from one replica to another."""

    def __init__(self, backend: LocalBackend, peers: LocalPeers):
        self._backend = backend
        self._peers = peers

    def promote_replica(
        self,
        replica_list: ReplicaList,
        replica: base.ShareForDriver,
        quiesce_wait_time: int | None = None,
    ) -> Sequence[base.ReplicaReply]:
        """Make a replica active, with the latest content it can get.

        The previously active replica denies all clients before it is copied
        for the last time. If it is unreachable, it becomes passive when it
        is back.
        """
        own = self._peers.own_replica(replica)
        if own.item.find() is None:
            raise exception.ShareResourceNotFound(share_id=replica['id'])
        others = [
            other
            for other in map(
                self._peers.peer_replica,
                (each for each in replica_list if each['id'] != replica['id']),
            )
            if other is not None
        ]
        active = self._peers.reachable_active(replica_list)
        if (
            active is not None
            and quiesce_wait_time
            and not _is_promoted(own, active, others)
        ):
            self._backend.sleep(quiesce_wait_time)
        with contextlib.ExitStack() as stack:
            active, work = self._lock_replicas(stack, own, active)
            own.apply_pending_changes(work)
            if not _is_promoted(own, active, others):
                self._become_active(own, active, others, work)
            if active is not None:
                with (
                    contextlib.suppress(ReplicaUnreachable),
                    raising_unreachable(),
                    ignoring_read_only(),
                ):
                    active.become_passive(own, replica['replication_type'])
        return [self._promotion_reply(each, replica, own) for each in replica_list]

    def _promotion_reply(
        self, each: base.ShareForDriver, replica: base.ShareForDriver, own: LocalReplica
    ) -> base.ReplicaReply:
        if each['id'] != replica['id']:
            return {'id': each['id'], 'replica_state': OUT_OF_SYNC}
        return {
            'id': each['id'],
            'replica_state': ACTIVE,
            'export_locations': self._backend.export_locations(own.item, own.record()),
        }

    def _lock_replicas(
        self,
        stack: contextlib.ExitStack,
        own: LocalReplica,
        active: LocalReplica | None,
    ) -> tuple[LocalReplica | None, pathlib.Path]:
        """Lock both replicas, or only our own if the other is lost.

        Locks are always taken in the order of names to avoid deadlocks.
        """
        own_lock = self._backend.store.locked_work_directory(own.name)
        if active is None or own.name < active.name:
            work = stack.enter_context(own_lock)
            return self._lock_active(stack, active), work
        active = self._lock_active(stack, active)
        return active, stack.enter_context(own_lock)

    def _lock_active(
        self, stack: contextlib.ExitStack, active: LocalReplica | None
    ) -> LocalReplica | None:
        """Lock and return the active replica; None if unreachable."""
        if active is not None:
            with contextlib.suppress(ReplicaUnreachable):
                stack.enter_context(active.locked())
                return active
        return None

    def _become_active(
        self,
        own: LocalReplica,
        active: LocalReplica | None,
        others: list[LocalReplica],
        work: pathlib.Path,
    ) -> None:
        generation = self._next_generation([own, *others])
        if active is not None:
            try:
                with raising_unreachable(), active.retiring(own):
                    changes = own.follow(active, work, self._backend.clock())
                    own.become_active(generation)
            except ReplicaUnreachable as error:
                LOG.warning(
                    'Cannot copy the active replica %(name)s before the '
                    'promotion: %(error)s',
                    {'name': active.name, 'error': error},
                )
            else:
                LOG.info(
                    'Replica %(name)s takes over with the latest content '
                    'of %(other)s after %(changes)s changes',
                    {'name': own.name, 'other': active.name, 'changes': changes},
                )
                return
        state = own.state()
        if not state.is_whole:
            raise exception.ShareBackendException(
                msg=f'replica {own.name} has never been in sync, and the '
                'active replica is unreachable'
            )
        LOG.warning(
            'Replica %(name)s takes over with its content of %(at)s',
            {'name': own.name, 'at': format_time(state.synced_at)},
        )
        own.become_active(generation)

    def _next_generation(self, replicas: list[LocalReplica]) -> int:
        """Return a generation above all others, even unreachable ones."""
        highest = 0
        for each in replicas:
            with contextlib.suppress(ReplicaUnreachable):
                highest = max(highest, each.state().generation)
        return max(highest + 1, int(self._backend.clock()))

    def return_active_role(self, own: LocalReplica, replica_list: ReplicaList) -> None:
        """Give the active role back to the other replica if it is ours.

        That happens when a promotion was interrupted and abandoned.
        """
        active = self._peers.reachable_active(replica_list)
        if active is None or active.name == own.name:
            return
        with contextlib.suppress(ReplicaUnreachable):
            state = active.state()
            if state.role != Role.ACTIVE and state.source == own.name:
                with raising_unreachable():
                    active.become_active(self._next_generation([own, active]))


def _is_promoted(
    own: LocalReplica, active: LocalReplica | None, others: list[LocalReplica]
) -> bool:
    """Return whether an earlier promotion has come this far.

    If the previously active replica is still writable, it must be copied
    again.
    """
    state = own.state()
    if state.role != Role.ACTIVE:
        return False
    for other in others:
        with contextlib.suppress(ReplicaUnreachable):
            other.record()
            if other.state().generation >= state.generation:
                return False
    with contextlib.suppress(ReplicaUnreachable):
        return active is None or active.state().role != Role.ACTIVE
    return True
