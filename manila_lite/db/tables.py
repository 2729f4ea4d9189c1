"""The tables, each with the name that queries call it by."""

from manila_lite.db import models

SHARE = models.shares.Share.__table__
INSTANCE = models.shares.ShareInstance.__table__
SHARE_METADATA = models.shares.ShareMetadata.__table__
INSTANCE_METADATA = models.shares.ShareInstanceMetadata.__table__
EXPORT = models.shares.ExportLocation.__table__
EXPORT_METADATA = models.shares.ExportLocationMetadata.__table__
BACKUP = models.shares.ShareBackup.__table__
TRANSFER = models.shares.Transfer.__table__

SNAPSHOT = models.snapshots.Snapshot.__table__
SNAPSHOT_INSTANCE = models.snapshots.SnapshotInstance.__table__
SNAPSHOT_METADATA = models.snapshots.SnapshotMetadata.__table__
SNAPSHOT_EXPORT = models.snapshots.SnapshotExportLocation.__table__
SNAPSHOT_RULE = models.snapshots.SnapshotAccessRule.__table__
SNAPSHOT_MAPPING = models.snapshots.SnapshotInstanceAccessRule.__table__

RULE = models.access.AccessRule.__table__
RULE_METADATA = models.access.AccessRuleMetadata.__table__
MAPPING = models.access.InstanceAccessRule.__table__
LOCK = models.access.ResourceLock.__table__

NETWORK = models.networks.ShareNetwork.__table__
SUBNET = models.networks.ShareNetworkSubnet.__table__
SUBNET_METADATA = models.networks.ShareNetworkSubnetMetadata.__table__
SECURITY_SERVICE = models.networks.SecurityService.__table__
ATTACHED = models.networks.ShareNetworkSecurityService.__table__
NETWORK_CHECK = models.networks.ShareNetworkCheck.__table__

SERVER = models.share_servers.ShareServer.__table__
OF_SUBNET = models.share_servers.ShareServerSubnet.__table__
SERVER_DETAIL = models.share_servers.ShareServerBackendDetail.__table__
ALLOCATION = models.share_servers.NetworkAllocation.__table__
FREED = models.share_servers.FreedAddress.__table__
SEGMENT = models.share_servers.NetworkSegment.__table__

GROUP = models.share_groups.ShareGroup.__table__
GROUP_SHARE_TYPE = models.share_groups.ShareGroupShareType.__table__
GROUP_SNAPSHOT = models.share_groups.ShareGroupSnapshot.__table__
GROUP_MEMBER = models.share_groups.ShareGroupSnapshotMember.__table__

TYPE = models.types.ShareType.__table__
SPEC = models.types.ShareTypeExtraSpec.__table__
TYPE_PROJECT = models.types.ShareTypeProject.__table__
GROUP_TYPE = models.types.ShareGroupType.__table__
GROUP_SPEC = models.types.ShareGroupTypeSpec.__table__
GROUP_TYPE_PROJECT = models.types.ShareGroupTypeProject.__table__
GROUP_TYPE_SHARE_TYPE = models.types.ShareGroupTypeShareType.__table__
QOS_TYPE = models.types.QosType.__table__
QOS_SPEC = models.types.QosTypeSpec.__table__

SERVICE = models.services.Service.__table__
POOL = models.services.Pool.__table__
ZONE = models.services.AvailabilityZone.__table__
INCARNATION = models.services.ServiceIncarnation.__table__
MESSAGE = models.services.Message.__table__
DISK = models.services.StorageDisk.__table__

WORK = models.engine.Work.__table__
JOURNAL = models.engine.Transition.__table__
CALL = models.engine.DriverCall.__table__
TASK = models.engine.ClusterTask.__table__
LOG = models.engine.RecoveryLogEntry.__table__
SAMPLE = models.engine.Sample.__table__
PRIVATE_DATA = models.engine.DriverPrivateData.__table__

USAGE = models.quotas.QuotaUsage.__table__
QUOTA_CLASS = models.quotas.QuotaClass.__table__
KEY = models.quotas.EncryptionKey.__table__

SHARE_MIGRATION = models.migrations.ShareMigration.__table__
SERVER_MIGRATION = models.migrations.ServerMigration.__table__
