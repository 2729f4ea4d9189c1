"""Shares that clients mount: btrfs on this machine, Ganesha and Samba.

Sizes, snapshots and access rules hold for what clients read and write. The
servers go on while the share service is stopped. `pool` has the volumes,
`exports` what clients see of them, `supervisor` what keeps the server
running, `servers` the share servers, and `kernel` and `server_network` what
needs privileges.
"""

from collections.abc import Mapping, Sequence
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
from manila_lite.share.drivers.btrfs.moves.promotion import BtrfsPromotion
from manila_lite.share.drivers.btrfs.moves.replicated_snapshots import (
    BtrfsReplicatedSnapshots,
)
from manila_lite.share.drivers.btrfs.moves.replication import BtrfsReplication
from manila_lite.share.drivers.btrfs.moves.roles import BtrfsRoles
from manila_lite.share.drivers.btrfs.moves.server_migration import BtrfsServerMigration
from manila_lite.share.drivers.btrfs.moves.syncing import BtrfsSyncing
from manila_lite.share.drivers.btrfs.servers.share_servers import BtrfsShareServers
from manila_lite.share.drivers.btrfs.volumes.managing import BtrfsManaging
from manila_lite.share.drivers.btrfs.volumes.pool import Pool
from manila_lite.share.drivers.btrfs.volumes.shares import BtrfsShares
from manila_lite.share.drivers.btrfs.volumes.snapshots import BtrfsSnapshots
from manila_lite.share.drivers.contract.share_servers import ServerDetails
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


_shares = Delegation['BtrfsDriver', BtrfsShares](
    lambda driver: driver.shares, _admit_call, _explained, _has_freed_space
)
_ensuring = Delegation['BtrfsDriver', BtrfsShares](
    lambda driver: driver.shares, _admit_with_lost_pools, _explained
)
_snapshots = Delegation['BtrfsDriver', BtrfsSnapshots](
    lambda driver: driver.snapshots, _admit_call, _explained, _has_freed_space
)
_access = Delegation['BtrfsDriver', BtrfsAccess](
    lambda driver: driver.access, _admit_with_lost_pools, _explained
)
_managing = Delegation['BtrfsDriver', BtrfsManaging](
    lambda driver: driver.managing, _admit_call, _explained
)


_migration = Delegation['BtrfsDriver', BtrfsMigration](
    lambda driver: driver.migration, _admit_call, _explained
)


def _admit_servers(driver: 'BtrfsDriver') -> None:
    if not driver.driver_handles_share_servers:
        raise NotImplementedError
    _admit_call(driver)


_managing_on_servers = Delegation['BtrfsDriver', BtrfsManaging](
    lambda driver: driver.managing, _admit_servers, _explained
)
_servers = Delegation['BtrfsDriver', BtrfsShareServers](
    lambda driver: driver.servers, _admit_servers, _explained
)
_set_up = _servers(BtrfsShareServers.set_up)
_tear_down = _servers(BtrfsShareServers.tear_down)
_server_migration = Delegation['BtrfsDriver', BtrfsServerMigration](
    lambda driver: driver.server_migration, _admit_servers, _explained
)
_check_server_migration = _server_migration(
    BtrfsServerMigration.share_server_migration_check_compatibility
)


def _admit_replication(driver: 'BtrfsDriver') -> None:
    if not driver.configuration.btrfs_replication_type:
        raise NotImplementedError
    _admit_call(driver)


_promotion = Delegation['BtrfsDriver', BtrfsPromotion](
    lambda driver: driver.promotion, _admit_replication, _explained
)
_replicas = Delegation['BtrfsDriver', BtrfsReplication](
    lambda driver: driver.replicas, _admit_replication, _explained
)
_replicated_snapshots = Delegation['BtrfsDriver', BtrfsReplicatedSnapshots](
    lambda driver: driver.replicated_snapshots, _admit_replication, _explained
)


