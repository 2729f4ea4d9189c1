"""Reverting a share that has replicas to a snapshot."""

import pytest

from tests.functional.share.replication.snapshots.snapshot_states import (
    complete,
    run,
    state,
    status,
    statuses,
)
from tests.support import cloud_snapshots
from tests.support.cloud import Crash

PASSIVE_STYLES = ('readable', 'dr')


@pytest.mark.parametrize('style', PASSIVE_STYLES)
def test_other_replicas_are_out_of_sync_after_a_revert(build_cloud, style):
    cloud = build_cloud(style)
    share_id = cloud.create_share_on('alpha')
    cloud.replicate(share_id, 'beta')
    snapshot_id = complete(cloud, share_id)
    cloud_snapshots.revert(cloud, share_id, snapshot_id)
    assert cloud.states(share_id) == {
        'alpha': ('reverting', 'active'),
        'beta': ('available', 'out_of_sync'),
    }
    assert status(cloud, snapshot_id) == 'restoring'
    assert statuses(cloud, snapshot_id) == {'alpha': 'restoring', 'beta': 'available'}
    cloud.settle()
    assert cloud.states(share_id) == {
        'alpha': ('available', 'active'),
        'beta': ('available', 'out_of_sync'),
    }
    assert status(cloud, snapshot_id) == 'available'
    cloud.update()
    assert state(cloud, share_id, 'beta') == 'in_sync'
    cloud.check_invariants()


def test_writable_replicas_are_reverted_together(build_cloud):
    cloud = build_cloud('writable')
    share_id = cloud.create_share_on('alpha')
    cloud.replicate(share_id, 'beta')
    snapshot_id = cloud_snapshots.create_available(cloud, share_id)
    cloud_snapshots.revert(cloud, share_id, snapshot_id)
    assert cloud.api.show(share_id)['status'] == 'reverting'
    cloud.settle()
    assert set(cloud.states(share_id).values()) == {('available', 'active')}
    assert set(statuses(cloud, snapshot_id).values()) == {'available'}
    cloud.check_invariants()


@pytest.mark.parametrize('action, size', [('extend', 5), ('shrink', 1)])
def test_revert_resizes_every_replica(cloud, share_id, action, size):
    snapshot_id = complete(cloud, share_id)
    cloud.api.act(share_id, action, {'new_size': size})
    cloud.settle()
    assert cloud.usage('replica_gigabytes') == (2 * size, 0)
    cloud_snapshots.revert(cloud, share_id, snapshot_id)
    cloud.settle()
    assert cloud.api.show(share_id)['size'] == 2
    assert cloud.usage('replica_gigabytes') == (4, 0)
    assert cloud.usage('gigabytes') == (2, 0)
    cloud.update()
    cloud.check_invariants()


def test_revert_beyond_the_quota_for_all_replicas_is_refused(cloud, share_id):
    snapshot_id = complete(cloud, share_id)
    cloud.api.act(share_id, 'shrink', {'new_size': 1})
    cloud.settle()
    cloud.api.request(
        'PUT',
        '/quota-sets/project',
        {'quota_set': {'replica_gigabytes': 3}},
        expect=200,
    )
    cloud_snapshots.revert(cloud, share_id, snapshot_id, 403)
    assert cloud.states(share_id)['beta'] == ('available', 'in_sync')
    assert cloud.usage('replica_gigabytes') == (2, 0)


def test_failed_revert_leaves_replicas_out_of_sync(cloud, share_id):
    snapshot_id = complete(cloud, share_id)
    cloud.driver().fail_next('revert_to_replicated_snapshot')
    cloud_snapshots.revert(cloud, share_id, snapshot_id)
    cloud.settle()
    assert cloud.states(share_id) == {
        'alpha': ('reverting_error', 'active'),
        'beta': ('available', 'out_of_sync'),
    }
    assert set(statuses(cloud, snapshot_id).values()) == {'available'}


def test_share_stays_in_error_after_a_lost_revert(cloud, share_id):
    """Its data is unknown, however healthy the back end is."""
    snapshot_id = complete(cloud, share_id)

    def die():
        raise Crash

    cloud.pause_at('after revert_to_replicated_snapshot', die)
    cloud_snapshots.revert(cloud, share_id, snapshot_id)
    with pytest.raises(Crash):
        cloud.settle()
    cloud.restart()
    cloud.settle()
    cloud.update()
    assert cloud.states(share_id) == {
        'alpha': ('error', 'active'),
        'beta': ('available', 'in_sync'),
    }
    assert status(cloud, snapshot_id) == 'error'
    cloud.check_invariants()


@pytest.mark.parametrize('when', ['before', 'after'])
def test_reply_from_before_a_revert_makes_no_replica_in_sync(cloud, share_id, when):
    snapshot_id = complete(cloud, share_id)
    cloud.pause_at(
        f'{when} update_replica_state',
        lambda: cloud_snapshots.revert(cloud, share_id, snapshot_id),
    )
    for backend in cloud.share.backends:
        backend.endpoints.replica_updates.request_pass()
    run(cloud, 'beta')
    assert state(cloud, share_id, 'beta') == 'out_of_sync'
    cloud.settle()
    assert state(cloud, share_id, 'beta') == 'out_of_sync'
    cloud.update()
    assert state(cloud, share_id, 'beta') == 'in_sync'
    cloud.check_invariants()


def test_incomplete_snapshot_cannot_be_reverted_to(cloud, share_id):
    snapshot_id = cloud_snapshots.create(cloud, share_id)
    cloud.settle()
    cloud_snapshots.revert(cloud, share_id, snapshot_id, 409)
    cloud.update()
    cloud_snapshots.revert(cloud, share_id, snapshot_id)
    cloud.settle()
    cloud.update()
    cloud.check_invariants()


def test_replica_that_failed_to_be_reverted_follows_another_one(build_cloud):
    """It is passive after a promotion, and gets new snapshots all the same."""
    cloud = build_cloud('readable')
    share_id = cloud.create_share_on('alpha')
    old_id = cloud.active(share_id).id
    replica_id = cloud.replicate(share_id, 'beta')
    reverted = cloud.snapshot(share_id)
    cloud.update()
    cloud.driver('alpha').fail_next('revert_to_replicated_snapshot')
    cloud_snapshots.revert(cloud, share_id, reverted)
    cloud.settle()
    cloud.update()
    assert cloud.ask('promote', replica_id)
    cloud.settle()
    assert cloud.states(share_id)['alpha'][0] == 'reverting_error'
    snapshot_id = cloud.snapshot(share_id)
    cloud.update()
    assert cloud.snapshots_on(old_id)[snapshot_id] == 'available'
