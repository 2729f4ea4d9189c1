"""Metadata of snapshots."""

import pytest

from tests.functional.api.snapshot_client import create_snapshot
from tests.functional.api.snapshot_client import show_snapshot


@pytest.fixture
def snapshot(cloud, member):
    share_id = member.create()['id']
    cloud.settle()
    return create_snapshot(
        member, share_id, metadata={'color': 'red', 'shape': 'round'}
    )['id']


def request_metadata(
    api, method, snapshot, path='', metadata=None, expect=200
):
    body = None if metadata is None else {'metadata': metadata}
    answer = api.request(
        method, f'/snapshots/{snapshot}/metadata{path}', body, expect=expect
    )
    return answer.json if answer.body else None


def test_post_merges_and_answers_all_keys(member, snapshot):
    expected = {'metadata': {'color': 'blue', 'shape': 'round', 'new': 'x'}}
    assert (
        request_metadata(
            member, 'POST', snapshot, metadata={'color': 'blue', 'new': 'x'}
        )
        == expected
    )
    assert request_metadata(member, 'GET', snapshot) == expected
    assert show_snapshot(member, snapshot)['metadata'] == expected['metadata']


def test_put_replaces_all_keys(member, snapshot):
    assert request_metadata(
        member, 'PUT', snapshot, metadata={'new': 'x'}
    ) == {'metadata': {'new': 'x'}}
    assert request_metadata(member, 'PUT', snapshot, metadata={}) == {
        'metadata': {}
    }


def test_one_key_answers_as_meta(member, snapshot):
    assert request_metadata(member, 'GET', snapshot, '/color') == {
        'meta': {'color': 'red'}
    }


def test_one_key_is_set_by_a_body_of_that_key(member, snapshot):
    assert request_metadata(
        member, 'POST', snapshot, '/color', {'color': 'blue'}
    ) == {'metadata': {'color': 'blue', 'shape': 'round'}}


@pytest.mark.parametrize(
    'metadata', [{}, {'other': 'x'}, {'color': 'x', 'other': 'x'}]
)
def test_one_key_is_set_by_no_other_body(member, snapshot, metadata):
    request_metadata(member, 'POST', snapshot, '/color', metadata, expect=400)


def test_delete_removes_one_key(member, snapshot):
    assert request_metadata(member, 'DELETE', snapshot, '/color') is None
    assert request_metadata(member, 'GET', snapshot) == {
        'metadata': {'shape': 'round'}
    }


@pytest.mark.parametrize('method', ['GET', 'DELETE'])
def test_unknown_key_is_not_found(member, snapshot, method):
    request_metadata(member, method, snapshot, '/moon', expect=404)


@pytest.mark.parametrize(
    'metadata',
    [
        {'': 'x'},
        {'k' * 256: 'x'},
        {'color': ''},
        {'color': 'v' * 1024},
        {'color': 1},
        {'color': None},
    ],
)
def test_sizes_of_keys_and_values_are_limited(member, snapshot, metadata):
    before = request_metadata(member, 'GET', snapshot)
    request_metadata(member, 'POST', snapshot, metadata=metadata, expect=400)
    request_metadata(member, 'PUT', snapshot, metadata=metadata, expect=400)
    assert request_metadata(member, 'GET', snapshot) == before


def test_longest_key_and_value_are_stored(member, snapshot):
    longest = {'k' * 255: 'v' * 1023}
    assert request_metadata(member, 'PUT', snapshot, metadata=longest) == {
        'metadata': longest
    }
    assert request_metadata(member, 'GET', snapshot) == {'metadata': longest}


def test_another_project_finds_no_snapshot(stranger, snapshot):
    for method, path, metadata in (
        ('GET', '', None),
        ('GET', '/color', None),
        ('POST', '', {'a': 'b'}),
        ('PUT', '', {'a': 'b'}),
        ('POST', '/a', {'a': 'b'}),
        ('DELETE', '/color', None),
    ):
        request_metadata(
            stranger, method, snapshot, path, metadata, expect=404
        )


def test_snapshots_have_no_metadata_below_2_73(cloud, member):
    share_id = member.create()['id']
    cloud.settle()
    created = create_snapshot(
        member, share_id, version='2.72', metadata={'a': 'b'}
    )
    assert 'metadata' not in created
    assert show_snapshot(member, created['id'])['metadata'] == {}
    assert 'metadata' not in show_snapshot(
        member, created['id'], version='2.72'
    )
