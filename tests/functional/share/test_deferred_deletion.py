"""Deferred deletion of shares and snapshots, as seen by their project."""

import pytest

from manila_lite.quota import recount
from tests.support import cloud_snapshots, share_backups, share_transfers
from tests.support.api_client import ApiClient
from tests.support.cloud_images import prepared

IN_DEFERRED_DELETION = ('deferred_deleting', 'error_deferred_deleting')


@pytest.fixture
def cloud(build_cloud):
    cloud = build_cloud('is_deferred_deletion_enabled = true', backends=['alpha'])
    cloud_snapshots.enable_snapshot_features(cloud)
    return cloud


@pytest.fixture
def tenant(cloud):
    return ApiClient(cloud, roles='member,reader')


@pytest.fixture
def share(cloud):
    return cloud.create_share(size=3)


@pytest.fixture
def snapshot(cloud, share):
    return cloud_snapshots.create_available(cloud, share)


@pytest.fixture
@prepared
def failed(cloud, tenant, snapshot):
    """A snapshot that its back end could not delete."""
    cloud.driver().fail_next('delete_snapshot')
    delete_snapshot(tenant, snapshot)
    cloud.settle()
    assert status_of(cloud, snapshot) == 'error_deferred_deleting'
    return snapshot


def delete_snapshot(api, snapshot, expect=202):
    return api.request('DELETE', f'/snapshots/{snapshot}', expect=expect)


def status_of(cloud, snapshot):
    return cloud_snapshots.show(cloud, snapshot)['status']


def retry(cloud):
    cloud.share.backends[0].deferred_deletion.retry()
    cloud.settle()


@pytest.mark.facts('LP2067456', 'LP2068043.1', 'deferred-deletion.2')
def test_deferred_deletion_hides_the_share_from_users_even_after_failure(
    cloud, tenant, share
):
    assert tenant.show(share)['status'] == 'available'
    cloud.driver().fail_next('delete_share')
    tenant.delete(share)
    for status in IN_DEFERRED_DELETION:
        assert cloud.usage('gigabytes') == (0, 0)
        assert tenant.get('/shares')['shares'] == []
        tenant.get(f'/shares/{share}', expect=404)
        assert cloud.api.show(share)['status'] == status
        cloud.settle()
    retry(cloud)
    cloud.api.get(f'/shares/{share}', expect=404)
    assert cloud.usage('gigabytes') == (0, 0)
    cloud.check_invariants()


def test_deferred_deletion_frees_quota_at_once_for_users(cloud, tenant):
    cloud.api.request(
        'PUT', '/quota-sets/project', {'quota_set': {'shares': 1}}, expect=200
    )
    share = cloud.create_share(size=3)
    tenant.create(expect=413)
    tenant.delete(share)
    tenant.create()
    cloud.settle()
    cloud.check_invariants()


# Snapshots


@pytest.mark.facts('LP2067456', 'LP2068043.1', 'deferred-deletion.2')
def test_snapshot_is_hidden_until_its_deletion_succeeds(cloud, tenant, share, snapshot):
    cloud.driver().fail_next('delete_snapshot')
    delete_snapshot(tenant, snapshot)
    for status in IN_DEFERRED_DELETION:
        assert cloud.usage('snapshots') == (0, 0)
        assert cloud.usage('snapshot_gigabytes') == (0, 0)
        for path in ('/snapshots', '/snapshots/detail'):
            assert tenant.get(path)['snapshots'] == []
            assert tenant.get(f'{path}?with_count=true')['count'] == 0
            (seen,) = cloud.api.get(path)['snapshots']
            assert seen['id'] == snapshot
        assert status_of(cloud, snapshot) == status
        assert cloud.db.read(recount.differences) == []
        cloud.settle()
    retry(cloud)
    cloud_snapshots.check_gone(cloud, snapshot)
    assert cloud.usage('snapshots') == (0, 0)
    cloud.check_invariants()


