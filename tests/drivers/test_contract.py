from tests.drivers import (
    access_contract,
    backups_contract,
    contract,
    managing_contract,
    migration_contract,
    promotion_contract,
    replicated_snapshot_contract,
    replication_contract,
    servers_contract,
    share_migration_contract,
)

pair = migration_contract.pair


class TestShares(contract.ShareContract):
    """The life cycle of shares, and repeated operations."""


class TestStats(contract.StatsContract):
    """Statistics for the scheduler."""


class TestSnapshots(contract.SnapshotContract):
    """Snapshots and their use."""


class TestAccess(access_contract.AccessContract):
    """Access to shares."""


class TestSnapshotAccess(access_contract.SnapshotAccessContract):
    """Access to snapshots."""


class TestBackups(backups_contract.BackupContract):
    """Backups that the driver makes and keeps."""


class TestManaging(managing_contract.ManagingContract):
    """Managing existing shares."""


class TestManagingSnapshots(managing_contract.ManagingSnapshotsContract):
    """Managing existing snapshots."""


class TestShareServers(servers_contract.ServersContract):
    """Share servers and their shares."""


class TestManagingServers(servers_contract.ManagingServersContract):
    """Managing existing share servers."""


class TestServerMigration(migration_contract.MigrationContract):
    """Whether share servers can migrate to the driver."""


class TestMigratedServers(migration_contract.MigratedServersContract):
    """Share servers that have migrated from another back end."""


class TestShareMigration(share_migration_contract.ShareMigrationContract):
    """Whether the driver migrates shares."""


class TestMigratedShares(share_migration_contract.MigratedSharesContract):
    """Shares that migrate to another back end."""


class TestReplicas(replication_contract.ReplicaContract):
    """Replicas on other back ends."""


class TestReplicatedSnapshots(replicated_snapshot_contract.ReplicatedSnapshotContract):
    """Snapshots of replicated shares."""


class TestPromotion(promotion_contract.PromotionContract):
    """Promotion of another replica."""


class TestWritableReplicas(replication_contract.WritableContract):
    """Replicas that are all active."""
