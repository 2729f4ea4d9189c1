"""Migrations of shares to another back end."""

from tests.simulation.crashing import Scene
from tests.support import share_migrations as migrations


def prepare(cloud):
    share = migrations.create_on_alpha(cloud)
    migrations.allow(cloud, share)
    migrations.create_type(cloud, snapshot_support='True')
    return share


def migrate(cloud, share):
    migrations.start(cloud, share, writable=False, expect=None)
    cloud.settle()
    migrations.complete(cloud, share, expect=None)
    cloud.settle()


def cancel(cloud, share):
    migrations.start(cloud, share, writable=False, expect=None)
    cloud.settle()
    migrations.cancel(cloud, share, expect=None)
    cloud.settle()


def fail(cloud, share):
    cloud.driver('alpha').fail_next('migration_continue')
    migrations.start(cloud, share, expect=None)
    cloud.settle()


def retype(cloud, share):
    migrations.start(
        cloud, share, writable=False, expect=None, **migrations.to_gold(cloud)
    )
    cloud.settle()
    migrations.complete(cloud, share, expect=None)
    cloud.settle()


def retype_and_cancel(cloud, share):
    migrations.start(
        cloud, share, writable=False, expect=None, **migrations.to_gold(cloud)
    )
    cloud.settle()
    migrations.cancel(cloud, share, expect=None)
    cloud.settle()


VERBS = Scene.named(migrate, cancel, fail, retype, retype_and_cancel)


SCENE = Scene(name='share migrations', prepare=prepare, verbs=VERBS)
