"""Shares on CephFS, which clients mount natively with a key of their own.

The cluster is what all nodes share: any share service that has the back end's
`host` can serve it, several at once, and none of them holds any state.
"""

from collections.abc import Callable
import time
from typing import Any

from manila_lite.share.drivers import base
from manila_lite.share.drivers.cephfs import capabilities
from manila_lite.share.drivers.cephfs.access import CephfsAccess
from manila_lite.share.drivers.cephfs.backend import CephfsBackend, State
from manila_lite.share.drivers.cephfs.connections import CephfsConnections
from manila_lite.share.drivers.cephfs.copies import CephfsCopies
from manila_lite.share.drivers.cephfs.exports import CephfsExports
from manila_lite.share.drivers.cephfs.managing import CephfsManaging
from manila_lite.share.drivers.cephfs.records import SHARE
from manila_lite.share.drivers.cephfs.replicas import CephfsPeers, CephfsRoles
from manila_lite.share.drivers.cephfs.replication import CephfsReplication
from manila_lite.share.drivers.cephfs.shares import CephfsShares
from manila_lite.share.drivers.cephfs.snapshots import CephfsSnapshots
from manila_lite.share.drivers.delegation import Delegation
from manila_lite.share.drivers.space import GIB


def _admit_call(driver: 'CephfsDriver') -> None:
    driver.backend.records.admit_call()


def _admit_replication(driver: 'CephfsDriver') -> None:
    if not driver.configuration.cephfs_replication_type:
        raise NotImplementedError
    _admit_call(driver)


_admitted = Delegation['CephfsDriver'](_admit_call)
_admitting = Delegation['CephfsDriver']()
"""Parts that record the token of a call with the first that they read."""

_replicating = Delegation['CephfsDriver'](_admit_replication)


@_admitted('shares', 'snapshots', 'access', 'managing', 'connections')
@_replicating('replicas')
@_admitting('shares.create_share', 'shares.delete_share', 'access.update_access')
@_admitting('snapshots.create_snapshot', 'snapshots.delete_snapshot')
class CephfsDriver(
    base.ShareDriver,
    base.CreateFromSnapshotSupport,
    base.RevertSupport,
    base.ManageSupport,
    base.ConnectionSupport,
    base.ReplicationSupport,
):
    """It delegates to its parts, which share one `CephfsBackend`."""

    shares: CephfsShares
    snapshots: CephfsSnapshots
    access: CephfsAccess
    managing: CephfsManaging
    connections: CephfsConnections
    replicas: CephfsReplication

    ipv6_implemented = True

    def __init__(
        self,
        *args: Any,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], object] = time.sleep,
        **kwargs: Any,
    ):
        super().__init__(False, *args, **kwargs)
        self._is_lost = False  # since the last check of its health
        self.backend = CephfsBackend(self.configuration, clock, sleep)
        self.exports = CephfsExports(self.backend)
        self.copies = CephfsCopies(self.backend)
        self.peers = CephfsPeers(self.backend, self.exports)
        self.roles = CephfsRoles(self.backend, self.peers)
        self.shares = CephfsShares(self.backend, self.exports, self.peers, self.copies)
        self.snapshots = CephfsSnapshots(self.backend, self.copies)
        self.access = CephfsAccess(self.backend, self.exports, self.roles)
        self.managing = CephfsManaging(self.backend)
        self.connections = CephfsConnections(self.backend)
        self.replicas = CephfsReplication(
            self.backend,
            self.peers,
            self.roles,
            self.shares,
            self.snapshots,
            self.access,
            self.copies,
        )

    def check_for_setup_error(self) -> None:
        """Check that the cluster is ours, can be reached, and lets us work."""
        self._check_replication()
        capabilities.check(self.backend)
        self.backend.claim(self.disks)
        self.backend.records.forget_old_tokens()
        self._demote_superseded()

    def _check_replication(self) -> None:
        if self.configuration.cephfs_replication_type and not self.replication_domain:
            raise self.backend.bad_option(
                'cephfs_replication_type needs a replication_domain'
            )

    def _demote_superseded(self) -> None:
        if replication_type := self.configuration.cephfs_replication_type:
            self.roles.demote_superseded(replication_type)

    def check_health(self) -> None:
        """Check that manager, metadata server and OSDs answer."""
        was_lost, self._is_lost = self._is_lost, True
        self.backend.claim(self.disks)
        self.backend.run('subvolumegroup getpath')
        self.backend.records.try_to_write()
        self.backend.records.forget_old_tokens()
        self._is_lost = False
        if was_lost:
            self._demote_superseded()

    def keep_serving(self) -> None:
        """Cut off NFS gateways that have died, and let in those that are back."""
        self.exports.watch()

    def get_pool(self, share: base.ShareForDriver) -> str:
        return self.backend.filesystem

    def _update_share_stats(self, data: base.Stats | None = None) -> None:
        """Report what the data pool has: Ceph counts copies and full OSDs."""
        found = self.backend.cluster.mon('df')['pools']
        stats = next(
            one['stats'] for one in found if one['name'] == self.backend.data_pool
        )
        records = self.backend.records.get_all(SHARE).values()
        provisioned = sum(
            one['size'] for one in records if one['state'] != State.UNMANAGED
        )
        free = stats['max_avail'] / GIB
        pool = self.pool_stats(
            self.backend.filesystem, stats['stored'] / GIB + free, free, provisioned
        )
        vendor = {
            'vendor_name': 'manila_lite',
            'storage_protocol': '_'.join(self.backend.protocols),
            'replication_type': self.configuration.cephfs_replication_type,
        }
        super()._update_share_stats(vendor | {'pools': [pool]} | (data or {}))

    def get_configured_ip_versions(self) -> list[int]:
        return [4, 6]
