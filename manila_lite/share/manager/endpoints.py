"""The endpoints of one back end, as one immutable set."""

import dataclasses

from manila_lite.rpc.contract import Handler, endpoint_handlers
from manila_lite.share.manager.access.share_rules import AccessEndpoint
from manila_lite.share.manager.access.snapshot_rules import SnapshotAccessEndpoint
from manila_lite.share.manager.groups.lifecycle import ShareGroupsEndpoint
from manila_lite.share.manager.groups.snapshots import ShareGroupSnapshotsEndpoint
from manila_lite.share.manager.migrations.endpoint import ShareMigrationsEndpoint
from manila_lite.share.manager.migrations.host_assisted import (
    HostAssistedMigrationsEndpoint,
)
from manila_lite.share.manager.migrations.servers import MigrationServersEndpoint
from manila_lite.share.manager.recovery.reconciliation import ReconciliationEndpoint
from manila_lite.share.manager.replication.replicas import ReplicasEndpoint
from manila_lite.share.manager.replication.roles import ReplicaRolesEndpoint
from manila_lite.share.manager.replication.snapshots import ReplicatedSnapshotsEndpoint
from manila_lite.share.manager.replication.updates import ReplicaUpdatesEndpoint
from manila_lite.share.manager.servers.lifecycle import ShareServersEndpoint
from manila_lite.share.manager.servers.migrations import ServerMigrationsEndpoint
from manila_lite.share.manager.servers.network_updates import NetworkUpdatesEndpoint
from manila_lite.share.manager.shares.backups import DriverBackupsEndpoint
from manila_lite.share.manager.shares.connections import ConnectionsEndpoint
from manila_lite.share.manager.shares.ensuring import EnsuringEndpoint
from manila_lite.share.manager.shares.managing import ManagingEndpoint
from manila_lite.share.manager.shares.metadata import ShareMetadataEndpoint
from manila_lite.share.manager.shares.provisioning import ProvisioningEndpoint
from manila_lite.share.manager.shares.transfers import ShareTransfersEndpoint
from manila_lite.share.manager.snapshots import SnapshotsEndpoint


@dataclasses.dataclass(frozen=True, kw_only=True)
class BackendEndpoints:
    """What a share service does for one back end, by concern."""

    provisioning: ProvisioningEndpoint
    snapshots: SnapshotsEndpoint
    replicated_snapshots: ReplicatedSnapshotsEndpoint
    access: AccessEndpoint
    snapshot_access: SnapshotAccessEndpoint
    replication: ReplicasEndpoint
    replica_updates: ReplicaUpdatesEndpoint
    replica_roles: ReplicaRolesEndpoint
    managing: ManagingEndpoint
    ensuring: EnsuringEndpoint
    share_metadata: ShareMetadataEndpoint
    share_transfers: ShareTransfersEndpoint
    share_groups: ShareGroupsEndpoint
    share_group_snapshots: ShareGroupSnapshotsEndpoint
    driver_backups: DriverBackupsEndpoint
    share_servers: ShareServersEndpoint
    network_updates: NetworkUpdatesEndpoint
    server_migrations: ServerMigrationsEndpoint
    share_migrations: ShareMigrationsEndpoint
    migration_servers: MigrationServersEndpoint
    host_assisted_migrations: HostAssistedMigrationsEndpoint
    connections: ConnectionsEndpoint
    reconciliation: ReconciliationEndpoint

    def handlers(self) -> dict[str, Handler]:
        """Return the handlers of all endpoints by kind of work."""
        found: dict[str, Handler] = {}
        for field in dataclasses.fields(self):
            found |= endpoint_handlers(getattr(self, field.name))
        return found
