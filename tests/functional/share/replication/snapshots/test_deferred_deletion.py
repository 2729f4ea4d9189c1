"""Deferred deletion of snapshots of shares that have several replicas."""

import pytest

from manila_lite.quota import recount
from tests.functional.share.replication.snapshots.snapshot_states import (
    complete,
    make_terse,
    replica_on,
    run,
    status,
    statuses,
)
from tests.support import cloud_snapshots
from tests.support.api_client import ApiClient

DEFERRED, FAILED = 'deferred_deleting', 'error_deferred_deleting'


@pytest.fixture(params=['readable', 'dr'])
def cloud(request, build_cloud):
    return build_cloud(
        style=request.param, extra_conf='is_deferred_deletion_enabled = true'
    )


@pytest.fixture
def snapshot_id(cloud, share_id):
    return complete(cloud, share_id)


def retry(cloud):
    for backend in cloud.share.backends:
        backend.deferred_deletion.retry()
    cloud.settle()
    cloud.update()


def check_gone(cloud, snapshot_id):
    cloud_snapshots.check_gone(cloud, snapshot_id)
    assert cloud.usage('snapshots') == (0, 0)
    assert cloud.usage('snapshot_gigabytes') == (0, 0)
    assert cloud.db.read(recount.differences) == []
    cloud.check_invariants()


def fail(cloud, snapshot_id):
    """Delete a snapshot that the active replica keeps at first."""
    cloud.driver('alpha').fail_next('delete_replicated_snapshot')
    cloud_snapshots.delete(cloud, snapshot_id)
    cloud.settle()
    assert statuses(cloud, snapshot_id) == {'alpha': FAILED, 'beta': FAILED}


def test_project_does_not_see_it_and_has_its_quota_at_once(
    cloud, share_id, snapshot_id
):
    tenant = ApiClient(cloud, roles='member,reader')
    cloud_snapshots.delete(cloud, snapshot_id)
    assert statuses(cloud, snapshot_id) == {'alpha': DEFERRED, 'beta': DEFERRED}
    assert status(cloud, snapshot_id) == DEFERRED
    assert tenant.get('/snapshots')['snapshots'] == []
    tenant.get(f'/snapshots/{snapshot_id}', expect=404)
    assert cloud.usage('snapshots') == (0, 0)
    assert cloud.db.read(recount.differences) == []
    cloud.settle()
    cloud.update()
    check_gone(cloud, snapshot_id)


def test_deletion_that_failed_on_the_active_replica_is_repeated(
    cloud, share_id, snapshot_id
):
    fail(cloud, snapshot_id)
    assert status(cloud, snapshot_id) == FAILED
    cloud.update()
    assert statuses(cloud, snapshot_id) == {'alpha': FAILED, 'beta': FAILED}
    for backend in ('alpha', 'beta'):  # it is for shares without replicas
        cloud.driver(backend).fail_next('delete_snapshot')
    retry(cloud)
    check_gone(cloud, snapshot_id)


def report_of_active(cloud, reported):
    """Let the driver report only of the snapshot on the active replica."""
    make_terse(
        cloud,
        delete_replicated_snapshot=lambda snapshots: [
            {'id': one['id'], 'status': reported}
            for one in snapshots
            if one['share']['host'].partition('#')[0].endswith('@alpha')
        ],
    )


def test_deletion_on_a_passive_replica_is_followed_by_its_updates(
    cloud, share_id, snapshot_id
):
    report_of_active(cloud, 'deleted')
    cloud_snapshots.delete(cloud, snapshot_id)
    run(cloud, 'alpha')
    assert statuses(cloud, snapshot_id) == {'beta': DEFERRED}
    cloud.update()
    check_gone(cloud, snapshot_id)


def test_deletion_that_failed_on_a_passive_replica_is_repeated(
    cloud, share_id, snapshot_id
):
    report_of_active(cloud, 'deleted')
    cloud_snapshots.delete(cloud, snapshot_id)
    run(cloud, 'alpha')
    cloud.driver('beta').fail_next('update_replicated_snapshot')
    cloud.update()
    assert statuses(cloud, snapshot_id) == {'beta': FAILED}
    assert cloud.usage('snapshots') == (0, 0)
    retry(cloud)
    check_gone(cloud, snapshot_id)


def test_reported_failure_is_not_of_a_deletion_at_once(cloud, share_id, snapshot_id):
    report_of_active(cloud, 'error')
    cloud_snapshots.delete(cloud, snapshot_id)
    run(cloud, 'alpha')
    assert statuses(cloud, snapshot_id) == {'alpha': FAILED, 'beta': DEFERRED}


def test_replica_that_is_promoted_meanwhile_deletes_it(cloud, share_id, snapshot_id):
    cloud_snapshots.delete(cloud, snapshot_id)
    cloud.ask('promote', replica_on(cloud, share_id, 'beta').id)
    cloud.settle()
    cloud.update()
    check_gone(cloud, snapshot_id)


def test_failed_deletion_is_repeated_after_a_promotion(cloud, share_id, snapshot_id):
    fail(cloud, snapshot_id)
    cloud.ask('promote', replica_on(cloud, share_id, 'beta').id)
    cloud.settle()
    retry(cloud)
    check_gone(cloud, snapshot_id)


def test_sole_replica_left_deletes_it_and_the_share_may_follow(
    cloud, share_id, snapshot_id
):
    fail(cloud, snapshot_id)
    beta = replica_on(cloud, share_id, 'beta').id
    cloud.api.request('DELETE', f'/share-replicas/{beta}', expect=202)
    cloud.settle()
    assert statuses(cloud, snapshot_id) == {'alpha': FAILED}
    cloud.api.delete(share_id)
    cloud.settle()
    check_gone(cloud, snapshot_id)
    assert cloud.replicas(share_id) == []


def test_new_replica_does_not_get_it(cloud, share_id, snapshot_id):
    fail(cloud, snapshot_id)
    cloud.replicate(share_id, 'gamma')
    cloud.update()
    assert set(statuses(cloud, snapshot_id)) == {'alpha', 'beta'}
    retry(cloud)
    check_gone(cloud, snapshot_id)


def test_deletion_is_not_deferred_while_a_replica_has_no_copy(cloud, share_id):
    """Its deletion ends with that of the others."""
    snapshot_id = cloud_snapshots.create(cloud, share_id)
    run(cloud, 'alpha')
    cloud.ask('reset_replica_state', replica_on(cloud, share_id, 'beta').id, 'error')
    assert statuses(cloud, snapshot_id)['beta'] == 'creating'
    cloud_snapshots.delete(cloud, snapshot_id)
    assert status(cloud, snapshot_id) == 'deleting'
    assert cloud.usage('snapshots') == (1, 0)
