"""Administrators read why no pool could serve a request."""

import datetime

from manila_lite.db.queries.services import pools
from tests.support import cloud_snapshots, share_groups
from tests.support.dhss import ShareServersCloud
from tests.support.replicated import ReplicatedCloud

SCHEDULED_CLONES = 'use_scheduler_creating_share_from_snapshot = true'


def explanation(cloud):
    """Return the text that administrators read in the only message."""
    cloud.settle()
    (message,) = cloud.api.get('/messages')['messages']
    assert message['detail_id'] is not None
    return message['user_message']


def fill(cloud):
    """Let no pool have room."""
    for name in cloud.backend_names:
        cloud.db.write(pools.adjust_allocated, f'node@{name}#pool', 10**7)


def check_capacity(text, *backends):
    assert 'CapacityFilter left 0, rejected ' in text
    for backend in backends:
        assert f'node@{backend}#pool: ' in text
        assert 'GiB allocated, limit ' in text


def test_share_from_a_snapshot(build_cloud):
    cloud = build_cloud(SCHEDULED_CLONES)
    cloud_snapshots.enable_snapshot_features(cloud)
    snapshot = cloud_snapshots.create_available(cloud, cloud.create_share(size=1))
    fill(cloud)
    cloud.api.create(snapshot_id=snapshot, size=1)
    check_capacity(explanation(cloud), 'alpha', 'beta')


def test_back_end_that_does_not_answer(build_cloud):
    cloud = build_cloud()
    cloud.settle()
    seen = datetime.datetime.fromtimestamp(cloud.clock.now, datetime.UTC)
    cloud.clock.advance(3600)
    cloud.share.backends[1].beat()
    fill(cloud)
    cloud.api.create()
    cloud.run_pending()
    (message,) = cloud.api.get('/messages')['messages']
    assert (
        'ServiceUp left 1, rejected node@alpha#pool: its service is down '
        f'since {seen:%Y-%m-%d %H:%M} UTC. '
    ) in message['user_message']


def test_replica(build_cloud):
    cloud = build_cloud(kind=ReplicatedCloud)
    share = cloud.create_share_on('alpha')
    fill(cloud)
    cloud.request_replica(share, 'beta')
    text = explanation(cloud)
    assert text.startswith('allocate host: ')
    # What excludes the back end is said of each one.
    for backend in ('alpha', 'beta', 'gamma'):
        assert f'node@{backend}#pool: ' in text


def test_share_group(build_cloud):
    cloud = build_cloud()
    share_groups.request(
        cloud.api,
        share_groups.create_type(cloud.api, consistent_snapshot_support='pool'),
    )
    text = explanation(cloud)
    assert 'ConsistentSnapshotFilter left 0, rejected node@' in text


def test_share_in_a_network_without_a_subnet_that_fits(build_cloud):
    cloud = build_cloud(kind=ShareServersCloud)
    network = cloud.add_network()
    fill(cloud)
    cloud.api.create(share_network_id=network)
    check_capacity(explanation(cloud), *cloud.backend_names)


def test_share_server_that_cannot_take_the_share(build_cloud):
    cloud = build_cloud(kind=ShareServersCloud)
    cloud_snapshots.enable_snapshot_features(cloud)
    share = cloud.create_share_on_network(cloud.add_network())
    snapshot = cloud_snapshots.create_available(cloud, share)
    cloud.api.request(
        'POST',
        f'/share-servers/{cloud.server_of(share)}/action',
        {'reset_status': {'status': 'error'}},
        expect=202,
    )
    cloud.api.create(snapshot_id=snapshot, size=1)
    assert 'the share server of the snapshot cannot take the share' in explanation(
        cloud
    )


def test_services_that_are_disabled(build_cloud):
    cloud = build_cloud()
    for name in cloud.backend_names:
        cloud.api.request(
            'PUT',
            '/services/disable',
            {'host': f'node@{name}', 'binary': 'manila-share'},
            expect=200,
        )
    cloud.api.create()
    assert (
        'ServiceUp left 0, rejected node@alpha#pool: its service is disabled'
        in explanation(cloud)
    )