class BtrfsDriver(
    base.ShareDriver,
    base.CreateFromSnapshotSupport,
    base.RevertSupport,
    base.MountSnapshotSupport,
    base.ManageSupport,
    base.ManageWithServerSupport,
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
    promotion: BtrfsPromotion
    replicas: BtrfsReplication
    replicated_snapshots: BtrfsReplicatedSnapshots

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
        syncing = BtrfsSyncing(self.backend, self.peers)
        self.promotion = BtrfsPromotion(self.backend, self.peers, syncing)
        self.replicated_snapshots = BtrfsReplicatedSnapshots(
            self.backend, self.peers, self.snapshots, syncing
        )
        self.replicas = BtrfsReplication(
            self.backend,
            self.peers,
            self.roles,
            syncing,
            self.shares,
            self.snapshots,
            self.access,
            self.promotion,
            self.replicated_snapshots,
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

    ensure_shares = _ensuring(BtrfsShares.ensure_shares)
    ensure_share = _shares(BtrfsShares.ensure_share)

    def get_pool(self, share: base.ShareForDriver) -> str:
        found = self.backend.find(Kind.SHARE, share['name'])
        pool = found[0] if found else self.backend.pool_for(share)
        return pool.name

    # Shares and snapshots

    create_share = _shares(BtrfsShares.create_share)
    create_share_from_snapshot = _shares(BtrfsShares.create_share_from_snapshot)
    delete_share = _shares(BtrfsShares.delete_share)
    extend_share = _shares(BtrfsShares.extend_share)
    shrink_share = _shares(BtrfsShares.shrink_share)
    get_share_status = _shares(BtrfsShares.get_share_status)
    update_share_usage_size = _shares(BtrfsShares.update_share_usage_size)
    connection_get_info = _shares(BtrfsShares.connection_get_info)
    update_access = _access(BtrfsAccess.update_access)

    create_snapshot = _snapshots(BtrfsSnapshots.create_snapshot)
    delete_snapshot = _snapshots(BtrfsSnapshots.delete_snapshot)
    get_snapshot_status = _snapshots(BtrfsSnapshots.get_snapshot_status)
    revert_to_snapshot = _snapshots(BtrfsSnapshots.revert_to_snapshot)
    snapshot_update_access = _access(BtrfsAccess.snapshot_update_access)

    # Share servers

    def _setup_server(
        self,
        network_info: list[base.NetworkInfo],
        metadata: Mapping[str, Any] | None = None,
    ) -> dict[str, str]:
        return _set_up(self, network_info)

    def _teardown_server(
        self,
        server_details: ServerDetails,
        security_services: Sequence[base.SecurityServiceForDriver] | None = None,
    ) -> None:
        _tear_down(self, server_details['server_id'])

    def get_network_allocations_number(self) -> int:
        return 1

    get_share_server_pools = _servers(BtrfsShareServers.get_share_server_pools)

    def share_server_migration_check_compatibility(
        self,
        context: RequestContext,
        share_server: base.ShareServerMapping,
        dest_host: str,
        old_share_network: Mapping[str, Any],
        new_share_network: Mapping[str, Any],
        shares_request_spec: Mapping[str, Any],
    ) -> base.ServerMigrationCompatibility:
        if not self.driver_handles_share_servers:
            return {'compatible': False}
        return _check_server_migration(
            self,
            context,
            share_server,
            dest_host,
            old_share_network,
            new_share_network,
            shares_request_spec,
        )

    share_server_migration_start = _server_migration(
        BtrfsServerMigration.share_server_migration_start
    )
    share_server_migration_continue = _server_migration(
        BtrfsServerMigration.share_server_migration_continue
    )
    share_server_migration_get_progress = _server_migration(
        BtrfsServerMigration.share_server_migration_get_progress
    )
    share_server_migration_cancel = _server_migration(
        BtrfsServerMigration.share_server_migration_cancel
    )
    share_server_migration_complete = _server_migration(
        BtrfsServerMigration.share_server_migration_complete
    )

    # Managing

    manage_existing = _managing(BtrfsManaging.manage_existing)
    unmanage = _managing(BtrfsManaging.unmanage)
    manage_existing_snapshot = _managing(BtrfsManaging.manage_existing_snapshot)
    unmanage_snapshot = _managing(BtrfsManaging.unmanage_snapshot)

    manage_existing_with_server = _managing_on_servers(
        BtrfsManaging.manage_existing_with_server
    )
    unmanage_with_server = _managing_on_servers(BtrfsManaging.unmanage_with_server)
    manage_existing_snapshot_with_server = _managing_on_servers(
        BtrfsManaging.manage_existing_snapshot_with_server
    )
    unmanage_snapshot_with_server = _managing_on_servers(
        BtrfsManaging.unmanage_snapshot_with_server
    )

    # Migration

    migration_check_compatibility = _migration(
        BtrfsMigration.migration_check_compatibility
    )
    migration_start = _migration(BtrfsMigration.migration_start)
    migration_continue = _migration(BtrfsMigration.migration_continue)
    migration_get_progress = _migration(BtrfsMigration.migration_get_progress)
    migration_cancel = _migration(BtrfsMigration.migration_cancel)
    migration_complete = _migration(BtrfsMigration.migration_complete)

    # Replicas

    create_replica = _replicas(BtrfsReplication.create_replica)
    delete_replica = _replicas(BtrfsReplication.delete_replica)
    update_replica_state = _replicas(BtrfsReplication.update_replica_state)
    get_replica_status = _replicas(BtrfsReplication.get_replica_status)
    promote_replica = _promotion(BtrfsPromotion.promote_replica)
    create_replicated_snapshot = _replicated_snapshots(
        BtrfsReplicatedSnapshots.create_replicated_snapshot
    )
    delete_replicated_snapshot = _replicated_snapshots(
        BtrfsReplicatedSnapshots.delete_replicated_snapshot
    )
    update_replicated_snapshot = _replicated_snapshots(
        BtrfsReplicatedSnapshots.update_replicated_snapshot
    )
    revert_to_replicated_snapshot = _replicated_snapshots(
        BtrfsReplicatedSnapshots.revert_to_replicated_snapshot
    )

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
        return self.capacity_options() | {
            'pool_name': pool.name,
            'total_capacity_gb': round(total / GIB, 2),
            'free_capacity_gb': round(free / GIB, 2),
            'used_capacity_gb': round(sum(size.used for size in sizes) / GIB, 2),
            'allocated_capacity_gb': provisioned,
            'provisioned_capacity_gb': provisioned,
            'thin_provisioning': True,
        }

    def get_configured_ip_versions(self) -> list[int]:
        return self.backend.ip_versions()
