"""The metadata of a snapshot."""

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


def ask(api, method, snapshot, path='', metadata=None, expect=200):
    body = None if metadata is None else {'metadata': metadata}
    answer = api.request(
        method, f'/snapshots/{snapshot}/metadata{path}', body, expect=expect
    )
    return answer.json if answer.body else None


def test_post_merges_and_answers_all_keys(member, snapshot):
    expected = {'metadata': {'color': 'blue', 'shape': 'round', 'new': 'x'}}
    assert (
        ask(member, 'POST', snapshot, metadata={'color': 'blue', 'new': 'x'})
        == expected
    )
    assert ask(member, 'GET', snapshot) == expected
    assert show_snapshot(member, snapshot)['metadata'] == expected['metadata']


def test_put_replaces_all_keys(member, snapshot):
    assert ask(member, 'PUT', snapshot, metadata={'new': 'x'}) == {
        'metadata': {'new': 'x'}
    }
    assert ask(member, 'PUT', snapshot, metadata={}) == {'metadata': {}}


def test_one_key_answers_as_meta(member, snapshot):
    assert ask(member, 'GET', snapshot, '/color') == {'meta': {'color': 'red'}}


def test_one_key_is_set_by_a_body_of_that_key(member, snapshot):
    assert ask(member, 'POST', snapshot, '/color', {'color': 'blue'}) == {
        'metadata': {'color': 'blue', 'shape': 'round'}
    }


@pytest.mark.parametrize(
    'metadata', [{}, {'other': 'x'}, {'color': 'x', 'other': 'x'}]
)
def test_one_key_is_set_by_no_other_body(member, snapshot, metadata):
    ask(member, 'POST', snapshot, '/color', metadata, expect=400)


def test_delete_removes_one_key(member, snapshot):
    assert ask(member, 'DELETE', snapshot, '/color') is None
    assert ask(member, 'GET', snapshot) == {'metadata': {'shape': 'round'}}


@pytest.mark.parametrize('method', ['GET', 'DELETE'])
def test_unknown_key_is_not_found(member, snapshot, method):
    ask(member, method, snapshot, '/moon', expect=404)


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
def test_sizes_are_those_of_the_published_api(member, snapshot, metadata):
    before = ask(member, 'GET', snapshot)
    ask(member, 'POST', snapshot, metadata=metadata, expect=400)
    ask(member, 'PUT', snapshot, metadata=metadata, expect=400)
    assert ask(member, 'GET', snapshot) == before


def test_longest_key_and_value_are_kept(member, snapshot):
    longest = {'k' * 255: 'v' * 1023}
    assert ask(member, 'PUT', snapshot, metadata=longest) == {
        'metadata': longest
    }
    assert ask(member, 'GET', snapshot) == {'metadata': longest}


def test_another_project_finds_no_snapshot(stranger, snapshot):
    for method, path, metadata in (
        ('GET', '', None),
        ('GET', '/color', None),
        ('POST', '', {'a': 'b'}),
        ('PUT', '', {'a': 'b'}),
        ('POST', '/a', {'a': 'b'}),
        ('DELETE', '/color', None),
    ):
        ask(stranger, method, snapshot, path, metadata, expect=404)


def test_below_2_73_snapshots_have_none(cloud, member):
    share_id = member.create()['id']
    cloud.settle()
    made = create_snapshot(
        member, share_id, version='2.72', metadata={'a': 'b'}
    )
    assert 'metadata' not in made
    assert show_snapshot(member, made['id'])['metadata'] == {}
    assert 'metadata' not in show_snapshot(member, made['id'], version='2.72')
