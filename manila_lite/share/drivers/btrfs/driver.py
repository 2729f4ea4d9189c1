"""Shares that NFS clients mount: btrfs on this machine, and NFS-Ganesha.

Sizes, snapshots and access rules hold for what clients read and write. The
NFS server goes on while the share service is stopped. `pool` has the volumes,
`exports` what clients see of them, `supervisor` what keeps the server
running, and `kernel` all that needs privileges.
"""

from typing import Any

from manila_lite.context import RequestContext
from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs.access import BtrfsAccess
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.managing import BtrfsManaging
from manila_lite.share.drivers.btrfs.pool import Pool
from manila_lite.share.drivers.btrfs.shares import BtrfsShares
from manila_lite.share.drivers.btrfs.snapshots import BtrfsSnapshots
from manila_lite.share.drivers.delegation import Delegation
from manila_lite.share.drivers.space import GIB


def _admit_call(driver: 'BtrfsDriver') -> None:
    driver.backend.require()
    driver.backend.fencing.admit_call()


_shares = Delegation['BtrfsDriver', BtrfsShares](
    lambda driver: driver.shares, _admit_call
)
_snapshots = Delegation['BtrfsDriver', BtrfsSnapshots](
    lambda driver: driver.snapshots, _admit_call
)
_access = Delegation['BtrfsDriver', BtrfsAccess](
    lambda driver: driver.access, _admit_call
)
_managing = Delegation['BtrfsDriver', BtrfsManaging](
    lambda driver: driver.managing, _admit_call
)


class BtrfsDriver(
    base.ShareDriver,
    base.CreateFromSnapshotSupport,
    base.RevertSupport,
    base.MountSnapshotSupport,
    base.ManageSupport,
):
    """It delegates to its parts, which share one `BtrfsBackend`."""

    shares: BtrfsShares
    snapshots: BtrfsSnapshots
    access: BtrfsAccess
    managing: BtrfsManaging

    ipv6_implemented = True

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(False, *args, **kwargs)
        self.backend = BtrfsBackend(self.configuration)
        self.shares = BtrfsShares(self.backend)
        self.snapshots = BtrfsSnapshots(self.backend)
        self.access = BtrfsAccess(self.backend)
        self.managing = BtrfsManaging(self.backend)

    # Start

    def check_for_setup_error(self) -> None:
        """Mount the pools and wait until the NFS server exports all shares."""
        self.backend.start(self.has_shares)

    def check_health(self) -> None:
        """Check that clients can use the shares."""
        self.backend.check_health()

    def get_backend_info(self, context: RequestContext) -> dict[str, str]:
        return {
            'addresses': ' '.join(self.configuration.btrfs_export_addresses),
            'port': str(self.configuration.btrfs_nfs_port),
        }

    ensure_shares = _shares(BtrfsShares.ensure_shares)
    ensure_share = _shares(BtrfsShares.ensure_share)

    def get_pool(self, share: base.ShareForDriver) -> str:
        found = self.backend.find(Kind.SHARE, share['name'])
        pool = found[0] if found else self.backend.pool_for(share)
        return pool.name

    # Shares and snapshots

    create_share = _shares(BtrfsShares.create_share)
    create_share_from_snapshot = _shares(
        BtrfsShares.create_share_from_snapshot
    )
    delete_share = _shares(BtrfsShares.delete_share)
    extend_share = _shares(BtrfsShares.extend_share)
    shrink_share = _shares(BtrfsShares.shrink_share)
    get_share_status = _shares(BtrfsShares.get_share_status)
    update_share_usage_size = _shares(BtrfsShares.update_share_usage_size)
    update_access = _access(BtrfsAccess.update_access)

    create_snapshot = _snapshots(BtrfsSnapshots.create_snapshot)
    delete_snapshot = _snapshots(BtrfsSnapshots.delete_snapshot)
    get_snapshot_status = _snapshots(BtrfsSnapshots.get_snapshot_status)
    revert_to_snapshot = _snapshots(BtrfsSnapshots.revert_to_snapshot)
    snapshot_update_access = _access(BtrfsAccess.snapshot_update_access)

    # Managing

    manage_existing = _managing(BtrfsManaging.manage_existing)
    unmanage = _managing(BtrfsManaging.unmanage)
    manage_existing_snapshot = _managing(
        BtrfsManaging.manage_existing_snapshot
    )
    unmanage_snapshot = _managing(BtrfsManaging.unmanage_snapshot)

    # Statistics

    def _update_share_stats(self, data: base.Stats | None = None) -> None:
        self.backend.require()
        super()._update_share_stats(
            {
                'vendor_name': 'manila_lite',
                'storage_protocol': 'NFS',
                'pools': [
                    self._pool_stats(pool)
                    for pool in self.backend.pools.values()
                ],
                **(data or {}),
            }
        )

    def _pool_stats(self, pool: Pool) -> base.Stats:
        total, free = pool.capacity_bytes()
        sizes = pool.share_sizes().values()
        provisioned = sum(size.limit for size in sizes) // GIB
        return self.capacity_options() | {
            'pool_name': pool.name,
            'total_capacity_gb': round(total / GIB, 2),
            'free_capacity_gb': round(free / GIB, 2),
            'used_capacity_gb': round(
                sum(size.used for size in sizes) / GIB, 2
            ),
            'allocated_capacity_gb': provisioned,
            'provisioned_capacity_gb': provisioned,
            'thin_provisioning': True,
        }

    def get_configured_ip_versions(self) -> list[int]:
        return self.backend.ip_versions()
