"""A worker is paused inside a driver call of a server migration.

Another worker takes over; then the migration is cancelled, and the paused
call reaches the destination last. No server may be left there that no row
names. A back end with fencing refuses the call; on one without, it is undone.
"""

import pytest

from tests.simulation.pausing import Another, pause_in
from tests.support import sampling
from tests.support.server_migrations import ServerMigrationCloud

PHASE_ONE = (
    'setup_server',
    'share_server_migration_start',
    'share_server_migration_continue',
)

pytestmark = sampling.combinations('database_url', 'cloud')


@pytest.fixture(params=[True, False], ids=['fencing', 'no_fencing'])
def cloud(request, tmp_path, database_url):
    cloud = ServerMigrationCloud(
        tmp_path,
        url=database_url,
        backend_conf=f'dummy_driver_fencing = {request.param}',
    )
    yield cloud
    cloud.db.dispose()


@pytest.fixture
def share(cloud):
    return cloud.create_share_on_alpha(cloud.add_network())


def check_rolled_back(cloud, share, server):
    cloud.settle()
    assert not cloud.pending_pauses
    assert cloud.driver('beta').server_inventory() == {}
    assert cloud.has_no_incoming_servers()
    assert [row.id for row in cloud.servers()] == [server]
    assert cloud.api.show(share)['status'] == 'available'
    cloud.check_invariants()


def destination_of(cloud, server):
    return cloud.progress(server)['destination_share_server_id']


@pytest.mark.parametrize('method', PHASE_ONE)
@pytest.mark.parametrize('nondisruptive', [True, False])
def test_server_of_a_cancelled_migration_is_not_left_behind(
    cloud, share, method, nondisruptive
):
    if nondisruptive and method == 'setup_server':
        pytest.skip('the driver sets it up at the start')
    server = cloud.server_of(share)
    pause_in(cloud, method, lambda: cloud.cancel(server))
    cloud.start(server, nondisruptive=nondisruptive)
    check_rolled_back(cloud, share, server)


@pytest.mark.parametrize('method', PHASE_ONE[1:])
def test_late_call_does_not_touch_the_next_migration(cloud, share, method):
    server = cloud.server_of(share)
    another = Another(cloud)
    destinations = []

    def cancel_and_start_again():
        another.take_over()
        destinations.append(destination_of(cloud, server))
        cloud.cancel(server)
        another.run()
        assert [row.id for row in cloud.servers()] == [server]
        cloud.start(server)
        another.run()
        destinations.append(destination_of(cloud, server))

    cloud.pause_at(f'before {method}', cancel_and_start_again)
    cloud.start(server)
    cloud.settle()
    assert not cloud.pending_pauses
    assert cloud.server(server)['task_state'] == 'migration_driver_phase1_done'
    cancelled, there = destinations
    assert there != cancelled
    assert destination_of(cloud, server) == there
    assert [*cloud.driver('beta').server_inventory()] == [there]
    cloud.complete(server)
    cloud.settle()
    assert cloud.server_of(share) == there
    cloud.check_invariants()


def test_late_call_leaves_a_completed_migration_alone(cloud, share):
    server = cloud.server_of(share)

    def complete():
        cloud.complete(server)

    pause_in(cloud, 'share_server_migration_continue', complete)
    cloud.start(server)
    cloud.settle()
    (row,) = cloud.servers()
    assert (row.host, row.status) == ('node@beta', 'active')
    assert cloud.server_of(share) == row.id
    assert [*cloud.driver('beta').server_inventory()] == [row.id]
    cloud.check_invariants()
