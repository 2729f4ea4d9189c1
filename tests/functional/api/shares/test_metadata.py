"""Metadata keys of shares that only administrators may change."""

import pytest

from tests.functional.api.conftest import member_of
from tests.functional.api.metadata_client import request_metadata


@pytest.mark.facts('add-admin-only-keys-to-share-metadata')
@pytest.mark.parametrize('hint', ['same_host', 'different_host'])
def test_hints_are_changed_by_administrators_only(cloud, admin, member, hint):
    named = cloud.create_share()
    share = member.create(scheduler_hints={hint: named})['id']
    key = f'__affinity_{hint}'
    for path in (f'/shares/{share}', f'/shares/{named}'):
        before = request_metadata(member, 'GET', path)
        assert key in before['metadata']
        for method, of_key, metadata in (
            ('POST', '', {key: 'x'}),
            ('PUT', '', {key: 'x'}),
            ('POST', f'/{key}', {key: 'x'}),
            ('DELETE', f'/{key}', None),
        ):
            request_metadata(member, method, path, of_key, metadata, expect=403)
        assert request_metadata(member, 'GET', path) == before
        request_metadata(admin, 'DELETE', path, f'/{key}')


@pytest.fixture
def sealed(build_cloud):
    """Return a cloud, a member, and the path of a share with such a key."""
    cloud = build_cloud('admin_only_metadata = sealed')
    share = cloud.api.create(metadata={'sealed': 'wax', 'color': 'red'})['id']
    return cloud, member_of(cloud), f'/shares/{share}'


@pytest.mark.parametrize(
    'method, key, metadata',
    [
        ('POST', '', {'sealed': 'x'}),
        ('POST', '/sealed', {'sealed': 'x'}),
        ('PUT', '', {'sealed': 'x'}),
        ('DELETE', '/sealed', None),
    ],
)
@pytest.mark.facts('LP2050010.1')
def test_some_keys_are_changed_by_administrators_only(sealed, method, key, metadata):
    cloud, member, share = sealed
    request_metadata(member, method, share, key, metadata, expect=403)
    assert request_metadata(member, 'GET', share)['metadata']['sealed'] == 'wax'
    request_metadata(cloud.api, method, share, key, metadata)


def test_put_by_a_tenant_keeps_keys_for_administrators(sealed):
    cloud, member, share = sealed
    assert request_metadata(member, 'PUT', share, metadata={'new': 'x'}) == {
        'metadata': {'new': 'x', 'sealed': 'wax'}
    }
    assert request_metadata(cloud.api, 'PUT', share, metadata={'new': 'x'}) == {
        'metadata': {'new': 'x'}
    }


@pytest.mark.facts('LP2050010.2')
@pytest.mark.parametrize('key', ['__affinity_same_host', '__affinity_different_host'])
def test_hints_are_changed_by_administrators_only_by_default(cloud, key):
    share = f'/shares/{cloud.create_share()}'
    member, metadata = member_of(cloud), {key: 'x'}
    request_metadata(member, 'POST', share, '', metadata, expect=403)
    request_metadata(cloud.api, 'POST', share, '', metadata)
    request_metadata(member, 'DELETE', share, f'/{key}', expect=403)
    request_metadata(member, 'POST', share, '', {'color': 'red'})
