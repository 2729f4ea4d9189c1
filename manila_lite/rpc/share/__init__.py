"""The RPC contracts of the share service."""

from manila_lite.rpc.share.access import AccessRpc
from manila_lite.rpc.share.access import SnapshotAccessRpc
from manila_lite.rpc.share.backups import DriverBackupsRpc
from manila_lite.rpc.share.connections import ConnectionsRpc
from manila_lite.rpc.share.groups import ShareGroupSnapshotsRpc
from manila_lite.rpc.share.groups import ShareGroupsRpc
from manila_lite.rpc.share.metadata import ShareMetadataRpc
from manila_lite.rpc.share.migrations import HostAssistedMigrationRpc
from manila_lite.rpc.share.migrations import MigrationServersRpc
from manila_lite.rpc.share.migrations import ShareMigrationRpc
from manila_lite.rpc.share.provisioning import EnsuringRpc
from manila_lite.rpc.share.provisioning import ManagingRpc
from manila_lite.rpc.share.provisioning import ProvisioningRpc
from manila_lite.rpc.share.recovery import RESCUES
from manila_lite.rpc.share.recovery import ReconciliationRpc
from manila_lite.rpc.share.replicas import ReplicaRolesRpc
from manila_lite.rpc.share.replicas import ReplicatedSnapshotsRpc
from manila_lite.rpc.share.replicas import ReplicationRpc
from manila_lite.rpc.share.replicas import ReplicaUpdatesRpc
from manila_lite.rpc.share.servers import NetworkUpdatesRpc
from manila_lite.rpc.share.servers import ServerMigrationRpc
from manila_lite.rpc.share.servers import ShareServersRpc
from manila_lite.rpc.share.snapshots import SnapshotsRpc
from manila_lite.rpc.share.topic import BINARY
from manila_lite.rpc.share.topic import TOPIC
from manila_lite.rpc.share.transfers import ShareTransfersRpc

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
