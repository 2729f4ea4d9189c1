"""The RPC contracts of the share service."""

from manila_lite.rpc.share.access import AccessRpc, SnapshotAccessRpc
from manila_lite.rpc.share.backups import DriverBackupsRpc
from manila_lite.rpc.share.groups import ShareGroupSnapshotsRpc, ShareGroupsRpc
from manila_lite.rpc.share.migrations import (
    HostAssistedMigrationRpc,
    MigrationServersRpc,
    ShareMigrationRpc,
)
from manila_lite.rpc.share.provisioning import (
    ConnectionsRpc,
    EnsuringRpc,
    ManagingRpc,
    ProvisioningRpc,
    ShareMetadataRpc,
    ShareTransfersRpc,
)
from manila_lite.rpc.share.recovery import RESCUES, ReconciliationRpc
from manila_lite.rpc.share.replicas import (
    ReplicaRolesRpc,
    ReplicatedSnapshotsRpc,
    ReplicationRpc,
    ReplicaUpdatesRpc,
)
from manila_lite.rpc.share.servers import (
    NetworkUpdatesRpc,
    ServerMigrationRpc,
    ShareServersRpc,
)
from manila_lite.rpc.share.snapshots import SnapshotsRpc
from manila_lite.rpc.share.topic import BINARY, TOPIC

__all__ = [
    'AccessRpc',
    'BINARY',
    'ConnectionsRpc',
    'DriverBackupsRpc',
    'EnsuringRpc',
    'HostAssistedMigrationRpc',
    'ManagingRpc',
    'MigrationServersRpc',
    'NetworkUpdatesRpc',
    'ProvisioningRpc',
    'RESCUES',
    'ReconciliationRpc',
    'ReplicaRolesRpc',
    'ReplicaUpdatesRpc',
    'ReplicatedSnapshotsRpc',
    'ReplicationRpc',
    'ServerMigrationRpc',
    'ShareGroupSnapshotsRpc',
    'ShareGroupsRpc',
    'ShareMetadataRpc',
    'ShareMigrationRpc',
    'ShareServersRpc',
    'ShareTransfersRpc',
    'SnapshotAccessRpc',
    'SnapshotsRpc',
    'TOPIC',
]
