"""Which replicas of the btrfs driver are active, and which clients they admit."""

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.moves.peers import BtrfsPeers
from manila_lite.share.drivers.btrfs.moves.replicas import Replica, ReplicaState
from manila_lite.share.drivers.btrfs.volumes.pool import Pool
from manila_lite.share.drivers.contract.replication import ACTIVE
from manila_lite.share.drivers.files.replication import READABLE, Role

LOG = log.getLogger(__name__)


class BtrfsRoles:
    """The roles of our replicas, which both sides have to agree on."""

    def __init__(self, backend: BtrfsBackend, peers: BtrfsPeers):
        self._backend = backend
        self._peers = peers

    def role_of(self, share: base.ShareForDriver) -> str:
        """Return the effective role: both sides have to agree on it."""
        if share['replica_state'] not in (None, ACTIVE):
            return Role.PASSIVE
        own = self._peers.own_replica(share)
        if own.find() is None:
            return Role.ACTIVE
        state = own.state()
        if state.role != Role.RETIRING:
            return state.role
        with self._backend.try_lock_copies(own.name) as is_free:
            if not is_free or own.state() != state:
                return Role.PASSIVE  # the promotion is in progress
            return self._role_after_promotion(state)

    def _role_after_promotion(self, state: ReplicaState) -> str:
        """Return what an interrupted promotion has left behind."""
        successor = self._peers.replica_at(state.source_host, state.source)
        if successor is None:
            return Role.PASSIVE
        found = successor.state()
        is_replaced = found.role == Role.ACTIVE and found.generation > state.generation
        return Role.PASSIVE if is_replaced else Role.ACTIVE

    def denies_all(self, share: base.ShareForDriver) -> bool:
        """Return whether no clients are admitted, whatever the rules say."""
        return (
            share['replication_type'] != READABLE and self.role_of(share) != Role.ACTIVE
        )

    def is_read_only(self, share: base.ShareForDriver) -> bool:
        """Return whether clients may only read, whatever the rules say."""
        return self.role_of(share) != Role.ACTIVE

    def demote_superseded(self, pool: Pool) -> None:
        """Stop clients from writing to replicas that others have replaced.

        That happened while one of the back ends was out of reach. Raises
        OSError if that cannot be read from the pool.
        """
        for name, record in list(pool.catalog.replicas.records()):
            state = ReplicaState(**record)
            if state.role == Role.PASSIVE:
                continue
            own = Replica(self._backend, name, None)
            for other_name, host in state.others.items():
                try:
                    self._compare(own, other_name, host)
                except (OSError, exception.ShareBackendException) as error:
                    LOG.warning(
                        'Replicas %(name)s and %(other)s cannot be compared: %(error)s',
                        {'name': name, 'other': other_name, 'error': error},
                    )

    def _compare(self, own: Replica, name: str, host: str) -> None:
        other = self._peers.replica_at(host, name)
        if other is None or own.find() is None:
            return
        here, there = own.state(), other.state()
        if there.role != Role.ACTIVE or here.role == Role.PASSIVE:
            return
        kind = self._backend.configuration.btrfs_replication_type
        if there.generation > here.generation:
            with self._backend.changing(own.name):
                _warn(own, other)
                own.become_passive_before_exports(other, kind)
        elif here.role == Role.ACTIVE and there.generation < here.generation:
            with other.backend.changing(other.name):
                _warn(other, own)
                other.become_passive(own, kind)


def _warn(old: Replica, new: Replica) -> None:
    LOG.warning(
        'Replica %(name)s is no longer active: %(other)s has taken over',
        {'name': old.name, 'other': new.name},
    )
