"""A worker is paused, loses its lease, and wakes after another has finished.

It wakes before or after the driver did what it was called for. Either way
it writes nothing, and what the other has written is what is there.
"""

import pytest

from manila_lite.db.queries.admin import recovery
from manila_lite.db.transitions import fire
from manila_lite.states.share_instance import SHARE_INSTANCE
from tests.support import cloud_snapshots as album
from tests.support.cloud import Cloud

LONG = 40.0
"""Longer than a lease, and shorter than services may be silent."""


@pytest.fixture
def cloud(tmp_path):
    cloud = Cloud(tmp_path, backends=['alpha'])
    yield cloud
    cloud.db.dispose()


def oversleep(cloud, place, then=lambda: None):
    """Pause the worker at a place until a rival has done all there is."""
    competing_runners = cloud.competing_runners()

    def meanwhile():
        cloud.clock.advance(LONG)
        run(competing_runners)
        then()
        run(competing_runners)

    cloud.pause_at(place, meanwhile)


def run(runners):
    while sum(runner.step() for runner in runners):
        pass


def messages(cloud):
    return [
        (one['action_id'], one['detail_id'])
        for one in cloud.api.get('/messages')['messages']
    ]


CASES = [
    # verb, place of the pause, status and size then
    ('create', 'before create_share', 'error', 3),
    ('create', 'after create_share', 'available', 3),
    ('extend', 'after extend_share', 'available', 5),
    ('shrink', 'after shrink_share', 'available', 1),
    ('delete', 'before delete_share', None, None),
    ('delete', 'after delete_share', None, None),
]


def ask(cloud, verb):
    """Ask for it; the id of the share."""
    if verb == 'create':
        return cloud.api.create(size=3)['id']
    share_id = cloud.create_share(size=3)
    if verb == 'delete':
        cloud.api.delete(share_id)
    else:
        cloud.api.act(
            share_id, verb, {'new_size': 5 if verb == 'extend' else 1}
        )
    return share_id


@pytest.mark.parametrize('verb, place, status, size', CASES)
def test_who_lost_its_lease_changes_nothing(cloud, verb, place, status, size):
    share_id = ask(cloud, verb)
    journal = []
    oversleep(cloud, place, lambda: journal.append(written(cloud)))
    cloud.settle()
    assert journal == [written(cloud)]
    assert {
        share['id']: (share['status'], share['size'])
        for share in cloud.api.get('/shares/detail')['shares']
    } == ({share_id: (status, size)} if status else {})
    assert messages(cloud) == ([('002', '001')] if status == 'error' else [])
    cloud.check_invariants()


def with_snapshot(cloud):
    """A share of 3 GiB that was 2 GiB when its snapshot was taken."""
    album.enable_snapshot_features(cloud)
    share_id = cloud.create_share(size=2)
    snapshot_id = album.create_available(cloud, share_id)
    cloud.api.act(share_id, 'extend', {'new_size': 3})
    cloud.settle()
    return share_id, snapshot_id


@pytest.mark.parametrize(
    'place, status',
    [
        ('before create_snapshot', 'error'),
        ('after create_snapshot', 'available'),
    ],
)
def test_who_lost_its_lease_takes_no_snapshot(cloud, place, status):
    share_id, _ = with_snapshot(cloud)
    snapshot_id = album.create(cloud, share_id)
    journal = []
    oversleep(cloud, place, lambda: journal.append(written(cloud)))
    cloud.settle()
    assert journal == [written(cloud)]
    assert album.show(cloud, snapshot_id)['status'] == status
    assert cloud.api.show(share_id)['status'] == 'available'


@pytest.mark.parametrize(
    'place', ['before delete_snapshot', 'after delete_snapshot']
)
def test_who_lost_its_lease_deletes_no_snapshot_twice(cloud, place):
    _, snapshot_id = with_snapshot(cloud)
    album.delete(cloud, snapshot_id)
    journal = []
    oversleep(cloud, place, lambda: journal.append(written(cloud)))
    cloud.settle()
    assert journal == [written(cloud)]
    assert cloud.api.get('/snapshots')['snapshots'] == []
    cloud.check_invariants()


