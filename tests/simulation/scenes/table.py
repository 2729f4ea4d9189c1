"""The scenes that `test_crashes` plays: one or more for each resource."""

from tests.simulation.scenes import access
from tests.simulation.scenes import driver_backups
from tests.simulation.scenes import host_assisted
from tests.simulation.scenes import managing
from tests.simulation.scenes import network_migrations
from tests.simulation.scenes import networks
from tests.simulation.scenes import replica_updates
from tests.simulation.scenes import replicas
from tests.simulation.scenes import replicated_snapshots
from tests.simulation.scenes import rescheduling
from tests.simulation.scenes import server_migrations
from tests.simulation.scenes import share_backups
from tests.simulation.scenes import share_groups
from tests.simulation.scenes import share_migrations
from tests.simulation.scenes import share_servers
from tests.simulation.scenes import shares
from tests.simulation.scenes import snapshot_access
from tests.simulation.scenes import snapshot_migrations
from tests.simulation.scenes import snapshots
from tests.simulation.scenes import transfers

SCENES = [
    shares.SCENE,
    *rescheduling.SCENES,
    managing.SCENE,
    transfers.SCENE,
    access.SCENE,
    *snapshots.SCENES,
    snapshot_access.SCENE,
    *share_groups.SCENES,
    share_backups.SCENE,
    driver_backups.SCENE,
    *replicas.SCENES,
    replica_updates.SCENE,
    replicated_snapshots.SCENE,
    networks.SCENE,
    share_servers.SCENE,
    share_migrations.SCENE,
    snapshot_migrations.SCENE,
    host_assisted.SCENE,
    network_migrations.SCENE,
    *server_migrations.SCENES,
]
