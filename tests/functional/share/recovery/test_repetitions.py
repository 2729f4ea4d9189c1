"""Recovery does not ask for the same work for ever.

Here all work that it asks for is lost, as if each process that takes it
died. After three times it gives up visibly: nothing stays in flight.
"""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import engine
from manila_lite.db.queries.recovery import recovery
from manila_lite.share.manager.recovery import rescue
from tests.support import (
    cloud_snapshots as snapshots,
    host_assisted,
    share_backups,
    share_groups,
    share_migrations as migrations,
)
from tests.support.server_migrations import ServerMigrationCloud

WORK = engine.Work.__table__


def lose_work(cloud):
    """Lose all work that is not a rescue."""
    cloud.db.write(
        lambda session: session.run(
            sa.delete(WORK).where(WORK.c.kind.not_like('reconciliation.%'))
        )
    )


def recover(cloud):
    """Make passes until none finds anything; return the last decisions."""
    lose_work(cloud)
    passes = 0
    while any(
        backend.endpoints.reconciliation.run_pass() for backend in cloud.share.backends
    ):
        passes += 1
        assert passes <= 2 * rescue.MOST_REPETITIONS + 2
        for backend in cloud.share.backends:
            while backend.runner.step():
                lose_work(cloud)
    log = cloud.db.read(recovery.list_log, limit=100)
    by_action = [row.action for row in log if row.action != 'left alone']
    assert by_action.count('given up') >= 1
    assert 'changed nothing' in str([row.reason for row in log])


@pytest.fixture
def cloud(build_cloud):
    return build_cloud(extra_conf=migrations.SHORT_POLL_INTERVAL)


def test_a_deletion_that_is_always_lost_fails(cloud):
    share, other = cloud.create_share(), cloud.create_share()
    snapshot = snapshots.create_available(cloud, other)
    group = share_groups.create(cloud)
    with_snapshot = share_groups.create(
        cloud, share_groups.create_type(cloud.api, 'other')
    )
    of_group = share_groups.take_snapshot(cloud, with_snapshot)
    backup = share_backups.create(cloud)
    cloud.api.request('DELETE', f'/shares/{share}', expect=202)
    snapshots.delete(cloud, snapshot)
    share_groups.delete(cloud.api, group)
    share_groups.delete_snapshot(cloud.api, of_group)
    share_backups.delete(cloud.api, backup)
    recover(cloud)
    assert cloud.api.show(share)['status'] == 'error_deleting'
    assert snapshots.show(cloud, snapshot)['status'] == 'error_deleting'
    assert share_groups.show(cloud.api, group)['status'] == 'error'
    assert share_groups.show_snapshot(cloud.api, of_group)['status'] == 'error'
    assert share_backups.show(cloud.api, backup)['status'] == 'error_deleting'
    cloud.check_invariants()


def test_a_backup_that_is_always_lost_fails(cloud):
    share = cloud.create_share()
    backup = share_backups.create(cloud, share)
    share_backups.restore(cloud.api, backup)
    recover(cloud)
    assert share_backups.show(cloud.api, backup)['status'] == 'available'
    assert cloud.api.show(share)['status'] == 'backup_restoring_error'
    other = cloud.create_share()
    new = share_backups.request(cloud.api, other).json['share_backup']['id']
    recover(cloud)
    assert share_backups.show(cloud.api, new)['status'] == 'error'
    assert cloud.api.show(other)['status'] == 'available'
    cloud.check_invariants()


@pytest.mark.parametrize(
    'step',
    [
        'start',
        'migration_starting',
        'migration_in_progress',
        'migration_driver_in_progress',
        'data_copying_starting',
        'data_copying_in_progress',
        'cancel',
        'complete',
    ],
)
def test_a_migration_whose_work_is_always_lost_fails(cloud, step):
    share = migrations.create_on_alpha(cloud)
    way = host_assisted if step.startswith('data_copying') else migrations
    way.start(cloud, share)
    if step != 'start':
        cloud.settle()
    if step in ('cancel', 'complete'):
        getattr(migrations, step)(cloud, share)
    elif step != 'start':
        migrations.act(cloud, share, 'reset_task_state', {'task_state': step})
    recover(cloud)
    assert migrations.task_state(cloud, share) == 'migration_error'
    found = migrations.instances(cloud, share)
    if step == 'complete':
        # The data may be on either of them.
        assert [status for _, status in found] == ['error', 'error']
    else:
        assert ('node@alpha#pool', 'available') in found
    assert cloud.api.get('/messages')['messages']
    cloud.check_invariants()


@pytest.mark.parametrize('step', ['start', 'phase1', 'cancel', 'complete'])
def test_a_server_migration_whose_work_is_always_lost_fails(build_cloud, step):
    cloud = build_cloud(kind=ServerMigrationCloud)
    share = cloud.create_share_on_alpha(cloud.add_network())
    server = cloud.server_of(share)
    if step == 'start':
        cloud.start(server)
    else:
        cloud.start_to_phase1(server)
    if step in ('cancel', 'complete'):
        getattr(cloud, step)(server)
    elif step == 'phase1':
        cloud.act(
            server,
            'reset_task_state',
            {'task_state': 'migration_driver_in_progress'},
            202,
        )
    recover(cloud)
    assert cloud.server(server)['task_state'] == 'migration_error'
    assert cloud.api.show(share)['status'] == (
        'error' if step == 'complete' else 'available'
    )
