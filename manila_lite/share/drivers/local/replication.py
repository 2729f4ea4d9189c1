"""Shares that the local driver replicates on several back ends.

Each back end copies what its own replicas need. It writes to the root of
another back end only to make the previously active replica passive and to
register as its follower.
"""

from collections.abc import Callable, Sequence
import contextlib
import dataclasses
import pathlib
import time
from typing import Any

from oslo_log import log

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.share.drivers import base
from manila_lite.share.drivers.local.managing import export_locations
from manila_lite.share.drivers.local.peers import ACTIVE
from manila_lite.share.drivers.local.peers import ReplicaList
from manila_lite.share.drivers.local.peers import find_active
from manila_lite.share.drivers.local.replica import DR
from manila_lite.share.drivers.local.replica import NO_SPACE_ERRNOS
from manila_lite.share.drivers.local.replica import LocalReplica
from manila_lite.share.drivers.local.replica import ReplicaRecord
from manila_lite.share.drivers.local.replica import ReplicaRole
from manila_lite.share.drivers.local.replica import ReplicaUnreachable
from manila_lite.share.drivers.local.replica import ignoring_read_only
from manila_lite.share.drivers.local.replica import raising_unreachable
from manila_lite.share.drivers.local.replicated_snapshots import (
    LocalReplicatedSnapshots,
)
from manila_lite.share.drivers.local.replicated_snapshots import SnapshotList
from manila_lite.share.drivers.local.store import SHARES

LOG = log.getLogger(__name__)

IN_SYNC, OUT_OF_SYNC = 'in_sync', 'out_of_sync'


