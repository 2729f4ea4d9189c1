"""Shares of the local driver that are kept on several of its back ends.

Each back end fetches what its own replicas need. It writes to the root of
another only to have the replica that was active step back.
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


class LocalReplication(LocalReplicatedSnapshots):
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
        """Refuse a kind of replication that nobody could use."""
        if self._style and not self.replication_domain:
            raise exception.BadConfiguration(
                reason=f'back end "{self.configuration.config_group}": '
                'local_replication_type needs a replication_domain'
            )

    def _see_who_leads(self) -> None:
        """Let nobody write to what others have taken over meanwhile.

        They did so while this back end was out of reach, and could tell
        nobody here.
        """
        for home in self._places.homes(SHARES):
            mine = LocalReplica(self._places, home.name)
            for follower in mine.followers():
                other = self._at(follower['host'], follower['name'])
                if other is not None and _is_superseded(mine, other):
                    LOG.warning(
                        'Replica %(name)s is not active any more: '
                        '%(other)s has taken over',
                        {'name': mine.name, 'other': other.name},
                    )
                    mine.step_back(other, self._style)

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
        """Make a replica and copy all there is; that may take a while."""
        self._needs_replication()
        mine = self._mine(new_replica)
        with self._places.work(mine.name) as work:
            if mine.home.find() is None:
                active = self._active(replica_list)
                if active is None:
                    raise _out_of_reach(new_replica)
                mine.publish(
                    work,
                    {
                        'size': new_replica['size'],
                        'share_proto': new_replica['share_proto'],
                    },
                )
        answer = self.update_replica_state(
            context,
            replica_list,
            new_replica,
            access_rules,
            replica_snapshots,
            share_server,
        )
        return {
            'replica_state': answer,
            'export_locations': export_locations(mine.data()),
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
        mine = self._mine(replica)
        if mine.home.find() is not None:
            self._hand_back(mine, replica_list)
        self._places.remove(mine.home)
        active = self._active(replica_list)
        if active is not None:
            with (
                contextlib.suppress(ReplicaUnreachable),
                raising_unreachable(),
                ignoring_read_only(),
            ):
                mine.take_leave(active)

    def update_replica_state(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica: base.ShareForDriver,
        access_rules: base.AccessRules,
        replica_snapshots: list[base.ReplicaSnapshot],
        share_server: base.ShareServerMapping | None = None,
    ) -> str | None:
        """Copy what has changed; whoever does that already is left alone."""
        self._needs_replication()
        mine = self._mine(replica)
        if mine.home.find() is None:
            raise exception.ShareResourceNotFound(share_id=replica['id'])
        active = self._active(replica_list)
        led = mine.state().role != ReplicaRole.PASSIVE
        follows = False
        with self._places.work_if_free(mine.name) as work:
            if work is not None and active is not None:
                follows = self._follow(replica, mine, active, work)
        if led and mine.state().role == ReplicaRole.PASSIVE:
            # Nobody may have been able to tell while it was away.
            self.update_access(context, replica, access_rules, [], [], [])
        missing = [
            pair
            for pair in replica_snapshots
            if not self._fetched(
                active,
                pair['active_replica_snapshot'],
                pair['share_replica_snapshot'],
            )
        ]
        is_recent = follows or self._is_recent(mine, replica_list)
        return IN_SYNC if is_recent and not missing else OUT_OF_SYNC

    def get_replica_status(
        self,
        replica: base.ShareForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.StatusReply:
        """As of a share; one is not available that others do not follow."""
        status = self.get_share_status(replica, share_server)
        if (
            replica['replica_state'] == ACTIVE
            and self._role(replica) != ReplicaRole.ACTIVE
        ):
            LOG.error(
                'Replica %s is not the active one any more: promote '
                'the one that was to take over, or delete it',
                replica['name'],
            )
            status['status'] = 'error'
        return status

    def _follow(
        self,
        replica: base.ShareForDriver,
        mine: LocalReplica,
        active: LocalReplica,
        work: pathlib.Path,
    ) -> bool:
        """Have a replica be what the active one is, if that can be."""
        began = self._clock()
        before = mine.state()
        try:
            leader = active.state()
            if leader.role == ReplicaRole.PASSIVE or (
                leader.generation < before.generation
            ):
                # A promotion was broken off, and will be made again.
                raise ReplicaUnreachable(
                    msg=f'{active.home.path} does not know that it is active'
                )
            if before.role != ReplicaRole.PASSIVE:
                LOG.warning(
                    'Replica %(mine)s is not active any more; what '
                    '%(other)s does not have will be lost',
                    {'mine': mine.name, 'other': active.name},
                )
                mine.step_back(active, replica['replication_type'])
            changes = mine.follow(active, work, began)
        except ReplicaUnreachable as error:
            LOG.warning(
                'Replica %(name)s, synchronised at %(at)s, cannot '
                'be brought up to date: %(error)s',
                {
                    'name': mine.name,
                    'error': error,
                    'at': _told(before.synced_at),
                },
            )
        except OSError as error:
            if error.errno not in NO_SPACE_ERRNOS:
                raise
            LOG.error(
                'Replica %(name)s, synchronised at %(at)s, has no '
                'room for what is new: %(error)s',
                {
                    'name': mine.name,
                    'error': error,
                    'at': _told(before.synced_at),
                },
            )
        else:
            LOG.log(
                log.INFO if changes else log.DEBUG,
                'Replica %(name)s is what %(other)s was at %(at)s; '
                'that took %(changes)s changes',
                {
                    'name': mine.name,
                    'other': active.name,
                    'at': _told(began),
                    'changes': changes,
                },
            )
            return True
        return False

    def _is_recent(
        self, mine: LocalReplica, replica_list: ReplicaList
    ) -> bool:
        """Whether what could be lost is within the recovery point."""
        state = mine.state()
        leader = find_active(replica_list)
        oldest = (
            self._clock() - self.configuration.local_replication_recovery_point
        )
        return (
            leader is not None
            and state.role == ReplicaRole.PASSIVE
            and state.source == leader['name']
            and mine.is_settled()
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
        """Have a replica lead from what was last written, or last copied.

        The one that was active lets nobody in before it is copied for the
        last time. When it is out of reach it learns of all this when it
        is back.
        """
        self._needs_replication()
        mine = self._mine(replica)
        if mine.home.find() is None:
            raise exception.ShareResourceNotFound(share_id=replica['id'])
        others = [
            other
            for other in map(
                self._other,
                (one for one in replica_list if one['id'] != replica['id']),
            )
            if other is not None
        ]
        active = self._active(replica_list)
        if (
            active is not None
            and quiesce_wait_time
            and not _leads(mine, active, others)
        ):
            self._sleep(quiesce_wait_time)
        with contextlib.ExitStack() as stack:
            active, work = self._at_work(stack, mine, active)
            mine.settle(work)
            if not _leads(mine, active, others):
                self._take_the_lead(mine, active, others, work)
            if active is not None:
                with (
                    contextlib.suppress(ReplicaUnreachable),
                    raising_unreachable(),
                    ignoring_read_only(),
                ):
                    active.step_back(mine, replica['replication_type'])
        return [self._promoted(one, replica, mine) for one in replica_list]

    def _promoted(
        self,
        one: base.ShareForDriver,
        replica: base.ShareForDriver,
        mine: LocalReplica,
    ) -> base.ReplicaReply:
        if one['id'] != replica['id']:
            return {'id': one['id'], 'replica_state': OUT_OF_SYNC}
        return {
            'id': one['id'],
            'replica_state': ACTIVE,
            'export_locations': export_locations(mine.data()),
        }

    def _at_work(
        self,
        stack: contextlib.ExitStack,
        mine: LocalReplica,
        active: LocalReplica | None,
    ) -> tuple[LocalReplica | None, pathlib.Path]:
        """Nobody else works on either; on ours, if the other is lost.

        Whoever needs several takes them in the order of their names.
        """
        ours = self._places.work(mine.name)
        if active is None or mine.name < active.name:
            work = stack.enter_context(ours)
            return self._found(stack, active), work
        active = self._found(stack, active)
        return active, stack.enter_context(ours)

    def _found(
        self, stack: contextlib.ExitStack, active: LocalReplica | None
    ) -> LocalReplica | None:
        """The active replica, which is kept from others, if it is there."""
        if active is not None:
            with contextlib.suppress(ReplicaUnreachable):
                stack.enter_context(active.at_work())
                return active
        return None

    def _take_the_lead(
        self,
        mine: LocalReplica,
        active: LocalReplica | None,
        others: list[LocalReplica],
        work: pathlib.Path,
    ) -> None:
        generation = self._next_generation([mine, *others])
        if active is not None:
            try:
                with raising_unreachable(), active.retiring(mine):
                    changes = mine.follow(active, work, self._clock())
                    mine.lead(generation)
            except ReplicaUnreachable as error:
                LOG.warning(
                    'The active replica %(name)s cannot be copied '
                    'for a last time: %(error)s',
                    {'name': active.name, 'error': error},
                )
            else:
                LOG.info(
                    'Replica %(name)s takes over with all that '
                    '%(other)s had; that took %(changes)s changes',
                    {
                        'name': mine.name,
                        'other': active.name,
                        'changes': changes,
                    },
                )
                return
        state = mine.state()
        if not state.is_whole:
            raise exception.ShareBackendException(
                msg=f'replica {mine.name} has never been in sync, and the '
                'active one is out of reach'
            )
        LOG.warning(
            'Replica %(name)s takes over with what was there at %(at)s',
            {'name': mine.name, 'at': _told(state.synced_at)},
        )
        mine.lead(generation)

    def _next_generation(self, all_of_them: list[LocalReplica]) -> int:
        """Above that of any other, also of those that are out of reach."""
        highest = 0
        for one in all_of_them:
            with contextlib.suppress(ReplicaUnreachable):
                highest = max(highest, one.state().generation)
        return max(highest + 1, int(self._clock()))

    def _hand_back(
        self, mine: LocalReplica, replica_list: ReplicaList
    ) -> None:
        """Leave the lead to who has it, should it be ours by a mishap.

        That is so when a promotion was broken off and given up.
        """
        active = self._active(replica_list)
        if active is None or active.name == mine.name:
            return
        with contextlib.suppress(ReplicaUnreachable):
            state = active.state()
            if state.role != ReplicaRole.ACTIVE and state.source == mine.name:
                with raising_unreachable():
                    active.lead(self._next_generation([mine, active]))

    # Whom a replica lets in

    def _role(self, share: base.ShareForDriver) -> str:
        """What a replica may be used as: both sides have to agree on it."""
        mine = self._mine(share)
        if share['replica_state'] not in (None, ACTIVE):
            return ReplicaRole.PASSIVE
        state = mine.state()
        if state.role == ReplicaRole.RETIRING:
            return self._recovered_role(mine, state)
        return state.role

    def _recovered_role(self, mine: LocalReplica, state: ReplicaRecord) -> str:
        """Lead again, when the one that was to take over has not."""
        with self._places.work_if_free(mine.name) as work:
            if work is None or mine.state() != state:
                return ReplicaRole.PASSIVE  # the promotion goes on
            other = self._at(state.source_host, state.source)
            if other is None:
                return ReplicaRole.PASSIVE
            with contextlib.suppress(ReplicaUnreachable):
                other.record()
                successor = other.state()
                if (
                    successor.role != ReplicaRole.ACTIVE
                    or successor.generation <= state.generation
                ):
                    mine.note(
                        dataclasses.replace(
                            state,
                            role=ReplicaRole.ACTIVE,
                            source=None,
                            source_host=None,
                        )
                    )
                    return ReplicaRole.ACTIVE
        return ReplicaRole.PASSIVE

    def _keeps_out(self, share: base.ShareForDriver) -> bool:
        """Whether nobody may come in, whatever the rules say."""
        return (
            share['replication_type'] == DR
            and self._role(share) != ReplicaRole.ACTIVE
        )


def _leads(
    mine: LocalReplica, active: LocalReplica | None, others: list[LocalReplica]
) -> bool:
    """Whether a promotion has come this far before.

    If the one before can still be written to, it must be copied again.
    """
    state = mine.state()
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


def _is_superseded(mine: LocalReplica, other: LocalReplica) -> bool:
    """Whether the other leads, and this one does not know."""
    with contextlib.suppress(ReplicaUnreachable, PermissionError):
        other.record()
        here, there = mine.state(), other.state()
        return (
            here.role == there.role == ReplicaRole.ACTIVE
            and there.generation > here.generation
        )
    return False


def _told(at: float | None) -> str:
    if at is None:
        return 'no time'
    return time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(at))


def _out_of_reach(
    replica: base.ShareForDriver,
) -> exception.ShareBackendException:
    return exception.ShareBackendException(
        msg=f'replica {replica["name"]} cannot be made: the active one is '
        'out of reach'
    )
