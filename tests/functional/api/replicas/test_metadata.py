"""Metadata of replicas, which belongs to a single replica."""

import pytest

from tests.functional.api.replica_client import show_replica
from tests.functional.api.samples.replicas import insert_replica, make_replicable
from tests.support.cloud_images import prepared


@pytest.fixture
@prepared
def replica(cloud, member):
    share_id = member.create(metadata={'of': 'the share'})['id']
    cloud.settle()
    make_replicable(cloud, share_id)
    return insert_replica(cloud, share_id)


@pytest.fixture
def send(member, replica):
    def send(method, rest='', values=None, expect=200):
        body = None if values is None else {'metadata': values}
        return member.request(
            method, f'/share-replicas/{replica}/metadata{rest}', body, expect=expect
        )

    return send


@pytest.mark.facts('add_share_replica_metadata')
def test_post_merges_and_answers_all(send):
    send('POST', values={'a': '1', 'b': '2'})
    answer = send('POST', values={'b': '3'})
    assert answer.json == {'metadata': {'a': '1', 'b': '3'}}
    assert send('GET').json == answer.json


@pytest.mark.facts('add_share_replica_metadata')
def test_put_replaces_all(send):
    send('POST', values={'a': '1'})
    assert send('PUT', values={'b': '2'}).json == {'metadata': {'b': '2'}}
    assert send('PUT', values={}).json == {'metadata': {}}


@pytest.mark.facts('add_share_replica_metadata')
def test_one_key(send):
    send('POST', '/a', values={'a': '1'})
    assert send('GET', '/a').json == {'meta': {'a': '1'}}
    send('POST', '/a', values={'b': '1'}, expect=400)
    send('DELETE', '/a')
    for method in ('GET', 'DELETE'):
        send(method, '/a', expect=404)


def test_replica_shows_its_own_metadata(cloud, admin, member, replica, send):
    send('POST', values={'color': 'red'})
    shown = show_replica(member, replica)
    assert shown['metadata'] == {'color': 'red'}
    assert 'metadata' not in show_replica(member, replica, version='2.94')
    by_id = {
        one['id']: one['metadata']
        for one in admin.get('/share-replicas/detail')['share_replicas']
    }
    assert by_id.pop(replica) == {'color': 'red'}
    assert list(by_id.values()) == [{}]
    assert admin.show(shown['share_id'])['metadata'] == {'of': 'the share'}


@pytest.mark.parametrize(
    'values',
    [{'': 'x'}, {'x' * 256: 'x'}, {'x': 'x' * 1024}, {'x': ''}, {'x': 1}, ['x'], 'x'],
)
def test_invalid_metadata_is_refused(send, values):
    for method in ('POST', 'PUT'):
        send(method, values=values, expect=400)
