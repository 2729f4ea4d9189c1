"""Administrators reset statuses in the middle of a share migration.

A reset that takes part of it is refused. Rows that a process of the previous
release has let be reset end at rest, and the share keeps its data.
"""

import pytest

from manila_lite.db.moves import shares as share_moves
from manila_lite.db.queries.services import pools
from manila_lite.db.queries.shares import (
    instances as share_instances,
    migrations as migration_rows,
)
from manila_lite.db.transitions import fire
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_task import OF_COPY, OF_DRIVER, SHARE_TASK
from tests.support import host_assisted, sampling, share_migrations as migrations
from tests.support.cloud_images import prepared

# The first two have lost data, or left an instance without any.
STATUSES = [
    'available',
    'deleting',
    *sampling.sample(sorted(SHARE_INSTANCE.resets - {'available', 'deleting'}), 1),
]

pytestmark = sampling.enumeration


@pytest.fixture
def cloud(build_cloud):
    return build_cloud(extra_conf=migrations.SHORT_POLL_INTERVAL)


@pytest.fixture
@prepared
def share(cloud):
    """A share whose migration waits for its second phase."""
    share = migrations.create_on_alpha(cloud)
    migrations.start(cloud, share)
    cloud.settle()
    assert migrations.task_state(cloud, share) == 'migration_driver_phase1_done'
    return share


def instances(cloud, share):
    """Return the ids of source and destination."""
    rows = cloud.api.get(f'/shares/{share}/instances')['share_instances']
    source, destination = sorted(rows, key=lambda row: row['host'])
    return source['id'], destination['id']


def reset_instance(cloud, id, status, expect=202):
    return cloud.api.request(
        'POST',
        f'/share_instances/{id}/action',
        {'reset_status': {'status': status}},
        expect=expect,
    )


def reset_in_previous_release(cloud, id, status):
    cloud.db.write(fire, SHARE_INSTANCE, id, SHARE_INSTANCE.reset_event(status))


def check_returned(cloud, share):
    """The share is available on the source, and nothing is left elsewhere."""
    cloud.settle()
    assert migrations.instances(cloud, share) == [('node@alpha#pool', 'available')]
    assert [*cloud.driver('alpha').inventory()] == [
        migrations.instance_of(cloud, share)
    ]
    assert cloud.driver('beta').inventory() == {}
    cloud.check_invariants()


@pytest.mark.parametrize('status', STATUSES)
def test_a_reset_of_a_migrated_share_is_refused(cloud, share, status):
    source, destination = instances(cloud, share)
    answers = [
        migrations.act(cloud, share, 'reset_status', {'status': status}, expect=400),
        reset_instance(cloud, source, status, expect=400),
        reset_instance(cloud, destination, status, expect=400),
    ]
    for answer in answers:
        message = answer.json['badRequest']['message']
        assert 'cancel' in message
        assert 'migration_error' in message
    migrations.cancel(cloud, share)
    check_returned(cloud, share)
    migrations.act(cloud, share, 'reset_status', {'status': 'error'})


def test_the_way_out_of_a_refused_reset_leads_to_it(cloud, share):
    source, _ = instances(cloud, share)
    migrations.act(cloud, share, 'reset_task_state', {'task_state': 'migration_error'})
    cloud.settle()
    reset_instance(cloud, source, 'error')
    assert cloud.api.show(share)['status'] == 'error'
    cloud.check_invariants()


@pytest.mark.parametrize('state', sorted(OF_DRIVER | OF_COPY))
def test_a_task_that_is_reset_while_it_is_cancelled_fails(cloud, state):
    """Without the migration nothing would continue it."""
    by_driver = state in OF_DRIVER
    share = host_assisted.create(cloud)
    (migrations if by_driver else host_assisted).start(cloud, share)
    cloud.settle()
    answers = []

    def reset():
        answers.append(
            migrations.act(
                cloud, share, 'reset_task_state', {'task_state': state}, expect=None
            ).status_int
        )

    cloud.pause_at(
        f'before {"migration_cancel" if by_driver else "delete_share"}', reset
    )
    migrations.cancel(cloud, share)
    check_returned(cloud, share)
    assert answers == [202]
    assert migrations.task_state(cloud, share) == 'migration_error'


@pytest.mark.parametrize('status', STATUSES)
@pytest.mark.parametrize('which', [0, 1], ids=['source', 'destination'])
def test_no_second_phase_begins_after_a_reset(cloud, share, which, status):
    """Neither recovery nor the second phase may take the last copy."""
    id = instances(cloud, share)[which]
    needed = ('migrating', 'migrating_to')[which]
    reset_in_previous_release(cloud, id, status)
    cloud.settle()
    answer = migrations.complete(cloud, share, expect=None)
    if status == needed:
        assert answer.status_int == 202
    else:
        assert answer.status_int == 400
        assert 'can only be cancelled' in str(answer.json)
    cloud.settle()
    assert cloud.driver('alpha').inventory() or status == needed
    assert cloud.driver('beta').inventory()


@pytest.mark.parametrize('status', STATUSES)
def test_cancelling_removes_the_destination_in_any_status(cloud, share, status):
    _, destination = instances(cloud, share)
    reset_in_previous_release(cloud, destination, status)
    migrations.cancel(cloud, share)
    check_returned(cloud, share)


@pytest.mark.parametrize('status', STATUSES)
def test_the_source_stays_when_a_migration_is_cancelled(cloud, share, status):
    source, _ = instances(cloud, share)
    reset_in_previous_release(cloud, source, status)
    cloud.settle()
    migrations.cancel(cloud, share)
    cloud.settle()
    assert [*cloud.driver('alpha').inventory()] == [source]
    assert cloud.driver('beta').inventory() == {}
    assert cloud.api.show(share)['task_state'] == 'migration_cancelled'
    cloud.check_invariants()


@pytest.mark.parametrize('status', STATUSES)
@pytest.mark.parametrize('which', [0, 1], ids=['source', 'destination'])
def test_a_reset_in_the_second_phase_does_not_lose_the_data(
    cloud, share, which, status
):
    id = instances(cloud, share)[which]
    migrations.complete(cloud, share)
    reset_in_previous_release(cloud, id, status)
    cloud.settle()
    assert migrations.instances(cloud, share) == [('node@beta#pool', 'available')]
    assert [*cloud.driver('beta').inventory()] == [migrations.instance_of(cloud, share)]
    cloud.check_invariants()


@pytest.mark.parametrize('which', [0, 1], ids=['source', 'destination'])
@pytest.mark.parametrize('end', ['complete', 'cancel'])
def test_a_migration_whose_instance_is_gone_ends(cloud, share, which, end):
    """As after a deletion that the previous release let begin."""
    id = instances(cloud, share)[which]
    cloud.db.write(fire, SHARE_TASK, share, end)
    cloud.db.write(migration_rows.update, share, phase=1 + (end == 'complete'))
    row = cloud.db.read(share_instances.get, id)
    cloud.driver(('alpha', 'beta')[which]).delete_share(None, {'id': id, 'name': id})
    cloud.db.write(remove, row)
    cloud.settle()
    assert migrations.task_state(cloud, share) == 'migration_error'
    other = instances_left(cloud, share)
    assert [one['status'] for one in other] == [
        'available' if (which, end) == (1, 'cancel') else 'error'
    ]
    cloud.check_invariants()


def instances_left(cloud, share):
    return cloud.api.get(f'/shares/{share}/instances')['share_instances']


def remove(session, row):
    share_moves.remove_instance(session, row, 'migrated_away')
    pools.adjust_allocated(session, row.host, -row.size)
