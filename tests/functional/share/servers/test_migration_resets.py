"""Administrators reset statuses in the middle of a server migration.

Everything ends: the destination is removed or has all shares, and they are
available or in error.
"""

import pytest

from manila_lite.db.transitions import fire
from manila_lite.states.share_instance import SHARE_INSTANCE
from tests.support.server_migrations import ServerMigrationCloud


@pytest.fixture
def cloud(build_cloud):
    return build_cloud(kind=ServerMigrationCloud)


@pytest.fixture
def moved(cloud):
    """A server and the shares on it."""
    network = cloud.add_network()
    first, second = (cloud.create_share_on_alpha(network) for _ in range(2))
    cloud.allow(first)
    cloud.snapshot(first)
    server = cloud.server_of(first)
    assert cloud.server_of(second) == server
    return server, first, second


def check_rolled_back(cloud, server, there, shares):
    """Everything has ended: the destination is gone, the shares serve."""
    cloud.settle()
    cloud.check_invariants()
    cloud.server(there, expect=404)
    assert cloud.has_no_incoming_servers()
    assert there not in cloud.driver('beta').server_inventory()
    assert [row.open_for for row in cloud.migrations()] == [None]
    assert cloud.server(server)['status'] == 'active'
    for share in shares:
        assert cloud.api.show(share)['status'] == 'available'
        assert cloud.server_of(share) == server
    cloud.start_to_phase1(server)
    cloud.complete(server)
    cloud.settle()
    cloud.check_invariants()


@pytest.mark.parametrize('phase_one_done', [True, False])
@pytest.mark.parametrize('asked', ['cancel', 'nothing', 'complete'])
def test_source_reset_during_migration_ends_it(cloud, moved, phase_one_done, asked):
    server, first, second = moved
    if phase_one_done:
        cloud.start_to_phase1(server)
    else:
        cloud.start(server)
        for _ in range(3):
            cloud.step()
    there = cloud.progress(server)['destination_share_server_id']
    cloud.act(server, 'reset_status', {'status': 'active'}, 202)
    if asked == 'cancel':
        cloud.cancel(server)
    elif asked == 'complete':
        cloud.complete(server, expect=400)
    check_rolled_back(cloud, server, there, [first, second])


@pytest.mark.parametrize('state', [None, 'migration_error', 'migration_success'])
def test_task_reset_during_migration_ends_it(cloud, moved, state):
    server, first, second = moved
    cloud.start_to_phase1(server)
    there = cloud.progress(server)['destination_share_server_id']
    cloud.act(server, 'reset_task_state', {'task_state': state}, 202)
    check_rolled_back(cloud, server, there, [first, second])


def test_second_phase_begins_by_request_only(cloud, moved):
    server, first, second = moved
    cloud.start_to_phase1(server)
    there = cloud.progress(server)['destination_share_server_id']
    cloud.act(server, 'reset_task_state', {'task_state': 'migration_completing'}, 202)
    check_rolled_back(cloud, server, there, [first, second])


def test_only_the_driver_completes_the_copy(cloud, moved):
    server, first, second = moved
    cloud.start(server)
    state = {'task_state': 'migration_driver_phase1_done'}
    answer = cloud.act(server, 'reset_task_state', state, 400)
    assert 'has not copied everything' in str(answer.json)
    cloud.settle()
    cloud.act(server, 'reset_task_state', state, 202)
    cloud.complete(server)
    cloud.settle()
    cloud.check_invariants()
    cloud.server(server, expect=404)


@pytest.mark.parametrize(
    'state',
    [
        'migration_starting',
        'migration_driver_in_progress',
        'migration_driver_phase1_done',
        'migration_cancel_in_progress',
    ],
)
def test_no_reset_leads_back_to_the_first_phase(cloud, moved, state):
    """A cancellation would then remove the only copy of the data."""
    server, first, second = moved
    cloud.start_to_phase1(server)
    there = cloud.complete(server)['destination_share_server_id']
    answer = cloud.act(server, 'reset_task_state', {'task_state': state}, 400)
    assert 'is in its second phase' in str(answer.json)
    cloud.settle()
    cloud.check_invariants()
    assert {cloud.server_of(share) for share in (first, second)} == {there}


