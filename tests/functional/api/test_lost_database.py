"""The database goes away between the commit of a request and its answer."""

import pytest

from tests.support import databases
from tests.support.relay import before_database

SHARE = {'share': {'size': 1, 'share_proto': 'NFS'}}


@pytest.mark.parametrize('database_url', ['mysql', 'postgresql'], indirect=True)
def test_error_after_the_commit_does_not_ask_to_repeat_blindly(
    build_cloud, database_url
):
    with before_database(database_url) as (relay, url):
        databases.note_tables(url)
        cloud = build_cloud(url=url)
        cloud.api.request('POST', '/shares', SHARE, expect=200)

        def cut(name):
            if name == 'committed':
                relay.cut()

        cloud.db.on_step = cut
        refused = cloud.api.request('POST', '/shares', SHARE, expect=503)
        message = refused.json['serviceUnavailable']['message']
        assert 'may have been made' in message
        repeated = cloud.api.request('POST', '/shares', SHARE, expect=503)
        message = repeated.json['serviceUnavailable']['message']
        assert 'try again later' in message
        relay.mend()
        assert len(cloud.api.get('/shares')['shares']) == 2
