"""The dummy driver: a back end without data, made for tests.

Its state is on disk and survives the end of the process. Any method can be
delayed, made to fail before, half-way through or after its work, or made to
hang: by options or with the `…_next` methods.
"""

from collections.abc import Callable
import time
from typing import Any

from manila_lite import exception
from manila_lite.context import FencingToken, RequestContext
from manila_lite.share.drivers import base
from manila_lite.share.drivers.dummy import faults
from manila_lite.share.drivers.dummy.access import AccessCall, DummyAccess
from manila_lite.share.drivers.dummy.backend import (
    DummyBackend,
    access_inventory,
    backup_inventory,
    group_inventory,
    inventory,
    replica_inventory,
    server_inventory,
    servers_of_groups,
    servers_of_shares,
    snapshot_access_inventory,
    snapshot_inventory,
)
from manila_lite.share.drivers.dummy.backups import DummyBackups
from manila_lite.share.drivers.dummy.domain_member import DomainMember
from manila_lite.share.drivers.dummy.fencing import Overlap
from manila_lite.share.drivers.dummy.groups import DummyGroups
from manila_lite.share.drivers.dummy.managing import DummyManaging
from manila_lite.share.drivers.dummy.replication import DummyReplication
from manila_lite.share.drivers.dummy.replication_domain import DummyReplica
from manila_lite.share.drivers.dummy.server_migration import DummyServerMigration
from manila_lite.share.drivers.dummy.share_migration import DummyShareMigration
from manila_lite.share.drivers.dummy.share_servers import DummyServers
from manila_lite.share.drivers.dummy.shares import USED_GB_KEY, DummyShares
from manila_lite.share.drivers.dummy.snapshots import (
    DummyReplicatedSnapshots,
    DummySnapshots,
)
from manila_lite.share.drivers.dummy.state import Clients

# Tests import these from here.
__all__ = [
    'USED_GB_KEY',
    'DummyDriver',
    'access_inventory',
    'backup_inventory',
    'group_inventory',
    'inventory',
    'replica_inventory',
    'server_inventory',
    'servers_of_groups',
    'servers_of_shares',
    'snapshot_access_inventory',
    'snapshot_inventory',
]

_instrumented = faults.Delegation['DummyDriver']()


