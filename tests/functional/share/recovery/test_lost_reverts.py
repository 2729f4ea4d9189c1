"""A process dies in the middle of a revert."""

import pytest

from manila_lite.work import table
from tests.support import cloud_snapshots as snapshots
from tests.support.api_client import ApiClient
from tests.support.cloud import Cloud, Crash

POINTS = ('before revert_to_snapshot', 'after revert_to_snapshot')


@pytest.fixture
def cloud(build_cloud, database_url):
    cloud = build_cloud(kind=Cloud, url=database_url, backends=['alpha'])
    snapshots.enable_snapshot_features(cloud)
    return cloud


@pytest.fixture(params=POINTS)
def lost(request, cloud):
    """A share and a snapshot whose revert was given up."""
    share_id = cloud.create_share(size=1)
    snapshot_id = snapshots.create_available(cloud, share_id)
    cloud.api.act(share_id, 'extend', {'new_size': 3})
    cloud.settle()
    snapshots.revert(cloud, share_id, snapshot_id)

    def die():
        raise Crash(request.param)

    cloud.pause_at(request.param, die)
    with pytest.raises(Crash):
        cloud.run_pending()
    cloud.restart()
    cloud.clock.advance(60)
    cloud.db.write(expire, cloud)
    cloud.settle()
    assert cloud.api.show(share_id)['status'] == 'error'
    assert snapshots.show(cloud, snapshot_id)['status'] == 'error'
    return share_id, snapshot_id


def expire(session, cloud):
    """End the leases: the time of a database server is not simulated."""
    for runner in cloud.runners:
        table.expire_leases(session, runner.queues)


def test_message_and_record_say_how_to_go_on(cloud, lost):
    told = [
        row['user_message']
        for row in cloud.api.get('/messages')['messages']
        if row['action_id'] == '006'
    ]
    assert len(told) == 2
    assert all('revert to the same snapshot again' in text for text in told)
    (entry,) = [
        row
        for row in cloud.api.get('/recovery/log')['log']
        if row['status_before'] == 'reverting'
    ]
    assert 'revert to the same snapshot again' in entry['reason']


def test_the_same_revert_can_be_requested_again(cloud, lost):
    share_id, snapshot_id = lost
    tenant = ApiClient(cloud, roles='member,reader')
    tenant.act(share_id, 'revert', {'snapshot_id': snapshot_id})
    tenant.act(share_id, 'revert', {'snapshot_id': snapshot_id}, expect=409)
    cloud.settle()
    assert cloud.api.show(share_id)['status'] == 'available'
    assert cloud.api.show(share_id)['size'] == 1
    assert snapshots.show(cloud, snapshot_id)['status'] == 'available'
    assert cloud.usage('gigabytes') == (1, 0)
    cloud.check_invariants()


@pytest.mark.parametrize('which', ['share', 'snapshot'])
def test_what_an_administrator_put_into_error_is_not_reverted(cloud, lost, which):
    share_id, snapshot_id = lost
    if which == 'share':
        cloud.api.act(share_id, 'reset_status', {'status': 'error'})
    else:
        snapshots.act(cloud, snapshot_id, 'reset_status', {'status': 'error'})
    snapshots.revert(cloud, share_id, snapshot_id, expect=409)
    assert cloud.api.show(share_id)['status'] == 'error'
