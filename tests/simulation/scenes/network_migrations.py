"""Migrations of shares to other share networks.

A server is set up for the destination, and deleted again if it is not used in
the end, as is that of the source.
"""

from tests.simulation import crash_images
from tests.simulation.crashing import Scene
from tests.support import network_migrations, share_migrations as migrations
from tests.support.network_migrations import COPY, PLAIN

WITH_LAST = 'delete_share_server_with_last_share = true\n'


class CrashableMigrationCloud(
    crash_images.CrashableCloud, network_migrations.NetworkMigrationCloud
):
    """A cloud for these migrations with crash points."""

    def configure(self, *, backend_conf='', extra_conf=''):
        super().configure(backend_conf=backend_conf, extra_conf=WITH_LAST + extra_conf)


def prepare(cloud):
    found = {
        'share': network_migrations.create(cloud, cloud.add_network()),
        'network': cloud.add_network(),
        'type': migrations.create_type(cloud, 'plain'),
    }
    cloud.settle()
    return found


def start(cloud, found, **options):
    migrations.start(
        cloud,
        found['share'],
        expect=None,
        **{'new_share_network_id': found['network'], **options},
    )
    cloud.settle()


def complete(cloud, found):
    migrations.complete(cloud, found['share'], expect=None)
    cloud.settle()


def migrate(cloud, found):
    start(cloud, found, writable=False)
    complete(cloud, found)


def copy(cloud, found):
    start(cloud, found, **COPY)
    complete(cloud, found)


def cancel(cloud, found):
    start(cloud, found)
    migrations.cancel(cloud, found['share'], expect=None)
    cloud.settle()


def cancel_copy(cloud, found):
    start(cloud, found, **COPY)
    migrations.cancel(cloud, found['share'], expect=None)
    cloud.settle()


def fail_to_set_up(cloud, found):
    cloud.driver('beta').half_fail_next('_setup_server')
    start(cloud, found)


def fail(cloud, found):
    cloud.driver('alpha').fail_next('migration_continue')
    start(cloud, found)


def leave_the_servers(cloud, found):
    start(
        cloud,
        found,
        host=PLAIN,
        new_share_network_id=None,
        new_share_type_id=found['type'],
    )
    complete(cloud, found)


def reset(cloud, found):
    """End the migration while a server is set up for it."""
    migrations.start(
        cloud, found['share'], expect=None, new_share_network_id=found['network']
    )
    for _ in range(4):
        cloud.step()
    migrations.act(
        cloud,
        found['share'],
        'reset_task_state',
        {'task_state': 'migration_error'},
        expect=None,
    )
    cloud.settle()


VERBS = Scene.named(
    migrate, copy, cancel, cancel_copy, fail_to_set_up, fail, leave_the_servers, reset
)


SCENE = Scene(
    name='migrations to networks',
    prepare=prepare,
    verbs=VERBS,
    kind=CrashableMigrationCloud,
)
