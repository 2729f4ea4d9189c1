"""Migrations of which the data service copies the content.

The copy itself is stopped at every point in `tests/unit/data/test_copying.py`.
"""

from tests.simulation.crashing import Scene
from tests.support import host_assisted, share_migrations as migrations


def prepare(cloud):
    migrations.create_type(cloud, snapshot_support='True')
    return host_assisted.create(cloud)


def migrate(cloud, share):
    host_assisted.start(cloud, share, expect=None)
    cloud.settle()
    migrations.complete(cloud, share, expect=None)
    cloud.settle()


def cancel(cloud, share):
    host_assisted.start(cloud, share, expect=None)
    cloud.settle()
    migrations.cancel(cloud, share, expect=None)
    cloud.settle()


def fail(cloud, share):
    cloud.driver('beta').fail_next('create_share')
    host_assisted.start(cloud, share, expect=None)
    cloud.settle()


def fall_back(cloud, share):
    """Let the driver fail at the start, half-way."""
    cloud.driver('alpha').half_fail_next('migration_start')
    migrations.start(cloud, share, writable=False, expect=None)
    cloud.settle()
    migrations.complete(cloud, share, expect=None)
    cloud.settle()


def retype(cloud, share):
    host_assisted.start(cloud, share, expect=None, **migrations.to_gold(cloud))
    cloud.settle()
    migrations.complete(cloud, share, expect=None)
    cloud.settle()


def retype_and_cancel(cloud, share):
    host_assisted.start(cloud, share, expect=None, **migrations.to_gold(cloud))
    cloud.settle()
    migrations.cancel(cloud, share, expect=None)
    cloud.settle()


VERBS = Scene.named(migrate, cancel, fail, fall_back, retype, retype_and_cancel)


SCENE = Scene(name='host-assisted migrations', prepare=prepare, verbs=VERBS)