def test_snapshot_in_deferred_deletion_is_unknown_to_its_project(
    cloud, tenant, share, failed
):
    for path in ('', '/metadata', '/access-list', '/export-locations'):
        tenant.get(f'/snapshots/{failed}{path}', expect=404)
        cloud.api.get(f'/snapshots/{failed}{path}')
    tenant.request(
        'PUT',
        f'/snapshots/{failed}',
        {'snapshot': {'display_name': 'mine'}},
        expect=404,
    )
    delete_snapshot(tenant, failed, expect=404)
    answer = tenant.create(snapshot_id=failed, expect=404)
    assert 'deferred' not in str(answer)
    refused = tenant.act(share, 'revert', {'snapshot_id': failed}, expect=400)
    assert f'has no snapshot {failed}' in refused.text


@pytest.mark.parametrize('status', ['available', 'error', 'deleting'])
def test_snapshot_in_deferred_deletion_has_no_other_way(cloud, failed, status):
    """Its quota has been given back."""
    cloud_snapshots.act(cloud, failed, 'reset_status', {'status': status}, expect=409)
    cloud_snapshots.act(cloud, failed, 'force_delete', expect=403)
    cloud_snapshots.delete(cloud, failed, expect=400)
    assert status_of(cloud, failed) == 'error_deferred_deleting'
    cloud.check_invariants()


@pytest.mark.facts('deferred-deletion.1')
def test_quota_of_a_deleted_snapshot_is_free_at_once(cloud, tenant, share):
    cloud.api.request(
        'PUT', '/quota-sets/project', {'quota_set': {'snapshots': 1}}, expect=200
    )
    snapshot = cloud_snapshots.create_available(cloud, share)
    cloud_snapshots.create(cloud, share, expect=413)
    delete_snapshot(tenant, snapshot)
    cloud_snapshots.create(cloud, share)
    cloud.settle()
    cloud.check_invariants()


def test_force_delete_of_a_snapshot_is_not_deferred(cloud, snapshot):
    cloud_snapshots.act(cloud, snapshot, 'force_delete')
    assert status_of(cloud, snapshot) == 'deleting'
    assert cloud.usage('snapshots') == (1, 0)
    cloud.settle()
    cloud.check_invariants()


@pytest.mark.facts('LP2068043.2')
def test_share_follows_its_snapshots(cloud, tenant, share, snapshot):
    tenant.delete(share, expect=403)
    delete_snapshot(tenant, snapshot)
    tenant.delete(share)
    tenant.get(f'/shares/{share}', expect=404)
    assert cloud.usage('gigabytes') == (0, 0)
    cloud.settle()
    cloud.api.get(f'/shares/{share}', expect=404)
    assert [
        call.method
        for call in cloud.driver().calls
        if call.method.startswith('delete_')
    ] == ['delete_snapshot', 'delete_share']
    cloud.check_invariants()


def test_share_waits_while_its_snapshot_is_being_deleted(
    cloud, tenant, share, snapshot
):
    others = cloud.competing_runners()
    taken = []
    cloud.pause_at(
        'before delete_snapshot', lambda: taken.extend(one.step() for one in others)
    )
    delete_snapshot(tenant, snapshot)
    tenant.delete(share)
    cloud.settle()
    assert sum(taken) == 1  # the deletion of the share
    cloud.api.get(f'/shares/{share}', expect=404)
    assert cloud.api.get('/messages')['messages'] == []
    cloud.check_invariants()


def test_share_stays_until_its_snapshots_are_deleted(cloud, tenant, share, failed):
    cloud.driver().fail_next('delete_snapshot')
    tenant.delete(share)
    cloud.settle()
    assert status_of(cloud, failed) == 'error_deferred_deleting'
    assert cloud.api.show(share)['status'] == 'error_deferred_deleting'
    assert 'delete_share' not in [call.method for call in cloud.driver().calls]
    cloud.check_invariants()
    retry(cloud)
    cloud.api.get(f'/shares/{share}', expect=404)
    assert cloud.usage('gigabytes') == (0, 0)
    cloud.check_invariants()


def test_share_asks_for_the_deletion_of_its_snapshots_again(
    cloud, tenant, share, failed
):
    tenant.delete(share)
    cloud.settle()
    cloud.api.get(f'/shares/{share}', expect=404)
    cloud.check_invariants()


