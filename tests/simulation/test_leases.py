"""A worker is paused, loses its lease, and resumes after another finished.

It resumes before or after its driver call. Either way it writes nothing, and
what the other worker has written stays. The back end ignores fencing tokens.
"""

import pytest

from manila_lite.db.queries.recovery import recovery
from manila_lite.db.transitions import fire
from manila_lite.states.share_instance import SHARE_INSTANCE
from tests.support import cloud_snapshots
from tests.support.cloud import Cloud

LONG = 40.0
"""Seconds; longer than a lease, shorter than service_down_time."""


@pytest.fixture
def cloud(tmp_path):
    cloud = Cloud(
        tmp_path, backends=['alpha'], backend_conf='dummy_driver_fencing = no'
    )
    yield cloud
    cloud.db.dispose()


def lose_lease_at(cloud, point, after_work=lambda: None):
    """Pause the worker at a crash point while a competitor does all work."""
    competing_runners = cloud.competing_runners()

    def meanwhile():
        cloud.clock.advance(LONG)
        run(competing_runners)
        after_work()
        run(competing_runners)

    cloud.pause_at(point, meanwhile)


def run(runners):
    while sum(runner.step() for runner in runners):
        pass


def messages(cloud):
    return [
        (one['action_id'], one['detail_id'])
        for one in cloud.api.get('/messages')['messages']
    ]


CASES = [
    # verb, crash point of the pause, resulting status and size
    ('create', 'before create_share', 'available', 3),
    ('create', 'after create_share', 'available', 3),
    ('extend', 'after extend_share', 'available', 5),
    ('shrink', 'after shrink_share', 'available', 1),
    ('delete', 'before delete_share', None, None),
    ('delete', 'after delete_share', None, None),
]


def send_request(cloud, verb):
    """Send the request; return the id of the share."""
    if verb == 'create':
        return cloud.api.create(size=3)['id']
    share_id = cloud.create_share(size=3)
    if verb == 'delete':
        cloud.api.delete(share_id)
    else:
        cloud.api.act(share_id, verb, {'new_size': 5 if verb == 'extend' else 1})
    return share_id


@pytest.mark.parametrize('verb, point, status, size', CASES)
def test_worker_without_lease_changes_nothing(cloud, verb, point, status, size):
    share_id = send_request(cloud, verb)
    journal = []
    lose_lease_at(cloud, point, lambda: journal.append(last_move(cloud)))
    cloud.settle()
    assert journal == [last_move(cloud)]
    assert {
        share['id']: (share['status'], share['size'])
        for share in cloud.api.get('/shares/detail')['shares']
    } == ({share_id: (status, size)} if status else {})
    assert messages(cloud) == []
    cloud.check_invariants()


def with_snapshot(cloud):
    """Create a share of 3 GiB with a snapshot from when it had 2 GiB."""
    cloud_snapshots.enable_snapshot_features(cloud)
    share_id = cloud.create_share(size=2)
    snapshot_id = cloud_snapshots.create_available(cloud, share_id)
    cloud.api.act(share_id, 'extend', {'new_size': 3})
    cloud.settle()
    return share_id, snapshot_id


@pytest.mark.parametrize(
    'point, status',
    [('before create_snapshot', 'error'), ('after create_snapshot', 'available')],
)
def test_worker_without_lease_creates_no_snapshot(cloud, point, status):
    share_id, _ = with_snapshot(cloud)
    snapshot_id = cloud_snapshots.create(cloud, share_id)
    journal = []
    lose_lease_at(cloud, point, lambda: journal.append(last_move(cloud)))
    cloud.settle()
    assert journal == [last_move(cloud)]
    assert cloud_snapshots.show(cloud, snapshot_id)['status'] == status
    assert cloud.api.show(share_id)['status'] == 'available'


@pytest.mark.parametrize('point', ['before delete_snapshot', 'after delete_snapshot'])
def test_worker_without_lease_deletes_no_snapshot_twice(cloud, point):
    _, snapshot_id = with_snapshot(cloud)
    cloud_snapshots.delete(cloud, snapshot_id)
    journal = []
    lose_lease_at(cloud, point, lambda: journal.append(last_move(cloud)))
    cloud.settle()
    assert journal == [last_move(cloud)]
    assert cloud.api.get('/snapshots')['snapshots'] == []
    cloud.check_invariants()


