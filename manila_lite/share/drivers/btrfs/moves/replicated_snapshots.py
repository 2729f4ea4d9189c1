"""Snapshots of shares that the btrfs driver replicates."""

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.moves.peers import BtrfsPeers
from manila_lite.share.drivers.btrfs.moves.replicas import Replica
from manila_lite.share.drivers.btrfs.moves.syncing import BtrfsSyncing
from manila_lite.share.drivers.btrfs.volumes.snapshots import BtrfsSnapshots
from manila_lite.share.drivers.files.replicated_snapshots import ReplicatedSnapshots

LOG = log.getLogger(__name__)


class BtrfsReplicatedSnapshots(ReplicatedSnapshots[Replica]):
    def __init__(
        self,
        backend: BtrfsBackend,
        peers: BtrfsPeers,
        snapshots: BtrfsSnapshots,
        syncing: BtrfsSyncing,
    ):
        super().__init__(peers, snapshots)
        self._backend = backend
        self._own = snapshots
        self._peers = peers
        self._syncing = syncing

    def _copy(
        self,
        share_replica: base.ShareForDriver,
        active: Replica | None,
        source: base.SnapshotForDriver | None,
        snapshot: base.SnapshotForDriver,
    ) -> bool:
        own = self._peers.own_replica(share_replica)
        with self._backend.try_copying(own.name) as is_locked:
            return is_locked and self.ensure_snapshot(own, active, source, snapshot)

    def _has_snapshot(self, replica: Replica, name: str) -> bool:
        return replica.backend.find(Kind.SNAPSHOT, name) is not None

    def _place(self, snapshot: base.SnapshotForDriver) -> base.SnapshotReply:
        return self._own.reply(*self._backend.get_snapshot(snapshot))

    def ensure_snapshot(
        self,
        own: Replica,
        leader: Replica | None,
        source: base.SnapshotForDriver | None,
        snapshot: base.SnapshotForDriver,
    ) -> bool:
        """Return whether a snapshot exists here; copy it if possible.

        The caller has locked the copies of our replica.
        """
        name = snapshot['name']
        if self._backend.find(Kind.SNAPSHOT, name) is not None:
            return True
        if leader is None or source is None or own.find() is None:
            return False
        try:
            return self._syncing.copy_snapshot(own, leader, source['name'], name)
        except (OSError, exception.ShareBackendException) as error:
            LOG.warning(
                'Cannot copy snapshot %(name)s: %(error)s',
                {'name': name, 'error': error},
            )
        return False