@pytest.mark.parametrize(
    'place', ['before revert_to_snapshot', 'after revert_to_snapshot']
)
def test_who_lost_its_lease_reverts_nothing_that_shows(cloud, place):
    share_id, snapshot_id = with_snapshot(cloud)
    album.revert(cloud, share_id, snapshot_id)
    journal = []
    oversleep(cloud, place, lambda: journal.append(written(cloud)))
    cloud.settle()
    assert journal == [written(cloud)]
    assert cloud.api.show(share_id)['status'] == 'error'
    assert album.show(cloud, snapshot_id)['status'] == 'error'
    cloud.check_invariants()


@pytest.mark.parametrize(
    'place', ['before get_share_status', 'after get_share_status', 'committed']
)
@pytest.mark.parametrize(
    'event, status', [('extend', 'available'), ('reset_creating', 'available')]
)
def test_a_rescuer_that_lost_its_lease_changes_nothing(
    cloud, place, event, status
):
    share_id = cloud.create_share(size=3)
    (instance,) = cloud.api.get(f'/shares/{share_id}/instances')[
        'share_instances'
    ]
    cloud.db.write(fire, SHARE_INSTANCE, instance['id'], event)
    assert cloud.share.backends[0].reconciliation.run_pass() == 1
    journal = []
    oversleep(cloud, place, lambda: journal.append(written(cloud)))
    while cloud.step():
        pass
    assert journal == [written(cloud)]
    assert cloud.api.show(share_id)['status'] == status
    assert len(cloud.db.read(recovery.list_log, limit=9)) == 1
    cloud.check_invariants()


def written(cloud):
    """The last move that was made."""
    with cloud.db.engine.connect() as connection:
        return connection.exec_driver_sql(
            'SELECT MAX(id) FROM transitions'
        ).scalar()


def test_what_was_given_up_and_deleted_is_not_left_behind(cloud):
    """The worker wakes to create what nobody knows any more."""
    share_id = cloud.api.create(size=3)['id']
    oversleep(cloud, 'before create_share', lambda: cloud.api.delete(share_id))
    cloud.settle()
    assert cloud.api.get('/shares')['shares'] == []
    assert cloud.driver().inventory() == {}
    cloud.check_invariants()


def test_what_was_given_up_can_be_deleted_after_all(cloud):
    share_id = cloud.api.create(size=3)['id']
    oversleep(cloud, 'before create_share')
    cloud.settle()
    assert len(cloud.driver().inventory()) == 1
    cloud.api.delete(share_id)
    cloud.settle()
    assert cloud.driver().inventory() == {}
    cloud.check_invariants()


def test_a_scheduler_that_lost_its_lease_places_nothing(cloud):
    """It has chosen a pool when it is paused; the rival places."""
    cloud.api.create(size=3)
    oversleep(cloud, 'committed')  # when it has claimed
    cloud.settle()
    (share,) = cloud.api.get('/shares/detail')['shares']
    assert share['status'] == 'available'
    cloud.check_invariants()


@pytest.mark.parametrize('verb, size', [('extend', 5), ('shrink', 1)])
def test_what_a_late_worker_resized_is_noted(cloud, verb, size):
    """Given up, and done all the same by who woke too late."""
    share_id = ask(cloud, verb)
    oversleep(cloud, f'before {verb}_share')
    cloud.settle()
    share = cloud.api.show(share_id)
    assert (share['status'], share['size']) == ('available', size)
    cloud.check_invariants()


@pytest.mark.parametrize('verb, size', [('extend', 5), ('shrink', 1)])
def test_what_was_resized_in_spite_of_a_decree_is_noted(cloud, verb, size):
    share_id = ask(cloud, verb)
    cloud.pause_at(
        f'before {verb}_share',
        lambda: cloud.api.act(
            share_id, 'reset_status', {'status': 'available'}
        ),
    )
    cloud.settle()
    share = cloud.api.show(share_id)
    assert (share['status'], share['size']) == ('available', size)
    cloud.check_invariants()


@pytest.mark.parametrize(
    'verb, place',
    [
        ('create', 'before create_share'),
        ('delete', 'before delete_share'),
        ('extend', 'before extend_share'),
    ],
)
def test_a_pause_without_a_rival_costs_nothing(cloud, verb, place):
    """The same process finds its own work over time, and keeps it."""
    ask(cloud, verb)

    def meanwhile():
        cloud.clock.advance(LONG)
        run(cloud.runners)

    cloud.pause_at(place, meanwhile)
    cloud.settle()
    method = place.partition(' ')[2]
    called = [call.method for call in cloud.driver().calls]
    assert called.count(method) == 1
    assert 'get_share_status' not in called
    assert messages(cloud) == []
    cloud.check_invariants()
