"""Metadata of shares."""

import pytest

from tests.functional.api import differences
from tests.functional.api.conftest import member_of


@pytest.fixture
def share(member):
    return member.create(metadata={'color': 'red', 'shape': 'round'})['id']


def request_metadata(api, method, share, path='', metadata=None, expect=200):
    body = None if metadata is None else {'metadata': metadata}
    answer = api.request(
        method, f'/shares/{share}/metadata{path}', body, expect=expect
    )
    return answer.json if answer.body else None


def test_post_merges_and_answers_all_keys(member, share):
    expected = {'metadata': {'color': 'blue', 'shape': 'round', 'new': 'x'}}
    assert (
        request_metadata(
            member, 'POST', share, metadata={'color': 'blue', 'new': 'x'}
        )
        == expected
    )
    assert request_metadata(member, 'GET', share) == expected
    assert member.show(share)['metadata'] == expected['metadata']


def test_put_replaces_all_keys(member, share):
    assert request_metadata(member, 'PUT', share, metadata={'new': 'x'}) == {
        'metadata': {'new': 'x'}
    }
    assert request_metadata(member, 'PUT', share, metadata={}) == {
        'metadata': {}
    }


def test_one_key_answers_as_meta(member, share):
    assert request_metadata(member, 'GET', share, '/color') == {
        'meta': {'color': 'red'}
    }


@differences.proves('POST metadata/{key} of shares')
def test_one_key_is_set_by_a_body_of_that_key(member, share):
    assert request_metadata(
        member, 'POST', share, '/color', {'color': 'blue'}
    ) == {'metadata': {'color': 'blue', 'shape': 'round'}}


@pytest.mark.parametrize(
    'metadata', [{}, {'other': 'x'}, {'color': 'x', 'other': 'x'}]
)
def test_one_key_is_set_by_no_other_body(member, share, metadata):
    request_metadata(member, 'POST', share, '/color', metadata, expect=400)


def test_delete_removes_one_key(member, share):
    assert request_metadata(member, 'DELETE', share, '/color') is None
    assert request_metadata(member, 'GET', share) == {
        'metadata': {'shape': 'round'}
    }


@pytest.mark.parametrize('method', ['GET', 'DELETE'])
def test_unknown_key_is_not_found(member, share, method):
    request_metadata(member, method, share, '/moon', expect=404)


def test_keys_may_hold_any_character(member, share):
    key = 'a/b c?ä'
    request_metadata(member, 'POST', share, metadata={key: 'x'})
    assert request_metadata(member, 'GET', share)['metadata'][key] == 'x'
    assert request_metadata(member, 'GET', share, '/c%20%C3%A4', expect=404)


@pytest.mark.parametrize('method', ['POST', 'PUT'])
@pytest.mark.parametrize(
    'metadata',
    [
        {'': 'x'},
        {'x' * 256: 'x'},
        {'x': ''},
        {'x': 'x' * 1024},
        {'x': 1},
        {'x': None},
        {'x': {}},
        [],
        'x',
        None,
    ],
)
def test_sizes_of_keys_and_values_are_limited(member, share, method, metadata):
    before = request_metadata(member, 'GET', share)
    member.request(
        method, f'/shares/{share}/metadata', {'metadata': metadata}, expect=400
    )
    assert request_metadata(member, 'GET', share) == before


@pytest.mark.parametrize('method', ['POST', 'PUT'])
def test_longest_key_and_value_are_stored(member, share, method):
    longest = {'k' * 255: 'v' * 1023}
    found = request_metadata(member, method, share, metadata=longest)[
        'metadata'
    ]
    assert longest.items() <= found.items()


@pytest.mark.parametrize('method', ['POST', 'PUT'])
def test_body_without_metadata_is_refused(member, share, method):
    member.request(
        method, f'/shares/{share}/metadata', {'meta': {}}, expect=400
    )


# Keys for administrators


@pytest.fixture
def sealed(build_cloud):
    """Return a cloud, a member, and a share with a key for administrators."""
    cloud = build_cloud('admin_only_metadata = sealed')
    share = cloud.api.create(metadata={'sealed': 'wax', 'color': 'red'})['id']
    return cloud, member_of(cloud), share


@pytest.mark.parametrize(
    'method, path, metadata',
    [
        ('POST', '', {'sealed': 'x'}),
        ('POST', '/sealed', {'sealed': 'x'}),
        ('PUT', '', {'sealed': 'x'}),
        ('DELETE', '/sealed', None),
    ],
)
def test_some_keys_are_changed_by_administrators_only(
    sealed, method, path, metadata
):
    cloud, member, share = sealed
    request_metadata(member, method, share, path, metadata, expect=403)
    assert (
        request_metadata(member, 'GET', share)['metadata']['sealed'] == 'wax'
    )
    request_metadata(cloud.api, method, share, path, metadata)


def test_put_by_a_tenant_keeps_keys_for_administrators(sealed):
    cloud, member, share = sealed
    assert request_metadata(member, 'PUT', share, metadata={'new': 'x'}) == {
        'metadata': {'new': 'x', 'sealed': 'wax'}
    }
    assert request_metadata(
        cloud.api, 'PUT', share, metadata={'new': 'x'}
    ) == {'metadata': {'new': 'x'}}
