"""Replicas on the page of their share."""

import datetime

import pytest
import sqlalchemy as sa

from manila_lite.db.models import shares
from tests.functional.ui import estate as estates

INSTANCE = shares.ShareInstance.__table__


@pytest.fixture
def cloud(build_ui):
    return build_ui(kind=estates.EstateCloud)


def test_replica_has_the_time_of_its_last_sync(cloud, api, admin_api, alice):
    estate = estates.build(cloud, api, admin_api)
    path = f'/ui/shares/{estate.ids["share_id"]}'
    assert 'last sync not known' in alice.open(path).text

    def record(session):
        at = session.now - datetime.timedelta(hours=3)
        session.run(
            sa.update(INSTANCE)
            .where(INSTANCE.c.id == estate.fields['replica_id'])
            .values(synced_at=at)
        )

    cloud.db.write(record)
    text = alice.open(path).text
    assert 'last sync 3 hours ago' in text
    # The active one has none.
    assert text.count('last sync') == 1


def test_failed_replica_is_shown_with_its_share_and_deleted(
    cloud, api, admin_api, alice
):
    estate = estates.build(cloud, api, admin_api)
    for name in cloud.backend_names:
        cloud.driver(name).faults.fail_next('create_replica', error=ValueError())
    share_id = estate.ids['share_id']
    body = {'share_replica': {'share_id': share_id}}
    api.request('POST', '/share-replicas', body, expect=202)
    cloud.settle()
    links = [
        one
        for one in alice.open('/ui/').links
        if one.startswith('/ui/failures?resource_type=SHARE_REPLICA')
    ]
    page = alice.open(links[0])
    assert f'/ui/shares/{share_id}' in page.links
    form = page.form('/ui/failures/selected')
    assert '1 accepted' in alice.submit(form, confirm='1', action='delete').text
