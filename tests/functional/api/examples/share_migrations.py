"""Examples and error cases of share migrations."""

from manila_lite.db.queries.shares import migrations
from tests.functional.api import error_cases
from tests.functional.api.error_cases import RefusedRequest
from tests.functional.api.examples.registry import example_for
from tests.functional.api.samples.cloud import DOWN_HOST
from tests.functional.api.samples.requests import request_args
from tests.support import rows
from tests.support.rescues import force_status

_ACTION = 'POST /v2/shares/{id}/action'
_PROGRESS = 'GET /v2/shares/{id}/migration-progress'

MIGRATION_OPTIONS = {
    'writable': True,
    'nondisruptive': False,
    'preserve_metadata': True,
    'preserve_snapshots': False,
}


def movable(sample):
    """Return a share and a pool that it could move to."""
    share = sample.idle_share()
    host, _, _ = sample.admin.show(share)['host'].partition('#')
    (other,) = {'node@alpha', 'node@beta'} - {host}
    sample.admin.request(
        'PUT', '/services/enable', {'host': other, 'binary': 'manila-share'}, expect=200
    )
    return share, f'{other}#pool'


def migrating(sample):
    """Return a share whose first migration phase is done."""
    share = sample.idle_share()
    source = sample.instance_of(share)
    force_status(sample.cloud.db, 'share_task', share, 'migration_driver_phase1_done')
    force_status(sample.cloud.db, 'share_instance', source, 'migrating')
    destination = sample.cloud.db.write(
        rows.insert_instance, share, status='migrating_to', host='node@beta#pool'
    )
    sample.cloud.db.write(
        migrations.insert,
        share,
        source_instance_id=source,
        destination_instance_id=destination,
        source_host='node@alpha',
        destination_host='node@beta#pool',
        writable=True,
        nondisruptive=False,
        preserve_metadata=True,
        preserve_snapshots=False,
    )
    return share


@example_for(f'{_ACTION} migration_start')
def start(sample):
    share, host = movable(sample)
    return request_args({'host': host, **MIGRATION_OPTIONS}, id=share)


@example_for(
    f'{_ACTION} migration_complete',
    f'{_ACTION} migration_cancel',
    f'{_ACTION} migration_get_progress',
    _PROGRESS,
)
def continue_migration(sample):
    return request_args(id=migrating(sample))


@error_cases.register(400, f'{_ACTION} migration_start')
def to_a_service_that_is_down(sample):
    share, _ = movable(sample)
    return RefusedRequest(
        request_args({'host': f'{DOWN_HOST}#pool', **MIGRATION_OPTIONS}, id=share)
    )


@error_cases.register(409, f'{_ACTION} migration_start')
def with_replicas(sample):
    return RefusedRequest(
        request_args(
            {'host': 'node@beta#pool', **MIGRATION_OPTIONS}, id=sample.replicated_share
        )
    )


@error_cases.register(
    400,
    f'{_ACTION} migration_complete',
    f'{_ACTION} migration_cancel',
    f'{_ACTION} migration_get_progress',
    _PROGRESS,
)
def not_migrating(sample):
    return RefusedRequest(request_args(id=sample.idle_share()))


@error_cases.register(400, f'{_ACTION} reset_task_state')
def unknown_task_state(sample):
    return RefusedRequest(request_args({'task_state': 'moon'}, id=sample.idle_share()))
