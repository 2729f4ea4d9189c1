"""Migrations of shares with two snapshots, one of them mounted."""

import functools

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


def start(cloud, share, to_gold):
    changes = migrations.to_gold(cloud) if to_gold else {}
    migrations.start(cloud, share, expect=None, preserve_snapshots=True, **changes)
    cloud.settle()


def migrate(cloud, share, to_gold=False):
    start(cloud, share, to_gold)
    migrations.complete(cloud, share, expect=None)
    cloud.settle()


def cancel(cloud, share, to_gold=False):
    start(cloud, share, to_gold)
    migrations.cancel(cloud, share, expect=None)
    cloud.settle()


def fail(cloud, share, to_gold=False):
    cloud.driver('alpha').fail_next('migration_continue')
    start(cloud, share, to_gold)


VERBS = Scene.named(migrate, cancel, fail) | {
    'change_type': functools.partial(migrate, to_gold=True),
    'cancel_change_of_type': functools.partial(cancel, to_gold=True),
    'fail_to_change_type': functools.partial(fail, to_gold=True),
}


SCENE = Scene(
    name='migrations with snapshots', prepare=prepare, verbs=VERBS, seeds=(50, 1)
)
