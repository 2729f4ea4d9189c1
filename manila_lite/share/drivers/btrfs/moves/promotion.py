"""Promotion of replicas of the btrfs driver."""

from collections.abc import Iterator, Sequence
import contextlib
import dataclasses
import time

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.moves import closing
from manila_lite.share.drivers.btrfs.moves.peers import BtrfsPeers
from manila_lite.share.drivers.btrfs.moves.replicas import Replica, ReplicaState
from manila_lite.share.drivers.btrfs.moves.syncing import BtrfsSyncing
from manila_lite.share.drivers.contract.replication import (
    ACTIVE,
    OUT_OF_SYNC,
    ReplicaList,
    find_active,
)
from manila_lite.share.drivers.files.replication import (
    DR,
    ReplicaUnreachable,
    Role,
    ignoring_read_only,
)

LOG = log.getLogger(__name__)


class BtrfsPromotion:
    """It moves the active role from one replica to another."""

    def __init__(self, backend: BtrfsBackend, peers: BtrfsPeers, syncing: BtrfsSyncing):
        self._backend = backend
        self._peers = peers
        self._syncing = syncing

    def promote_replica(
        self,
        replica_list: ReplicaList,
        replica: base.ShareForDriver,
        quiesce_wait_time: int | None = None,
    ) -> Sequence[base.ReplicaReply]:
        """Make a replica active, with the latest content it can get.

        The previously active replica denies all clients before it is copied
        for the last time. If it is out of reach, it becomes passive when it
        is back; its exports end if at least their server is in reach.
        """
        own = self._peers.own_replica(replica)
        if own.find() is None:
            raise exception.ShareResourceNotFound(share_id=replica['id'])
        others = self._peers.reachable(
            [each for each in replica_list if each['id'] != replica['id']]
        )
        leader = find_active(replica_list)
        active = next(
            (each for each in others if leader and each.name == leader.name), None
        )
        if (
            active is not None
            and quiesce_wait_time
            and not _is_promoted(own, active, others)
        ):
            time.sleep(quiesce_wait_time)
        with contextlib.ExitStack() as stack:
            for each in sorted(
                [own, *([active] if active else [])], key=lambda each: each.name
            ):
                stack.enter_context(each.backend.copying(each.name))
            if not _is_promoted(own, active, others):
                self._become_active(
                    own, active, others, replica_list, replica['replication_type']
                )
            if active is not None:
                self._make_passive(active, own, replica['replication_type'])
        return [_reply(each, own) for each in replica_list]

    def _make_passive(
        self, active: Replica, own: Replica, replication_type: str | None
    ) -> None:
        with _ignoring_errors(active, 'become passive'):
            state = active.state()
            if state.role != Role.PASSIVE or state.source != own.name:
                with active.backend.changing(active.name):
                    active.become_passive(own, replication_type)

    def _end_exports(self, own: Replica, replication_type: str | None) -> None:
        """End the exports of a source that cannot record that itself."""
        state = own.state()
        backend = self._peers.at(state.source_host)
        if backend is None or state.source_volume is None:
            return
        with _ignoring_errors(own, 'end the export of its source'):
            backend.exports.withdraw(Kind.SHARE, state.source_volume)
        if replication_type != DR:
            return
        for snapshot in backend.exports.snapshots_of(state.source_volume):
            with _ignoring_errors(own, f'end the export of {snapshot}'):
                backend.exports.withdraw(Kind.SNAPSHOT, snapshot)

    def _become_active(
        self,
        own: Replica,
        active: Replica | None,
        others: list[Replica],
        replica_list: ReplicaList,
        replication_type: str | None,
    ) -> None:
        generation = _next_generation(own, others)
        hosts = {
            each['name']: each['host']
            for each in replica_list
            if each['name'] != own.name and each['host']
        }
        if active is not None:
            try:
                with _retiring(active, own):
                    closing.send_all(
                        active.name, lambda: self._syncing.follow(own, active)
                    )
                    self._activate(own, generation, hosts)
            except ReplicaUnreachable as error:
                LOG.warning(
                    'Cannot copy the active replica %(name)s before the '
                    'promotion: %(error)s',
                    {'name': active.name, 'error': error},
                )
            else:
                return
        if own.state().shown is None:
            raise exception.ShareBackendException(
                msg=f'replica {own.name} has never been in sync, and the '
                'active replica is out of reach'
            )
        LOG.warning(
            'Replica %(name)s takes over with what it had when it was last '
            'synchronised',
            {'name': own.name},
        )
        self._end_exports(own, replication_type)
        self._activate(own, generation, hosts)

    def _activate(self, own: Replica, generation: int, hosts: dict[str, str]) -> None:
        with self._backend.changing(own.name):
            path = own.pool.path(Kind.SHARE, own.volume)
            kernel.set_read_only(path, False)
            own.write_state(
                ReplicaState(generation=generation, others=own.state().others | hosts)
            )
            own.pool.commit()

    def return_active_role(self, own: Replica, replica_list: ReplicaList) -> None:
        """Give the active role back to the other replica if it is ours.

        That happens when a promotion was interrupted and abandoned.
        """
        active = self._peers.reachable_active(replica_list)
        if active is None or active.name == own.name:
            return
        with _ignoring_errors(active, 'become active again'):
            state = active.state()
            if state.role != Role.ACTIVE and state.source == own.name:
                with active.backend.changing(active.name):
                    kernel.set_read_only(
                        active.pool.path(Kind.SHARE, active.volume), False
                    )
                    active.write_state(
                        ReplicaState(
                            generation=_next_generation(active, [own]),
                            others=state.others,
                        )
                    )


