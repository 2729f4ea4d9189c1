"""Replicas on one back end, which copy the active one, and their states."""

import abc
from collections.abc import Callable
import contextlib
import dataclasses
import typing

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.contract.interfaces import Arguments
from manila_lite.share.drivers.contract.replication import (
    ACTIVE,
    ERROR,
    IN_SYNC,
    OUT_OF_SYNC,
    ReplicaList,
    SnapshotList,
    replica_state_reply,
)
from manila_lite.share.drivers.files.promotion import Promotion
from manila_lite.share.drivers.files.replicas import (
    Peers,
    R,
    ReplicaUnreachable,
    Role,
    Roles,
    format_time,
    ignoring_failures,
    reaching,
    require_leading,
)
from manila_lite.share.drivers.files.replicated_snapshots import (
    ReplicatedSnapshots,
    Snapshots,
)

LOG = log.getLogger(__name__)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Update(Arguments):
    """A replica that is to be brought up to date."""

    replica_list: ReplicaList
    replica: base.ShareForDriver
    access_rules: base.AccessRules
    replica_snapshots: list[base.ReplicaSnapshot]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Creation(Arguments):
    """A replica that is to be created."""

    replica_list: ReplicaList
    new_replica: base.ShareForDriver
    access_rules: base.AccessRules
    replica_snapshots: list[base.ReplicaSnapshot]
    share_server: base.ShareServerMapping | None = None

    @property
    def update(self) -> Update:
        return Update(
            replica_list=self.replica_list,
            replica=self.new_replica,
            access_rules=self.access_rules,
            replica_snapshots=self.replica_snapshots,
        )


