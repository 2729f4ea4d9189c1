"""Which replicas of the btrfs driver are active, and which clients they admit."""

from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.moves.peers import BtrfsPeers
from manila_lite.share.drivers.btrfs.moves.replicas import Replica, ReplicaState
from manila_lite.share.drivers.btrfs.volumes.pool import Pool
from manila_lite.share.drivers.files.replicas import (
    READABLE,
    Role,
    Roles,
    ignoring_failures,
    is_superseded,
    warn_of_successor,
)


class BtrfsRoles(Roles[Replica]):
    def __init__(self, backend: BtrfsBackend, peers: BtrfsPeers):
        super().__init__(peers)
        self._backend = backend

    def denies_all(self, share: base.ShareForDriver) -> bool:
        """Do so for shares that have no replicas any more, too."""
        return (
            share['replication_type'] != READABLE and self.role_of(share) != Role.ACTIVE
        )

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
            for other, host in state.others.items():
                with ignoring_failures(name, f'be compared to {other}'):
                    self._compare(own, self._replicas.replica_at(host, other))

    def _compare(self, own: Replica, other: Replica | None) -> None:
        if other is None or own.find() is None:
            return
        here, there = own.state(), other.state()
        kind = self._backend.configuration.btrfs_replication_type
        if is_superseded(here, there):
            warn_of_successor(own, other)
            own.become_passive_before_exports(other, kind)
        elif there.role == Role.ACTIVE and is_superseded(there, here):
            warn_of_successor(other, own)
            other.become_passive(own, kind)