@pytest.mark.parametrize(
    'state', ['migration_driver_in_progress', 'migration_driver_phase1_done']
)
def test_a_task_that_is_reset_while_it_is_cancelled_fails(cloud, moved, state):
    """Without the migration nothing would continue it."""
    server, first, second = moved
    cloud.start_to_phase1(server)
    there = cloud.progress(server)['destination_share_server_id']
    answers = []

    def reset():
        answers.append(cloud.act(server, 'reset_task_state', {'task_state': state}))

    cloud.pause_at('before share_server_migration_cancel', reset)
    cloud.cancel(server)
    cloud.settle()
    assert [answer.status_int for answer in answers] == [202]
    assert cloud.server(server)['task_state'] == 'migration_error'
    check_rolled_back(cloud, server, there, [first, second])


@pytest.mark.parametrize('status', ['active', 'error'])
def test_destination_reset_during_migration_is_removed_by_cancel(cloud, moved, status):
    server, first, second = moved
    cloud.start_to_phase1(server)
    there = cloud.progress(server)['destination_share_server_id']
    cloud.act(there, 'reset_status', {'status': status}, 202)
    cloud.cancel(server)
    check_rolled_back(cloud, server, there, [first, second])


def test_destination_reset_during_migration_receives_the_shares(cloud, moved):
    server, first, _ = moved
    cloud.start_to_phase1(server)
    there = cloud.progress(server)['destination_share_server_id']
    cloud.act(there, 'reset_status', {'status': 'active'}, 202)
    cloud.complete(server)
    cloud.settle()
    cloud.check_invariants()
    assert cloud.server_of(first) == there


@pytest.mark.parametrize('status', ['available', 'error', 'deleting'])
def test_reset_of_a_share_on_a_migrated_server_is_refused(cloud, moved, status):
    server, first, second = moved
    cloud.start_to_phase1(server)
    there = cloud.progress(server)['destination_share_server_id']
    answer = cloud.api.act(first, 'reset_status', {'status': status}, expect=400)
    assert server in answer.json['badRequest']['message']
    cloud.cancel(server)
    check_rolled_back(cloud, server, there, [first, second])


@pytest.mark.parametrize('status', ['available', 'error'])
@pytest.mark.parametrize('end', ['complete', 'cancel'])
def test_share_reset_during_migration_moves_with_its_server(cloud, moved, status, end):
    server, first, second = moved
    cloud.start_to_phase1(server)
    there = cloud.progress(server)['destination_share_server_id']
    # As the previous release lets administrators do.
    cloud.db.write(
        fire,
        SHARE_INSTANCE,
        cloud.instance(first).id,
        SHARE_INSTANCE.reset_event(status),
    )
    getattr(cloud, end)(server)
    cloud.settle()
    cloud.check_invariants()
    assert cloud.api.show(first)['status'] == status
    assert cloud.api.show(second)['status'] == 'available'
    where = there if end == 'complete' else server
    assert {cloud.server_of(share) for share in (first, second)} == {where}
    cloud.server(server if end == 'complete' else there, expect=404)


def test_server_reset_in_the_second_phase_moves_and_is_removed(cloud, moved):
    server, first, second = moved
    cloud.start_to_phase1(server)
    there = cloud.complete(server)['destination_share_server_id']
    cloud.act(server, 'reset_status', {'status': 'active'}, 202)
    cloud.settle()
    cloud.check_invariants()
    cloud.server(server, expect=404)
    assert {cloud.server_of(share) for share in (first, second)} == {there}


def test_task_reset_in_the_second_phase_is_shown_with_a_message(cloud, moved):
    server, first, _ = moved
    cloud.start_to_phase1(server)
    cloud.complete(server)
    cloud.act(server, 'reset_task_state', {'task_state': None}, 202)
    cloud.settle()
    assert cloud.api.show(first)['status'] == 'error'
    told = cloud.api.get('/messages')['messages']
    assert first in {row['resource_id'] for row in told}
    assert [row.open_for for row in cloud.migrations()] == [None]