def test_forced_deletion_takes_the_snapshots_with_the_share(cloud, share, failed):
    cloud.driver().fail_next('delete_snapshot')
    cloud.api.act(share, 'force_delete')
    cloud.settle()
    cloud.api.get(f'/shares/{share}', expect=404)
    cloud_snapshots.check_gone(cloud, failed)
    assert cloud.usage('snapshots') == (0, 0)
    assert cloud.usage('gigabytes') == (0, 0)


def test_forced_deletion_waits_for_snapshots_in_deletion(
    cloud, tenant, share, snapshot
):
    delete_snapshot(tenant, snapshot)
    cloud.api.act(share, 'force_delete')
    cloud.settle()
    cloud.api.get(f'/shares/{share}', expect=404)
    cloud.check_invariants()


def test_share_is_not_reverted_behind_a_snapshot_that_remains(
    cloud, tenant, share, snapshot
):
    newest = cloud_snapshots.create_available(cloud, share)
    cloud.driver().fail_next('delete_snapshot')
    delete_snapshot(tenant, newest)
    cloud.settle()
    refused = tenant.act(share, 'revert', {'snapshot_id': snapshot}, expect=409)
    assert 'has still to remove it' in refused.text
    assert newest not in refused.text
    retry(cloud)
    tenant.act(share, 'revert', {'snapshot_id': snapshot})
    cloud.settle()
    assert tenant.show(share)['status'] == 'available'
    cloud.check_invariants()


def test_share_is_transferred_with_a_snapshot_that_remains(
    cloud, tenant, share, failed
):
    taker = share_transfers.client_of(cloud, 'other')
    share_transfers.accept(taker, share_transfers.offer(tenant, share))
    cloud.settle()
    assert taker.show(share)['status'] == 'available'
    assert taker.get('/snapshots')['snapshots'] == []
    cloud.check_invariants()
    retry(cloud)
    taker.delete(share)
    cloud.settle()
    assert cloud.usage('gigabytes', 'other') == (0, 0)
    cloud.check_invariants()


def test_share_is_backed_up_beside_a_snapshot_that_remains(
    cloud, tenant, share, failed
):
    share_backups.create(cloud, share)
    cloud.check_invariants()


def test_share_is_not_unmanaged_while_a_snapshot_remains(cloud, share, failed):
    refused = cloud.api.act(share, 'unmanage', expect=403)
    assert 'has snapshots' in refused.text
    assert cloud.api.show(share)['status'] == 'available'


@pytest.mark.facts('optimize-deferred-deletion', 'fix-snapshot-deferred-deletion-race')
def test_back_end_retries_only_its_own_deletions(build_cloud):
    cloud = build_cloud('is_deferred_deletion_enabled = true')
    shares = [
        cloud.create_share(scheduler_hints={'only_host': f'node@{name}#pool'})
        for name in ('alpha', 'beta')
    ]
    snapshots = [cloud_snapshots.create_available(cloud, share) for share in shares]
    for name in ('alpha', 'beta'):
        cloud.driver(name).fail_next('delete_snapshot', 2)
        cloud.driver(name).fail_next('delete_share')
    for share, snapshot in zip(shares, snapshots, strict=True):
        cloud_snapshots.delete(cloud, snapshot)
        cloud.settle()
        cloud.api.delete(share)
        cloud.settle()
    alpha, beta = sorted(cloud.share.backends, key=lambda one: one.host)
    assert alpha.deferred_deletion.retry() == 2
    cloud.settle()
    cloud_snapshots.check_gone(cloud, snapshots[0])
    assert alpha.deferred_deletion.retry() == 1  # of the share, which failed
    cloud.settle()
    cloud.api.get(f'/shares/{shares[0]}', expect=404)
    assert alpha.deferred_deletion.retry() == 0
    assert status_of(cloud, snapshots[1]) == 'error_deferred_deleting'
    assert cloud.api.show(shares[1])['status'] == 'error_deferred_deleting'
    assert beta.deferred_deletion.retry() == 2
    cloud.settle()
    cloud.check_invariants()