@contextlib.contextmanager
def _retiring(active: Replica, successor: Replica) -> Iterator[None]:
    """Deny all access to a replica; restore it if the block fails.

    One on a pool that is read-only cannot record it; its exports end.
    """
    with contextlib.ExitStack() as stack:
        try:
            with active.backend.changing(active.name):
                before = active.state()
                pool, record = active.pool, active.record()
                path = pool.path(Kind.SHARE, record['volume'])
                stack.enter_context(
                    active.backend.exports.suspended(Kind.SHARE, record, path)
                )
                retiring = dataclasses.replace(
                    before,
                    role=Role.RETIRING,
                    source=successor.name,
                    source_host=successor.host,
                )
                with ignoring_read_only():
                    active.write_state(retiring)
        except exception.ShareBackendException as error:
            raise ReplicaUnreachable(msg=f'{active.name}: {error}') from error
        try:
            yield
        except BaseException:
            with contextlib.suppress(OSError):
                active.write_state(before)
            raise


@contextlib.contextmanager
def _ignoring_errors(replica: Replica, action: str) -> Iterator[None]:
    """Log that another back end has not done what is repaired later."""
    try:
        yield
    except (OSError, exception.ShareBackendException) as error:
        LOG.warning(
            'Replica %(name)s cannot %(action)s: %(error)s',
            {'name': replica.name, 'action': action, 'error': error},
        )


def _reply(each: base.ShareForDriver, own: Replica) -> base.ReplicaReply:
    if each['name'] != own.name:
        return {'id': each['id'], 'replica_state': OUT_OF_SYNC}
    return {
        'id': each['id'],
        'replica_state': ACTIVE,
        'export_locations': own.locations(),
    }


def _next_generation(own: Replica, others: list[Replica]) -> int:
    """Return a generation above all others, even those out of reach."""
    states = [own.state(), *_states(others)]
    highest = max(state.generation for state in states)
    return max(highest + 1, int(time.time()))


def _states(replicas: list[Replica]) -> list[ReplicaState]:
    """Return the states of those replicas that are still within reach."""
    states = []
    for each in replicas:
        with _ignoring_errors(each, 'be read'):
            states.append(each.state())
    return states


def _is_promoted(own: Replica, active: Replica | None, others: list[Replica]) -> bool:
    """Return whether an earlier promotion has come this far.

    If the previously active replica is still writable, it must be copied
    again.
    """
    state = own.state()
    return (
        state.role == Role.ACTIVE
        and all(other.generation < state.generation for other in _states(others))
        and all(
            other.role != Role.ACTIVE for other in _states([active] if active else [])
        )
    )