@pytest.mark.parametrize(
    'point', ['before revert_to_snapshot', 'after revert_to_snapshot']
)
def test_worker_without_lease_completes_no_revert(cloud, point):
    share_id, snapshot_id = with_snapshot(cloud)
    cloud_snapshots.revert(cloud, share_id, snapshot_id)
    journal = []
    lose_lease_at(cloud, point, lambda: journal.append(last_move(cloud)))
    cloud.settle()
    assert journal == [last_move(cloud)]
    assert cloud.api.show(share_id)['status'] == 'error'
    assert cloud_snapshots.show(cloud, snapshot_id)['status'] == 'error'
    cloud.check_invariants()


@pytest.mark.parametrize(
    'point', ['before get_share_status', 'after get_share_status', 'committed']
)
@pytest.mark.parametrize(
    'event, status', [('extend', 'available'), ('reset_creating', 'available')]
)
def test_rescue_without_lease_changes_nothing(cloud, point, event, status):
    share_id = cloud.create_share(size=3)
    (instance,) = cloud.api.get(f'/shares/{share_id}/instances')['share_instances']
    cloud.db.write(fire, SHARE_INSTANCE, instance['id'], event)
    assert cloud.share.backends[0].endpoints.reconciliation.run_pass() == 1
    journal = []
    lose_lease_at(cloud, point, lambda: journal.append(last_move(cloud)))
    while cloud.step():
        pass
    assert journal == [last_move(cloud)]
    assert cloud.api.show(share_id)['status'] == status
    assert len(cloud.db.read(recovery.list_log, limit=9)) == 1
    cloud.check_invariants()


def last_move(cloud):
    """Return the id of the last move in the journal."""
    with cloud.db.engine.connect() as connection:
        return connection.exec_driver_sql('SELECT MAX(id) FROM transitions').scalar()


def test_share_created_after_its_deletion_is_removed(cloud):
    """The worker resumes to create a share whose row is deleted."""
    share_id = cloud.api.create(size=3)['id']
    lose_lease_at(cloud, 'before create_share', lambda: cloud.api.delete(share_id))
    cloud.settle()
    assert cloud.api.get('/shares')['shares'] == []
    assert cloud.driver().inventory() == {}
    cloud.check_invariants()


def test_share_created_after_its_failure_can_be_deleted(cloud):
    share_id = cloud.api.create(size=3)['id']
    lose_lease_at(cloud, 'before create_share')
    cloud.settle()
    assert len(cloud.driver().inventory()) == 1
    cloud.api.delete(share_id)
    cloud.settle()
    assert cloud.driver().inventory() == {}
    cloud.check_invariants()


def test_scheduler_without_lease_places_nothing(cloud):
    """It is paused after it has chosen a pool; the competitor places."""
    cloud.api.create(size=3)
    lose_lease_at(cloud, 'committed')  # when it has claimed
    cloud.settle()
    (share,) = cloud.api.get('/shares/detail')['shares']
    assert share['status'] == 'available'
    cloud.check_invariants()


@pytest.mark.parametrize('verb, size', [('extend', 5), ('shrink', 1)])
def test_late_resize_is_recorded(cloud, verb, size):
    """The resize was given up; the paused worker then did it anyway."""
    share_id = send_request(cloud, verb)
    lose_lease_at(cloud, f'before {verb}_share')
    cloud.settle()
    share = cloud.api.show(share_id)
    assert (share['status'], share['size']) == ('available', size)
    cloud.check_invariants()


@pytest.mark.parametrize('verb, size', [('extend', 5), ('shrink', 1)])
def test_resize_completed_after_reset_status_is_recorded(cloud, verb, size):
    share_id = send_request(cloud, verb)
    cloud.pause_at(
        f'before {verb}_share',
        lambda: cloud.api.act(share_id, 'reset_status', {'status': 'available'}),
    )
    cloud.settle()
    share = cloud.api.show(share_id)
    assert (share['status'], share['size']) == ('available', size)
    cloud.check_invariants()


@pytest.mark.parametrize(
    'verb, point',
    [
        ('create', 'before create_share'),
        ('delete', 'before delete_share'),
        ('extend', 'before extend_share'),
    ],
)
def test_pause_without_competitor_has_no_effect(cloud, verb, point):
    """The process finds its own work expired, and keeps it."""
    send_request(cloud, verb)

    def meanwhile():
        cloud.clock.advance(LONG)
        run(cloud.runners)

    cloud.pause_at(point, meanwhile)
    cloud.settle()
    method = point.partition(' ')[2]
    called = [call.method for call in cloud.driver().calls]
    assert called.count(method) == 1
    # A deletion looks for the share first, a rescue would look again.
    assert called.count('get_share_status') == (verb == 'delete')
    assert messages(cloud) == []
    cloud.check_invariants()
