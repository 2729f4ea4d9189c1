"""Migrations of shares with two snapshots, one of them mounted."""

from tests.simulation.crashing import Scene
from tests.support import cloud_snapshots as snapshots, share_migrations as migrations


def prepare(cloud):
    snapshots.enable_snapshot_features(cloud)
    migrations.create_type(
        cloud, snapshot_support='True', mount_snapshot_support='True'
    )
    share = migrations.create_on_alpha(cloud)
    for _ in range(2):
        snapshot = snapshots.create_available(cloud, share)
    snapshots.act(
        cloud, snapshot, 'allow_access', {'access_type': 'ip', 'access_to': '10.0.0.1'}
    )
    return share


def start(cloud, share):
    migrations.start(cloud, share, expect=None, preserve_snapshots=True)
    cloud.settle()


def migrate(cloud, share):
    start(cloud, share)
    migrations.complete(cloud, share, expect=None)
    cloud.settle()


def cancel(cloud, share):
    start(cloud, share)
    migrations.cancel(cloud, share, expect=None)
    cloud.settle()


def fail(cloud, share):
    cloud.driver('alpha').fail_next('migration_continue')
    start(cloud, share)


def start_to_gold(cloud, share):
    migrations.start(
        cloud, share, expect=None, preserve_snapshots=True, **migrations.to_gold(cloud)
    )
    cloud.settle()


def change_type(cloud, share):
    start_to_gold(cloud, share)
    migrations.complete(cloud, share, expect=None)
    cloud.settle()


def cancel_change_of_type(cloud, share):
    start_to_gold(cloud, share)
    migrations.cancel(cloud, share, expect=None)
    cloud.settle()


def fail_to_change_type(cloud, share):
    cloud.driver('alpha').fail_next('migration_continue')
    start_to_gold(cloud, share)


VERBS = Scene.named(
    migrate, cancel, fail, change_type, cancel_change_of_type, fail_to_change_type
)


SCENE = Scene(
    name='migrations with snapshots', prepare=prepare, verbs=VERBS, seeds=(50, 2)
)
