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
