"""Examples and error cases of share server migrations."""

from manila_lite.db.queries.servers import migrations as server_migrations
from tests.functional.api import error_cases
from tests.functional.api.error_cases import RefusedRequest
from tests.functional.api.examples.registry import example_for
from tests.functional.api.samples.cloud import DOWN_HOST
from tests.functional.api.samples.requests import request_args
from tests.support.share_servers import assign_share_server

_ACTION = 'POST /v2/share-servers/{id}/action'

MIGRATION_OPTIONS = {
    'writable': True,
    'nondisruptive': False,
    'preserve_snapshots': True,
    'new_share_network_id': None,
}


def movable(sample, status='active'):
    """Return a server with a share, and a host it could move to."""
    share = sample.migrating_share
    sample.make_available(share)
    host, _, _ = sample.admin.show(share)['host'].partition('#')
    server = sample.insert_server(
        sample.used_network, sample.used_subnet, host=host, status=status
    )
    assign_share_server(sample.cloud, share, server, sample.used_network)
    (other,) = {'node@alpha', 'node@beta'} - {host}
    sample.admin.request(
        'PUT', '/services/enable', {'host': other, 'binary': 'manila-share'}, expect=200
    )
    return server, other


def migrating(sample):
    """Return a server whose first migration phase is done."""
    server = sample.insert_server(
        sample.used_network,
        sample.used_subnet,
        status='server_migrating',
        task_state='server_migrating_phase1_done',
    )
    destination = sample.insert_server(
        sample.used_network,
        sample.used_subnet,
        host='node@beta',
        status='server_migrating_to',
    )
    sample.cloud.db.write(
        server_migrations.insert,
        reserved={},
        source_server_id=server,
        destination_server_id=destination,
        source_host='node@alpha',
        destination_host='node@beta',
        can_cancel=True,
        writable=True,
        nondisruptive=False,
        preserve_snapshots=True,
    )
    return server


@example_for(f'{_ACTION} migration_check', f'{_ACTION} migration_start')
def start(sample):
    server, host = movable(sample)
    return request_args({'host': host, **MIGRATION_OPTIONS}, id=server)


@example_for(
    f'{_ACTION} migration_complete',
    f'{_ACTION} migration_cancel',
    f'{_ACTION} migration_get_progress',
)
def continue_migration(sample):
    return request_args(id=migrating(sample))


@example_for(f'{_ACTION} reset_task_state')
def reset_task_state(sample):
    return request_args({'task_state': 'migration_error'}, id=sample.spare_server())


@error_cases.register(400, f'{_ACTION} migration_check', f'{_ACTION} migration_start')
def to_a_service_that_is_down(sample):
    server, _ = movable(sample)
    return RefusedRequest(
        request_args({'host': DOWN_HOST, **MIGRATION_OPTIONS}, id=server)
    )


@error_cases.register(409, f'{_ACTION} migration_check', f'{_ACTION} migration_start')
def not_active(sample):
    server, host = movable(sample, status='error')
    return RefusedRequest(request_args({'host': host, **MIGRATION_OPTIONS}, id=server))


@error_cases.register(
    400,
    f'{_ACTION} migration_complete',
    f'{_ACTION} migration_cancel',
    f'{_ACTION} migration_get_progress',
)
def not_migrating(sample):
    return RefusedRequest(request_args(id=sample.spare_server()))


@error_cases.register(400, f'{_ACTION} reset_task_state')
def unknown_task_state(sample):
    return RefusedRequest(
        request_args({'task_state': 'moon'}, id=sample.spare_server())
    )
