"""Shares that clients mount: btrfs on this machine, Ganesha and Samba.

Sizes, snapshots and access rules hold for what clients read and write. The
servers keep running while the share service is stopped. `pool` has the volumes,
`exports` what clients see of them, `supervisor` what keeps the server running,
`servers` the share servers, and `kernel` and `server_network` what needs
privileges.
"""

import contextlib
from typing import Any

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.exports.access import BtrfsAccess
from manila_lite.share.drivers.btrfs.moves.clones import BtrfsClones
from manila_lite.share.drivers.btrfs.moves.migration import BtrfsMigration
from manila_lite.share.drivers.btrfs.moves.peers import BtrfsPeers
from manila_lite.share.drivers.btrfs.moves.replication import BtrfsReplication
from manila_lite.share.drivers.btrfs.moves.roles import BtrfsRoles
from manila_lite.share.drivers.btrfs.moves.server_migration import BtrfsServerMigration
from manila_lite.share.drivers.btrfs.servers.share_servers import BtrfsShareServers
from manila_lite.share.drivers.btrfs.volumes.managing import BtrfsManaging
from manila_lite.share.drivers.btrfs.volumes.pool import Pool
from manila_lite.share.drivers.btrfs.volumes.shares import BtrfsShares
from manila_lite.share.drivers.btrfs.volumes.snapshots import BtrfsSnapshots
from manila_lite.share.drivers.delegation import Delegation
from manila_lite.share.drivers.space import GIB, is_out_of_space


def _admit_call(driver: 'BtrfsDriver') -> None:
    driver.backend.require()
    _admit_with_lost_pools(driver)


def _admit_with_lost_pools(driver: 'BtrfsDriver') -> None:
    """Do the same for methods that require only the pool of a share."""
    with driver.backend.explained_errors():
        if not driver.driver_handles_share_servers:
            driver.backend.keep_exportable()
        driver.backend.fencing.admit_call()


def _explained(driver: 'BtrfsDriver') -> contextlib.AbstractContextManager[None]:
    return driver.backend.explained_errors()


def _has_freed_space(driver: 'BtrfsDriver', error: Exception) -> bool:
    """Free what was removed if there was no space; return whether it helps."""
    cause = error.__cause__
    return (
        isinstance(cause, OSError)
        and is_out_of_space(cause)
        and driver.backend.free_removed()
    )


def _admit_servers(driver: 'BtrfsDriver') -> None:
    if not driver.driver_handles_share_servers:
        raise NotImplementedError
    _admit_call(driver)


def _admit_question(driver: 'BtrfsDriver') -> None:
    """Report that a back end without share servers does not support them."""
    if driver.driver_handles_share_servers:
        _admit_call(driver)


def _admit_replication(driver: 'BtrfsDriver') -> None:
    if not driver.configuration.btrfs_replication_type:
        raise NotImplementedError
    _admit_call(driver)


_freeing = Delegation['BtrfsDriver'](_admit_call, _explained, _has_freed_space)
_with_lost_pools = Delegation['BtrfsDriver'](_admit_with_lost_pools, _explained)
_admitted = Delegation['BtrfsDriver'](_admit_call, _explained)
_on_servers = Delegation['BtrfsDriver'](_admit_servers, _explained)
_asked = Delegation['BtrfsDriver'](_admit_question, _explained)
_replicating = Delegation['BtrfsDriver'](_admit_replication, _explained)


