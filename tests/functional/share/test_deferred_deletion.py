"""Deferred deletion of shares, as seen by their project."""

import pytest

from tests.support.api_client import ApiClient


@pytest.fixture
def cloud(build_cloud):
    return build_cloud(
        'is_deferred_deletion_enabled = true', backends=['alpha']
    )


@pytest.fixture
def tenant(cloud):
    return ApiClient(cloud, roles='member,reader')


@pytest.mark.facts('LP2067456', 'LP2068043.1', 'deferred-deletion.2')
def test_deferred_deletion_hides_the_share_from_users_even_after_failure(
    cloud, tenant
):
    share = cloud.create_share(size=3)
    assert tenant.show(share)['status'] == 'available'
    cloud.driver().fail_next('delete_share')
    tenant.delete(share)
    for status in ('deferred_deleting', 'error_deferred_deleting'):
        assert cloud.usage('gigabytes') == (0, 0)
        assert tenant.get('/shares')['shares'] == []
        tenant.get(f'/shares/{share}', expect=404)
        assert cloud.api.show(share)['status'] == status
        cloud.settle()
    cloud.share.backends[0].deferred_deletion.retry()
    cloud.settle()
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
