from tests.drivers import access_contract
from tests.drivers import contract
from tests.drivers import managing_contract
from tests.drivers import migration_contract
from tests.drivers import replication_contract
from tests.drivers import servers_contract

pair = migration_contract.pair


class TestShares(contract.ShareContract):
    """Their whole life, and what every verb does when repeated."""


class TestStats(contract.StatsContract):
    """What the scheduler is told."""


class TestSnapshots(contract.SnapshotContract):
    """Snapshots, and what is made with them."""


class TestAccess(access_contract.AccessContract):
    """Whom a share lets in."""


class TestSnapshotAccess(access_contract.SnapshotAccessContract):
    """Whom a snapshot lets in."""


class TestManaging(managing_contract.ManagingContract):
    """Shares that were there before."""


class TestManagingSnapshots(managing_contract.ManagingSnapshotsContract):
    """Snapshots that were there before."""


class TestShareServers(servers_contract.ServersContract):
    """Share servers, and the shares that are on them."""


class TestManagingServers(servers_contract.ManagingServersContract):
    """Share servers that were there before."""


class TestServerMigration(migration_contract.MigrationContract):
    """Whether share servers can migrate to it."""


class TestMigratedServers(migration_contract.MigratedServersContract):
    """Share servers that have come from another back end."""


class TestReplicas(replication_contract.ReplicaContract):
    """Replicas on other back ends."""


class TestReplicatedSnapshots(replication_contract.ReplicatedSnapshotContract):
    """Snapshots of a share that has replicas."""


class TestPromotion(replication_contract.PromotionContract):
    """One replica is active, and another can become so."""


class TestWritableReplicas(replication_contract.WritableContract):
    """All replicas are active."""