@_instrumented(
    'access',
    'shares',
    'snapshots',
    'managing',
    'servers',
    'servers._setup_server',
    'servers._teardown_server',
    'migrations',
    'share_migrations',
    'replicas',
    'replicated_snapshots',
    'groups',
    'backups',
)
class DummyDriver(
    base.ShareDriver,
    base.CreateFromSnapshotSupport,
    base.RevertSupport,
    base.MountSnapshotSupport,
    base.ManageSupport,
    base.ManageWithServerSupport,
    base.ShareServerSupport,
    base.ServerMigrationSupport,
    base.ShareMigrationSupport,
    base.ReplicationSupport,
    base.ShareGroupSupport,
    base.ShareGroupSnapshotSupport,
    base.BackupSupport,
    base.ConnectionSupport,
):
    """It delegates to its parts, which share one `DummyBackend`."""

    access: DummyAccess
    shares: DummyShares
    snapshots: DummySnapshots
    managing: DummyManaging
    servers: DummyServers
    migrations: DummyServerMigration
    share_migrations: DummyShareMigration
    replicas: DummyReplication
    replicated_snapshots: DummyReplicatedSnapshots
    groups: DummyGroups
    backups: DummyBackups

    security_service_update_support = True
    network_allocation_update_support = True
    qos_type_support = True
    restore_to_target_support = True
    encryption_support = ['share', 'share_server']

    def __init__(
        self, *args: Any, sleep: Callable[[float], object] = time.sleep, **kwargs: Any
    ):
        super().__init__((True, False), *args, **kwargs)
        self.backend = DummyBackend(
            self.configuration,
            self.replication_domain,
            faults.instrumented_methods(type(self)),
            sleep,
        )
        self.share_replicas_migration_support = (
            self.configuration.dummy_driver_share_replicas_migration
        )
        self.member = DomainMember(self.backend)
        self.access = DummyAccess(self.backend)
        self.servers = DummyServers(self.backend)
        self.migrations = DummyServerMigration(self.backend)
        self.share_migrations = DummyShareMigration(self.backend)
        self.shares = DummyShares(self.backend, self.member, self.servers)
        self.snapshots = DummySnapshots(self.backend, self.member)
        self.managing = DummyManaging(self.backend, self.member, self.servers)
        self.replicas = DummyReplication(
            self.backend, self.member, self.shares, self.snapshots, self.access
        )
        self.replicated_snapshots = DummyReplicatedSnapshots(
            self.backend, self.member, self.snapshots
        )
        self.groups = DummyGroups(
            self.backend, self.snapshots, self.servers, self.shares
        )
        self.backups = DummyBackups(self.backend, self.member)
        self._offer_controls()

    def _offer_controls(self) -> None:
        """Offer what tests control as methods of the driver."""
        self.faults = self.backend.faults
        self.fail_next = self.faults.fail_next
        self.half_fail_next = self.faults.half_fail_next
        self.lose_reply_next = self.faults.lose_reply_next
        self.hang_next = self.faults.hang_next
        self.make_unreachable = self.backend.state.make_unreachable
        self.make_reachable = self.backend.state.make_reachable
        self.refuse_rules = self.access.refuse_rules
        self.write = self.shares.write
        self.read = self.shares.read
        self.set_error = self.shares.set_error
        self.revert_to_size_next = self.snapshots.revert_to_size_next
        self.add_unmanaged_share = self.managing.add_unmanaged_share
        self.add_unmanaged_snapshot = self.managing.add_unmanaged_snapshot
        self.unmanaged_shares = self.managing.unmanaged_shares
        self.add_unmanaged_server = self.servers.add_unmanaged_server
        self.restrict_servers = self.servers.restrict_servers
        self.set_migration_target = self.migrations.set_target
        self.set_migration_capabilities = self.migrations.set_capabilities
        self.incoming = self.migrations.incoming
        self.set_share_migration_capabilities = self.share_migrations.set_capabilities

    # Inspection by tests

    def inventory(self) -> dict[str, int]:
        """Return the sizes of existing shares, by share instance id."""
        return inventory(self.backend.state.path)

    def snapshot_inventory(self) -> dict[str, int]:
        """Return the sizes of existing snapshots, by snapshot instance id."""
        return snapshot_inventory(self.backend.state.path)

    def access_inventory(self) -> Clients:
        """Return the effective clients, by share instance id."""
        return access_inventory(self.backend.state.path)

    def snapshot_access_inventory(self) -> Clients:
        """Return the effective clients, by snapshot instance id."""
        return snapshot_access_inventory(self.backend.state.path)

    def group_inventory(self) -> set[str]:
        """Return the ids of existing share groups."""
        return group_inventory(self.backend.state.path)

    def backup_inventory(self) -> dict[str, int]:
        """Return the progress of existing backups, by their ids."""
        return backup_inventory(self.backend.state.path)

    def replica_inventory(self) -> dict[str, DummyReplica]:
        """Return the existing replicas, by share instance id."""
        return replica_inventory(self.backend.state.path)

    def server_inventory(self) -> dict[str, list[str]]:
        """Return the addresses of servers, by share server id."""
        return server_inventory(self.backend.state.path)

    @property
    def calls(self) -> list[faults.RecordedCall]:
        """Return the latest calls, oldest first."""
        return self.faults.calls

    @property
    def refused_calls(self) -> list[tuple[str, FencingToken]]:
        """Return the calls refused for their token, oldest first."""
        return self.backend.fencing.refused

    @property
    def overlaps(self) -> list[Overlap]:
        """Return the calls that ran beside calls for other work."""
        return self.backend.fencing.overlaps

    @property
    def access_calls(self) -> list[AccessCall]:
        """Return the latest access calls that ran, oldest first."""
        return self.access.calls

    @property
    def last_quiesce_wait(self) -> int | None:
        """Return the quiesce wait time of the last promotion."""
        return self.replicas.last_quiesce_wait

    # Start

    @faults.instrumented
    def do_setup(self, context: RequestContext) -> None:
        self.backend.state.path.mkdir(parents=True, exist_ok=True)
        self.member.register()

    @faults.instrumented
    def check_for_setup_error(self) -> None:
        if not self.configuration.dummy_driver_pools:
            raise exception.BadConfiguration(reason='dummy_driver_pools is empty')
        self.backend.claim_disk(self.disks)

    @faults.instrumented
    def get_backend_info(self, context: RequestContext) -> dict[str, str]:
        return {'state_path': str(self.backend.state.path)}

    # Share servers

    def get_network_allocations_number(self) -> int:
        return self.configuration.dummy_driver_network_allocations

    def get_admin_network_allocations_number(self) -> int:
        return self.configuration.dummy_driver_admin_network_allocations

    # Statistics

    @faults.instrumented
    def _update_share_stats(self, data: base.Stats | None = None) -> None:
        super()._update_share_stats(
            {
                'vendor_name': 'manila_lite',
                'storage_protocol': 'NFS_CIFS',
                'pools': self._get_pools_info(),
                **(
                    {'replication_type': self.backend.replication_type}
                    if self.backend.replication_type
                    else {}
                ),
                'share_group_stats': {
                    'consistent_snapshot_support': (
                        self.configuration.dummy_driver_consistent_snapshots
                    )
                },
                'share_server_multiple_subnet_support': (
                    self.driver_handles_share_servers
                ),
                'mount_point_name_support': True,
                **(data or {}),
            }
        )

    @faults.instrumented
    def _get_pools_info(self) -> list[base.Stats]:
        allocated = dict.fromkeys(self.configuration.dummy_driver_pools, 0)
        for _, record in self.backend.state.shares.records():
            # A pool may have been removed from the configuration.
            allocated[record['pool']] = (
                allocated.get(record['pool'], 0) + record['size']
            )
        return [
            self._pool_stats(pool, allocated[pool])
            for pool in self.configuration.dummy_driver_pools
        ]

    def _pool_stats(self, pool: str, allocated: int) -> base.Stats:
        total = self.configuration.dummy_driver_capacity_gb
        free = self.configuration.dummy_driver_free_gb
        if free is None:
            free = max(0, total - allocated)
        return self.pool_stats(pool, total, free, allocated)
