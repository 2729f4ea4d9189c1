"""The database goes away between the commit of a request and its answer."""

import contextlib

import pytest

from tests.support import databases
from tests.support.relay import before_database

SHARE = {'share': {'size': 1, 'share_proto': 'NFS'}}
NETWORK = {'share_network': {'name': 'red'}}


@pytest.mark.parametrize('database_url', ['mysql', 'postgresql'], indirect=True)
def test_error_after_the_commit_does_not_ask_to_repeat_blindly(
    build_cloud, database_url
):
    with cut_after_commits(build_cloud, database_url) as (cloud, relay):
        refused = cloud.api.request('POST', '/share-networks', NETWORK, expect=503)
        message = refused.json['serviceUnavailable']['message']
        assert 'may have been made' in message
        repeated = cloud.api.request('POST', '/share-networks', NETWORK, expect=503)
        message = repeated.json['serviceUnavailable']['message']
        assert 'try again later' in message
        relay.mend()
        assert len(cloud.api.get('/share-networks')['share_networks']) == 2


@pytest.mark.parametrize('database_url', ['mysql', 'postgresql'], indirect=True)
def test_answer_to_a_new_share_needs_nothing_after_the_commit(
    build_cloud, database_url
):
    with cut_after_commits(build_cloud, database_url) as (cloud, relay):
        created = cloud.api.request('POST', '/shares', SHARE, expect=200)
        cloud.api.request('POST', '/shares', SHARE, expect=503)
        relay.mend()
        assert created.json['share']['id'] in {
            share['id'] for share in cloud.api.get('/shares')['shares']
        }
        assert len(cloud.api.get('/shares')['shares']) == 2


@contextlib.contextmanager
def cut_after_commits(build_cloud, database_url):
    """Lose the database after the next commit of a cloud that has served both."""
    with before_database(database_url) as (relay, url):
        databases.note_tables(url)
        cloud = build_cloud(url=url)
        cloud.api.request('POST', '/shares', SHARE, expect=200)
        cloud.api.request('POST', '/share-networks', NETWORK, expect=200)

        def cut(name):
            if name == 'committed':
                relay.cut()

        cloud.db.on_step = cut
        yield cloud, relay
