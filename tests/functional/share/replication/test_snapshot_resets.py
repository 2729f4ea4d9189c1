"""A replica whose deletion is reset stays with all snapshots of its share."""

import pytest

from tests.functional.share.replication.snapshots.snapshot_states import (
    complete,
    replica_on,
    run,
    statuses,
)
from tests.support import cloud_snapshots
from tests.support.replicated import ADMIN

STYLES = ('readable', 'dr', 'writable')
ALL = {'alpha': 'available', 'beta': 'available'}


@pytest.fixture(params=STYLES)
def cloud(request, build_cloud):
    return build_cloud(request.param)


@pytest.fixture
def share_id(cloud):
    """A share on alpha and beta, with one snapshot on both."""
    share_id = cloud.create_share_on('alpha')
    cloud.replicate(share_id, 'beta')
    complete(cloud, share_id)
    cloud.update()
    return share_id


def delete_beta(cloud, share_id):
    """Request the deletion of a replica, and take a snapshot meanwhile."""
    beta = replica_on(cloud, share_id, 'beta').id
    cloud.ask('delete', beta)
    snapshot_id = cloud_snapshots.create(cloud, share_id)
    run(cloud, 'alpha')
    assert statuses(cloud, snapshot_id) == {'alpha': 'available'}
    return beta, snapshot_id


def check_stays(cloud, share_id, snapshot_id):
    cloud.settle()
    cloud.update()
    cloud.update()
    assert statuses(cloud, snapshot_id) == ALL
    cloud.check_invariants()
    state = 'active' if cloud.style == 'writable' else 'in_sync'
    assert cloud.states(share_id)['beta'] == ('available', state)


def test_replica_gets_snapshots_taken_during_its_reset_deletion(cloud, share_id):
    beta, snapshot_id = delete_beta(cloud, share_id)
    cloud.ask('reset_status', beta, 'available')
    assert cloud.states(share_id)['beta'] == ('available', 'out_of_sync')
    check_stays(cloud, share_id, snapshot_id)


def test_replica_gets_snapshots_taken_during_its_failed_deletion(cloud, share_id):
    beta, snapshot_id = delete_beta(cloud, share_id)
    cloud.driver('beta').fail_next('delete_replica')
    cloud.settle()
    assert cloud.states(share_id)['beta'][0] == 'error_deleting'
    cloud.services.shares.reset_status(ADMIN, beta, 'available')
    check_stays(cloud, share_id, snapshot_id)


def test_snapshot_is_deleted_on_a_replica_reset_from_deleting(cloud, share_id):
    beta, snapshot_id = delete_beta(cloud, share_id)
    cloud.ask('reset_status', beta, 'available')
    cloud.settle()
    cloud.update()
    cloud_snapshots.delete(cloud, snapshot_id)
    cloud.settle()
    cloud.update()
    cloud_snapshots.check_gone(cloud, snapshot_id)
    cloud.check_invariants()