@_freeing('shares', 'snapshots')
@_with_lost_pools('access', 'shares.ensure_shares')
@_admitted('managing', 'migration')
@_on_servers(
    'servers',
    'servers._setup_server',
    'servers._teardown_server',
    'managing.manage_existing_with_server',
    'managing.unmanage_with_server',
    'managing.manage_existing_snapshot_with_server',
    'managing.unmanage_snapshot_with_server',
    'server_migration',
)
@_asked('server_migration.share_server_migration_check_compatibility')
@_replicating('replicas')
class BtrfsDriver(
    base.ShareDriver,
    base.CreateFromSnapshotSupport,
    base.RevertSupport,
    base.MountSnapshotSupport,
    base.ManageSupport,
    base.ManageWithServerSupport,
    base.ShareServerSupport,
    base.ServerMigrationSupport,
    base.ConnectionSupport,
    base.ShareMigrationSupport,
):
    """It delegates to its parts, which share one `BtrfsBackend`."""

    shares: BtrfsShares
    snapshots: BtrfsSnapshots
    access: BtrfsAccess
    managing: BtrfsManaging
    migration: BtrfsMigration
    servers: BtrfsShareServers
    server_migration: BtrfsServerMigration
    replicas: BtrfsReplication

    ipv6_implemented = True

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__((False, True), *args, **kwargs)
        self.backend = BtrfsBackend(self.configuration)
        self.peers = BtrfsPeers(self.backend)
        self.shares = BtrfsShares(self.backend, BtrfsClones(self.backend, self.peers))
        self.snapshots = BtrfsSnapshots(self.backend)
        self.roles = BtrfsRoles(self.backend, self.peers)
        self.backend.before_exports = self.roles.demote_superseded
        self.access = BtrfsAccess(self.backend, self.roles)
        self.managing = BtrfsManaging(self.backend)
        self.migration = BtrfsMigration(self.backend, self.peers)
        self.server_migration = BtrfsServerMigration(self.backend, self.peers)
        self.servers = BtrfsShareServers(self.backend, self.server_migration)
        self.replicas = BtrfsReplication(
            self.backend,
            self.peers,
            self.roles,
            self.shares,
            self.snapshots,
            self.access,
        )

    # Start

    def check_for_setup_error(self) -> None:
        """Mount the pools and wait until the servers export all shares."""
        if self.configuration.btrfs_replication_type and not self.replication_domain:
            raise exception.BadConfiguration(
                reason=f'back end "{self.configuration.config_group}": '
                'btrfs_replication_type needs a replication_domain'
            )
        self.backend.disks.registry = self.disks
        self.backend.start(self.has_shares)
        self.snapshots.limit_interrupted()
        self.migration.forget_ended()

    def check_health(self) -> None:
        """Check that clients can use the shares."""
        with self.backend.explained_errors():
            self.backend.check_health()

    def keep_serving(self) -> None:
        """Replace the supervisor of the servers if it has ended or hangs."""
        self.backend.watch()

    def get_backend_info(self, context: RequestContext) -> dict[str, str]:
        port = {'port': str(self.configuration.btrfs_nfs_port)}
        if self.driver_handles_share_servers:
            return port
        return {
            'addresses': ' '.join(self.configuration.btrfs_export_addresses),
            **port,
        }

    def get_pool(self, share: base.ShareForDriver) -> str:
        found = self.backend.find(Kind.SHARE, share['name'])
        pool = found[0] if found else self.backend.pool_for(share)
        return pool.name

    # Share servers

    def get_network_allocations_number(self) -> int:
        return 1

    # Statistics

    def _update_share_stats(self, data: base.Stats | None = None) -> None:
        self.backend.require()
        with self.backend.explained_errors():
            pools = [self._pool_stats(pool) for pool in self.backend.pools.values()]
        super()._update_share_stats(
            {
                'vendor_name': 'manila_lite',
                'storage_protocol': 'NFS_CIFS'
                if self.configuration.btrfs_cifs
                else 'NFS',
                'replication_type': self.configuration.btrfs_replication_type,
                'share_server_multiple_subnet_support': (
                    self.driver_handles_share_servers
                ),
                'server_open_files_ratio': self._open_files_ratio(),
                'pools': pools,
                **(data or {}),
            }
        )

    def _open_files_ratio(self) -> float:
        """Return what the NFS server with most open files has of its limit."""
        servers = (
            self.backend.servers.ready()
            if self.driver_handles_share_servers
            else [self.backend.daemons]
        )
        found = [server.open_files() for server in servers]
        return max((one.used / one.most for one in found if one), default=0.0)

    def _pool_stats(self, pool: Pool) -> base.Stats:
        total, free = pool.capacity_bytes()
        sizes = pool.share_sizes().values()
        provisioned = sum(size.limit for size in sizes) // GIB
        used = sum(size.used for size in sizes)
        return self.pool_stats(pool.name, total / GIB, free / GIB, provisioned) | {
            'used_capacity_gb': round(used / GIB, 2)
        }

    def get_configured_ip_versions(self) -> list[int]:
        return self.backend.ip_versions()