class Replication(Promotion[R], ReplicatedSnapshots[R]):
    """Replicas on this back end, which copy the active one."""

    # Whether copies of snapshots change the content of a replica.
    _snapshots_first = False

    def __init__(
        self,
        peers: Peers[R],
        roles: Roles[R],
        snapshots: Snapshots,
        status_of: Callable[[base.ShareForDriver], base.StatusReply],
        clock: Callable[[], float],
        sleep: Callable[[float], object],
    ):
        Promotion.__init__(self, peers, clock, sleep)
        ReplicatedSnapshots.__init__(self, peers, snapshots)
        self._roles = roles
        self._status_of = status_of

    @abc.abstractmethod
    def _create(self, own: R, new: Creation) -> None:
        """Create an empty passive replica, or complete an earlier attempt."""

    @abc.abstractmethod
    def _remove(self, own: R, share: base.ShareForDriver) -> None:
        """Remove a replica, or what is left of it."""

    @abc.abstractmethod
    def _forget(self, own: R, other: R) -> None:
        """Remove what another replica has for one that was removed."""

    @abc.abstractmethod
    def _synchronise(self, own: R, leader: R, update: Update) -> bool:
        """Copy what has changed; return whether anything has.

        Raises ReplicaUnreachable if the leader has nothing to be copied.
        """

    @abc.abstractmethod
    def _restore_access(self, own: R, update: Update, was_active: bool) -> None:
        """Apply the rules that a replica may have missed while out of reach."""

    def _waiting(self, own: R) -> contextlib.AbstractContextManager[object]:
        """Lock the content of a replica, and wait for other calls that copy it."""
        return contextlib.nullcontext()

    def _state_meanwhile(self, own: R, update: Update) -> str | None:
        """Return the state while another call copies; None if it is not known."""
        return None

    def _outdated_state(self, own: R, update: Update, error: Exception | None) -> str:
        """Return the state of a replica that was not brought up to date."""
        return OUT_OF_SYNC

    def _locations(self, share: base.ShareForDriver) -> list[base.ExportLocation]:
        found = self._status_of(share).get('export_locations')
        return typing.cast(list[base.ExportLocation], found or [])

    def create_replica(self, new: Creation) -> base.ReplicaReply:
        """Create a replica and copy everything, which may take a while."""
        own = self._replicas.own_replica(new.new_replica)
        if (
            own.find() is None
            and self._replicas.reachable_active(new.replica_list) is None
        ):
            raise exception.ShareBackendException(
                msg=f'replica {own.name} cannot be created: the active replica is '
                'out of reach'
            )
        self._create(own, new)
        replica_state = self._update(own, new.update)
        return {
            'replica_state': replica_state or OUT_OF_SYNC,
            'export_locations': self._locations(new.new_replica),
        }

    def delete_replica(
        self,
        replica_list: ReplicaList,
        replica_snapshots: SnapshotList,
        replica: base.ShareForDriver,
    ) -> None:
        for snapshot in replica_snapshots:
            self._snapshots.delete_snapshot(snapshot)
        own = self._replicas.own_replica(replica)
        with self._waiting(own):
            if own.find() is not None:
                self.return_active_role(own, replica_list)
            self._remove(own, replica)
        others = [each for each in replica_list if each['name'] != own.name]
        for other in self._replicas.reachable(others):
            with contextlib.suppress(ReplicaUnreachable), reaching(other.name):
                self._forget(own, other)

    def update_replica_state(self, update: Update) -> base.ReplicaStateReply:
        """Copy what has changed, unless another thread is doing so."""
        own = self._replicas.own_replica(update.replica)
        replica_state = self._update(own, update)
        return replica_state_reply(replica_state, own.state().synced_at)

    def _update(self, own: R, update: Update) -> str | None:
        """Copy what has changed; no state if another thread is doing so."""
        if own.find() is None:
            raise exception.ShareResourceNotFound(share_id=update.replica['id'])
        was_active = own.state().role != Role.PASSIVE
        with own.copying() as is_free:
            if not is_free:
                return self._state_meanwhile(own, update)
            leader = self._replicas.reachable_active(update.replica_list)
            if leader is not None and own.state().role != Role.PASSIVE:
                leader = self._follow_again(own, leader, update.replica)
            steps = [self._follow, self._copy_snapshots]
            if self._snapshots_first:
                steps.reverse()
            states = [step(own, leader, update) for step in steps]
        if own.state().role == Role.PASSIVE:
            self._restore_access(own, update, was_active)
        return max(states, key=(IN_SYNC, OUT_OF_SYNC, ERROR).index)

    def _follow_again(self, own: R, leader: R, share: base.ShareForDriver) -> R | None:
        """Make a replica passive whose successor was promoted without it.

        Return that if there is one.
        """
        with ignoring_failures(own.name, 'become passive'):
            require_leading(leader.name, leader.state(), own.state())
            LOG.warning(
                'Replica %(name)s is no longer active; changes that %(other)s '
                'does not have will be lost',
                {'name': own.name, 'other': leader.name},
            )
            own.become_passive(leader, share['replication_type'])
            return leader
        return None

    def _follow(self, own: R, leader: R | None, update: Update) -> str:
        """Bring a replica up to date; return its state."""
        if leader is None:
            return self._outdated_state(own, update, None)
        before = own.state()
        try:
            is_new = self._synchronise(own, leader, update)
        except exception.StaleFencingToken:
            raise
        except (OSError, exception.DriverError) as error:
            LOG.warning(
                'Cannot update replica %(name)s, last synchronised at '
                '%(at)s: %(error)s',
                {'name': own.name, 'error': error, 'at': format_time(before.synced_at)},
            )
            return self._outdated_state(own, update, error)
        LOG.log(
            log.INFO if is_new else log.DEBUG,
            'Replica %(name)s is synchronised with %(other)s',
            {'name': own.name, 'other': leader.name},
        )
        return IN_SYNC

    def _copy_snapshots(self, own: R, leader: R | None, update: Update) -> str:
        # All are tried, although one may be missing.
        are_there = [
            self._ensure(
                own,
                leader,
                pair['active_replica_snapshot'],
                pair['share_replica_snapshot'],
            )
            for pair in update.replica_snapshots
        ]
        return IN_SYNC if all(are_there) else OUT_OF_SYNC

    def get_replica_status(self, replica: base.ShareForDriver) -> base.StatusReply:
        """Return the status, as for a share.

        It is an error if the others do not follow the replica even though it
        should be active.
        """
        status = self._status_of(replica)
        if (
            replica['replica_state'] == ACTIVE
            and self._roles.role_of(replica) != Role.ACTIVE
        ):
            LOG.error('Replica %s is no longer active', replica['name'])
            status['status'] = 'error'
            status['replica_state'] = OUT_OF_SYNC
        return status