class LocalReplication(LocalReplicatedSnapshots, base.ReplicationSupport):
    def __init__(
        self,
        *args: Any,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], object] = time.sleep,
        **kwargs: Any,
    ):
        super().__init__(*args, **kwargs)
        self._clock = clock
        self._sleep = sleep

    def _check_replication(self) -> None:
        """Require a replication domain if replication is configured."""
        if self._replication_type and not self.replication_domain:
            raise exception.BadConfiguration(
                reason=f'back end "{self.configuration.config_group}": '
                'local_replication_type needs a replication_domain'
            )

    def _demote_superseded(self) -> None:
        """Deny writing to replicas that others have replaced meanwhile.

        That happened while this back end was unreachable, so that it could
        not be notified.
        """
        for item in self._store.list_items(SHARES):
            own = LocalReplica(self._store, item.name)
            for follower in own.followers():
                other = self._replica_at(follower['host'], follower['name'])
                if other is not None and _is_superseded(own, other):
                    LOG.warning(
                        'Replica %(name)s is no longer active: '
                        '%(other)s has taken over',
                        {'name': own.name, 'other': other.name},
                    )
                    own.become_passive(other, self._replication_type)

    # Replicas

    def create_replica(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        new_replica: base.ShareForDriver,
        access_rules: base.AccessRules,
        replica_snapshots: list[base.ReplicaSnapshot],
        share_server: base.ShareServerMapping | None = None,
    ) -> base.ReplicaReply:
        """Create a replica and copy everything, which may take a while."""
        self._require_replication()
        own = self._own_replica(new_replica)
        with self._store.locked_work_directory(own.name) as work:
            if own.item.find() is None:
                active = self._reachable_active(replica_list)
                if active is None:
                    raise _active_unreachable(new_replica)
                own.publish(
                    work,
                    {
                        'size': new_replica['size'],
                        'share_proto': new_replica['share_proto'],
                    },
                )
        replica_state = self.update_replica_state(
            context,
            replica_list,
            new_replica,
            access_rules,
            replica_snapshots,
            share_server,
        )
        return {
            'replica_state': replica_state,
            'export_locations': export_locations(own.data_path()),
        }

    def delete_replica(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica_snapshots: SnapshotList,
        replica: base.ShareForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> None:
        for snapshot in replica_snapshots:
            self.delete_snapshot(context, snapshot, share_server)
        own = self._own_replica(replica)
        if own.item.find() is not None:
            self._return_active_role(own, replica_list)
        self._store.remove(own.item)
        active = self._reachable_active(replica_list)
        if active is not None:
            with (
                contextlib.suppress(ReplicaUnreachable),
                raising_unreachable(),
                ignoring_read_only(),
            ):
                own.unregister_from(active)

    def update_replica_state(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica: base.ShareForDriver,
        access_rules: base.AccessRules,
        replica_snapshots: list[base.ReplicaSnapshot],
        share_server: base.ShareServerMapping | None = None,
    ) -> str | None:
        """Copy what has changed, unless another thread is doing so."""
        self._require_replication()
        own = self._own_replica(replica)
        if own.item.find() is None:
            raise exception.ShareResourceNotFound(share_id=replica['id'])
        active = self._reachable_active(replica_list)
        was_active = own.state().role != ReplicaRole.PASSIVE
        is_synced = False
        with self._store.try_locked_work_directory(own.name) as work:
            if work is not None and active is not None:
                is_synced = self._follow(replica, own, active, work)
        if was_active and own.state().role == ReplicaRole.PASSIVE:
            # It may have been unreachable when the roles changed.
            self.update_access(context, replica, access_rules, [], [], [])
        missing = [
            pair
            for pair in replica_snapshots
            if not self._ensure_snapshot(
                active,
                pair['active_replica_snapshot'],
                pair['share_replica_snapshot'],
            )
        ]
        is_recent = is_synced or self._is_within_recovery_point(
            own, replica_list
        )
        return IN_SYNC if is_recent and not missing else OUT_OF_SYNC

    def get_replica_status(
        self,
        replica: base.ShareForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.StatusReply:
        """Return the status, as for a share.

        It is an error if the others do not follow the replica even though it
        should be active.
        """
        status = self.get_share_status(replica, share_server)
        if (
            replica['replica_state'] == ACTIVE
            and self._role(replica) != ReplicaRole.ACTIVE
        ):
            LOG.error(
                'Replica %s is no longer active: promote the replica '
                'that was to take over, or delete it',
                replica['name'],
            )
            status['status'] = 'error'
        return status

    def _follow(
        self,
        replica: base.ShareForDriver,
        own: LocalReplica,
        active: LocalReplica,
        work: pathlib.Path,
    ) -> bool:
        """Bring a replica up to date; return whether that succeeded."""
        started_at = self._clock()
        before = own.state()
        try:
            leader = active.state()
            if leader.role == ReplicaRole.PASSIVE or (
                leader.generation < before.generation
            ):
                # A promotion was interrupted and will be repeated.
                raise ReplicaUnreachable(
                    msg=f'{active.item.path} is not recorded as active'
                )
            if before.role != ReplicaRole.PASSIVE:
                LOG.warning(
                    'Replica %(name)s is no longer active; changes that '
                    '%(other)s does not have will be lost',
                    {'name': own.name, 'other': active.name},
                )
                own.become_passive(active, replica['replication_type'])
            changes = own.follow(active, work, started_at)
        except ReplicaUnreachable as error:
            LOG.warning(
                'Cannot update replica %(name)s, last synchronised at '
                '%(at)s: %(error)s',
                {
                    'name': own.name,
                    'error': error,
                    'at': _format_time(before.synced_at),
                },
            )
        except OSError as error:
            if error.errno not in NO_SPACE_ERRNOS:
                raise
            LOG.error(
                'No space left to update replica %(name)s, last '
                'synchronised at %(at)s: %(error)s',
                {
                    'name': own.name,
                    'error': error,
                    'at': _format_time(before.synced_at),
                },
            )
        else:
            LOG.log(
                log.INFO if changes else log.DEBUG,
                'Replica %(name)s is synchronised with %(other)s as of '
                '%(at)s after %(changes)s changes',
                {
                    'name': own.name,
                    'other': active.name,
                    'at': _format_time(started_at),
                    'changes': changes,
                },
            )
            return True
        return False

    def _is_within_recovery_point(
        self, own: LocalReplica, replica_list: ReplicaList
    ) -> bool:
        """Return whether potential data loss is within the recovery point."""
        state = own.state()
        leader = find_active(replica_list)
        oldest = (
            self._clock() - self.configuration.local_replication_recovery_point
        )
        return (
            leader is not None
            and state.role == ReplicaRole.PASSIVE
            and state.source == leader['name']
            and not own.has_pending_changes()
            and state.synced_at is not None
            and state.synced_at >= oldest
        )

    # Promotion

    def promote_replica(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica: base.ShareForDriver,
        access_rules: base.AccessRules,
        share_server: base.ShareServerMapping | None = None,
        quiesce_wait_time: int | None = None,
    ) -> Sequence[base.ReplicaReply]:
        """Make a replica active, with the latest content it can get.

        The previously active replica denies all clients before it is copied
        for the last time. If it is unreachable, it becomes passive when it
        is back.
        """
        self._require_replication()
        own = self._own_replica(replica)
        if own.item.find() is None:
            raise exception.ShareResourceNotFound(share_id=replica['id'])
        others = [
            other
            for other in map(
                self._peer_replica,
                (each for each in replica_list if each['id'] != replica['id']),
            )
            if other is not None
        ]
        active = self._reachable_active(replica_list)
        if (
            active is not None
            and quiesce_wait_time
            and not _is_promoted(own, active, others)
        ):
            self._sleep(quiesce_wait_time)
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
        return [
            self._promotion_reply(each, replica, own) for each in replica_list
        ]

    def _promotion_reply(
        self,
        each: base.ShareForDriver,
        replica: base.ShareForDriver,
        own: LocalReplica,
    ) -> base.ReplicaReply:
        if each['id'] != replica['id']:
            return {'id': each['id'], 'replica_state': OUT_OF_SYNC}
        return {
            'id': each['id'],
            'replica_state': ACTIVE,
            'export_locations': export_locations(own.data_path()),
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
        own_lock = self._store.locked_work_directory(own.name)
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
                    changes = own.follow(active, work, self._clock())
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
                    {
                        'name': own.name,
                        'other': active.name,
                        'changes': changes,
                    },
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
            {'name': own.name, 'at': _format_time(state.synced_at)},
        )
        own.become_active(generation)

    def _next_generation(self, replicas: list[LocalReplica]) -> int:
        """Return a generation above all others, even unreachable ones."""
        highest = 0
        for each in replicas:
            with contextlib.suppress(ReplicaUnreachable):
                highest = max(highest, each.state().generation)
        return max(highest + 1, int(self._clock()))

    def _return_active_role(
        self, own: LocalReplica, replica_list: ReplicaList
    ) -> None:
        """Give the active role back to the other replica if it is ours.

        That happens when a promotion was interrupted and abandoned.
        """
        active = self._reachable_active(replica_list)
        if active is None or active.name == own.name:
            return
        with contextlib.suppress(ReplicaUnreachable):
            state = active.state()
            if state.role != ReplicaRole.ACTIVE and state.source == own.name:
                with raising_unreachable():
                    active.become_active(self._next_generation([own, active]))

    # Access to replicas

    def _role(self, share: base.ShareForDriver) -> str:
        """Return the effective role: both sides have to agree on it."""
        own = self._own_replica(share)
        if share['replica_state'] not in (None, ACTIVE):
            return ReplicaRole.PASSIVE
        state = own.state()
        if state.role == ReplicaRole.RETIRING:
            return self._recovered_role(own, state)
        return state.role

    def _recovered_role(self, own: LocalReplica, state: ReplicaRecord) -> str:
        """Become active again if the successor has not become active."""
        with self._store.try_locked_work_directory(own.name) as work:
            if work is None or own.state() != state:
                return ReplicaRole.PASSIVE  # the promotion is in progress
            other = self._replica_at(state.source_host, state.source)
            if other is None:
                return ReplicaRole.PASSIVE
            with contextlib.suppress(ReplicaUnreachable):
                other.record()
                successor = other.state()
                if (
                    successor.role != ReplicaRole.ACTIVE
                    or successor.generation <= state.generation
                ):
                    own.write_state(
                        dataclasses.replace(
                            state,
                            role=ReplicaRole.ACTIVE,
                            source=None,
                            source_host=None,
                        )
                    )
                    return ReplicaRole.ACTIVE
        return ReplicaRole.PASSIVE

    def _denies_all_access(self, share: base.ShareForDriver) -> bool:
        """Return whether clients are denied whatever the rules say."""
        return (
            share['replication_type'] == DR
            and self._role(share) != ReplicaRole.ACTIVE
        )


def _is_promoted(
    own: LocalReplica, active: LocalReplica | None, others: list[LocalReplica]
) -> bool:
    """Return whether an earlier promotion has come this far.

    If the previously active replica is still writable, it must be copied
    again.
    """
    state = own.state()
    if state.role != ReplicaRole.ACTIVE:
        return False
    for other in others:
        with contextlib.suppress(ReplicaUnreachable):
            other.record()
            if other.state().generation >= state.generation:
                return False
    with contextlib.suppress(ReplicaUnreachable):
        return active is None or active.state().role != ReplicaRole.ACTIVE
    return True


def _is_superseded(own: LocalReplica, other: LocalReplica) -> bool:
    """Return whether the other is active and this one is outdated."""
    with contextlib.suppress(ReplicaUnreachable, PermissionError):
        other.record()
        here, there = own.state(), other.state()
        return (
            here.role == there.role == ReplicaRole.ACTIVE
            and there.generation > here.generation
        )
    return False


def _format_time(at: float | None) -> str:
    if at is None:
        return 'an unknown time'
    return time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(at))


def _active_unreachable(
    replica: base.ShareForDriver,
) -> exception.ShareBackendException:
    return exception.ShareBackendException(
        msg=f'replica {replica["name"]} cannot be created: the active '
        'replica is unreachable'
    )
