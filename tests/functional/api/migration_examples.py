"""Examples and refusals of what moves share servers."""

from manila_lite.db.queries.servers import migrations as server_migrations
from tests.functional.api import error_cases as refusals
from tests.functional.api.error_cases import Refused
from tests.functional.api.examples import of
from tests.functional.api.sample_cloud import SILENT_HOST
from tests.functional.api.sample_cloud import given
from tests.support.share_servers import plant_share

_ACTION = 'POST /v2/share-servers/{id}/action'

WISH = {
    'writable': True,
    'nondisruptive': False,
    'preserve_snapshots': True,
    'new_share_network_id': None,
}


def movable(world, status='active'):
    """A server with a share, and the host it could move to."""
    share = world.moving
    world.admin.act(share, 'reset_status', {'status': 'available'})
    host, _, _ = world.admin.show(share)['host'].partition('#')
    server = world.plant_server(
        world.used_network, world.used_subnet, host=host, status=status
    )
    plant_share(world.cloud, share, server, world.used_network)
    (other,) = {'node@alpha', 'node@beta'} - {host}
    world.admin.request(
        'PUT',
        '/services/enable',
        {'host': other, 'binary': 'manila-share'},
        expect=200,
    )
    return server, other


def migrating(world):
    """A server whose first phase is done."""
    server = world.plant_server(
        world.used_network,
        world.used_subnet,
        status='server_migrating',
        task_state='server_migrating_phase1_done',
    )
    there = world.plant_server(
        world.used_network,
        world.used_subnet,
        host='node@beta',
        status='server_migrating_to',
    )
    world.cloud.db.write(
        server_migrations.insert,
        source_server_id=server,
        destination_server_id=there,
        source_host='node@alpha',
        destination_host='node@beta',
        can_cancel=True,
        writable=True,
        nondisruptive=False,
        preserve_snapshots=True,
    )
    return server


@of(f'{_ACTION} migration_check', f'{_ACTION} migration_start')
def begin(world):
    server, host = movable(world)
    return given({'host': host, **WISH}, id=server)


@of(
    f'{_ACTION} migration_complete',
    f'{_ACTION} migration_cancel',
    f'{_ACTION} migration_get_progress',
)
def go_on(world):
    return given(id=migrating(world))


@of(f'{_ACTION} reset_task_state')
def reset_task_state(world):
    return given({'task_state': 'migration_error'}, id=world.spare_server())


@refusals.of(400, f'{_ACTION} migration_check', f'{_ACTION} migration_start')
def to_a_service_that_is_down(world):
    server, _ = movable(world)
    return Refused(given({'host': SILENT_HOST, **WISH}, id=server))


@refusals.of(409, f'{_ACTION} migration_check', f'{_ACTION} migration_start')
def not_active(world):
    server, host = movable(world, status='error')
    return Refused(given({'host': host, **WISH}, id=server))


@refusals.of(
    400,
    f'{_ACTION} migration_complete',
    f'{_ACTION} migration_cancel',
    f'{_ACTION} migration_get_progress',
)
def not_migrating(world):
    return Refused(given(id=world.spare_server()))


@refusals.of(400, f'{_ACTION} reset_task_state')
def no_such_state(world):
    return Refused(given({'task_state': 'moon'}, id=world.spare_server()))
