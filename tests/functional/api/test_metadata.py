"""Metadata that users give their resources."""

import pytest

from tests.functional.api import differences
from tests.functional.api.metadata_client import INVALID_ITEMS, request_metadata
from tests.functional.api.snapshot_client import create_snapshot


@pytest.fixture(params=['shares', 'snapshots'])
def path(request, cloud, member):
    """The path of a resource with metadata, beside another one of its kind."""
    metadata, other = {'color': 'red', 'shape': 'round'}, {'size': 'large'}
    other_id = member.create(metadata=other)['id']
    share_id = member.create(metadata=metadata)['id']
    if request.param == 'shares':
        return f'/shares/{share_id}'
    cloud.settle()
    create_snapshot(member, other_id, metadata=other)
    snapshot = create_snapshot(member, share_id, metadata=metadata)
    return f'/snapshots/{snapshot["id"]}'


def test_post_merges_and_answers_all_keys(member, path):
    expected = {'metadata': {'color': 'blue', 'shape': 'round', 'new': 'x'}}
    assert (
        request_metadata(member, 'POST', path, metadata={'color': 'blue', 'new': 'x'})
        == expected
    )
    assert request_metadata(member, 'GET', path) == expected
    (shown,) = member.get(path).values()
    assert shown['metadata'] == expected['metadata']


def test_put_replaces_all_keys(member, path):
    assert request_metadata(member, 'PUT', path, metadata={'new': 'x'}) == {
        'metadata': {'new': 'x'}
    }
    assert request_metadata(member, 'PUT', path, metadata={}) == {'metadata': {}}


@pytest.mark.facts('LP1968069')
def test_one_key_answers_as_meta(member, path):
    assert request_metadata(member, 'GET', path, '/color') == {'meta': {'color': 'red'}}


@differences.proves('POST metadata/{key} of shares')
def test_one_key_is_set_by_a_body_of_that_key(member, path):
    assert request_metadata(member, 'POST', path, '/color', {'color': 'blue'}) == {
        'metadata': {'color': 'blue', 'shape': 'round'}
    }


@pytest.mark.parametrize('metadata', [{}, {'other': 'x'}, {'color': 'x', 'other': 'x'}])
def test_one_key_is_set_by_no_other_body(member, path, metadata):
    request_metadata(member, 'POST', path, '/color', metadata, expect=400)


def test_delete_removes_one_key(member, path):
    assert request_metadata(member, 'DELETE', path, '/color') is None
    assert request_metadata(member, 'GET', path) == {'metadata': {'shape': 'round'}}


@pytest.mark.parametrize('method', ['GET', 'DELETE'])
def test_unknown_key_is_not_found(member, path, method):
    request_metadata(member, method, path, '/moon', expect=404)


def test_keys_may_hold_any_character(member, path):
    key = 'a/b c?ä'
    request_metadata(member, 'POST', path, metadata={key: 'x'})
    assert request_metadata(member, 'GET', path)['metadata'][key] == 'x'
    assert request_metadata(member, 'GET', path, '/c%20%C3%A4', expect=404)


@pytest.mark.facts('metadata_request.1')
@pytest.mark.parametrize('method', ['POST', 'PUT'])
@pytest.mark.parametrize('metadata', [*INVALID_ITEMS, [], 'x', None])
def test_sizes_of_keys_and_values_are_limited(member, path, method, metadata):
    before = request_metadata(member, 'GET', path)
    member.request(method, f'{path}/metadata', {'metadata': metadata}, expect=400)
    assert request_metadata(member, 'GET', path) == before


@pytest.mark.facts('metadata_request.1')
@pytest.mark.parametrize('method', ['POST', 'PUT'])
def test_longest_key_and_value_are_stored(member, path, method):
    longest = {'k' * 255: 'v' * 1023}
    found = request_metadata(member, method, path, metadata=longest)['metadata']
    assert longest.items() <= found.items()


@pytest.mark.parametrize('method', ['POST', 'PUT'])
def test_body_without_metadata_is_refused(member, path, method):
    member.request(method, f'{path}/metadata', {'meta': {}}, expect=400)
