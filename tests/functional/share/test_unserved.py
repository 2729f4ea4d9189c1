"""A back end that no process serves: what tenants may delete meanwhile."""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import services
from manila_lite.work import table
from tests.support import cloud_snapshots as snapshots
from tests.support.cloud import Cloud
from tests.support.unserved import lose

POOL = services.Pool.__table__
HOST = 'node@alpha'


@pytest.fixture
def cloud(build_cloud, database_url):
    cloud = build_cloud(kind=Cloud, url=database_url, backends=['alpha'])
    cloud.settle()
    return cloud


def begin(cloud):
    """Let a process begin all work of the back end and die."""
    for row in cloud.db.read(table.list_work):
        assert cloud.db.write(table.claim, row.id, [HOST], 'dead', -1.0)


def place(cloud, **body):
    """Create a share up to its placement; return its id."""
    share_id = cloud.api.create(**body)['id']
    assert cloud.scheduler.runners[0].step()
    return share_id


def check_nothing_left(cloud):
    cloud.beat()
    cloud.settle()
    cloud.check_invariants()
    assert cloud.usage('shares') == (0, 0)
    assert cloud.usage('gigabytes') == (0, 0)
    assert cloud.driver().inventory() == {}


def test_share_that_was_not_begun_is_deleted_at_once(cloud):
    share_id = place(cloud, size=3)
    lose(cloud.db, HOST)
    cloud.api.delete(share_id)
    cloud.api.get(f'/shares/{share_id}', expect=404)
    assert not cloud.has_pending_work()
    assert (
        cloud.db.read(lambda session: session.value(sa.select(POOL.c.allocated_gb)))
        == 0
    )
    check_nothing_left(cloud)


def test_share_that_was_begun_is_deleted_when_the_back_end_is_back(cloud):
    share_id = place(cloud)
    begin(cloud)
    lose(cloud.db, HOST)
    cloud.api.delete(share_id)
    assert cloud.api.show(share_id)['status'] == 'deleting'
    check_nothing_left(cloud)


def test_share_that_is_extended_is_deleted_when_the_back_end_is_back(cloud):
    share_id = cloud.create_share(size=1)
    cloud.api.act(share_id, 'extend', {'new_size': 4, 'force': True})
    lose(cloud.db, HOST)
    cloud.api.delete(share_id)
    assert cloud.api.show(share_id)['status'] == 'deleting'
    check_nothing_left(cloud)


def test_share_of_a_living_back_end_is_not_deleted_while_it_is_created(cloud):
    share_id = place(cloud)
    cloud.api.delete(share_id, expect=403)
    cloud.settle()
    assert cloud.api.show(share_id)['status'] == 'available'


def test_late_process_finds_the_creation_withdrawn(cloud):
    """It has read which work there is, and then the share is deleted."""
    share_id = place(cloud)
    lose(cloud.db, HOST)
    runner = cloud.share.backends[0].runner
    assert runner.sweep() == 1
    cloud.api.delete(share_id)
    check_nothing_left(cloud)


def test_snapshot_that_was_not_begun_is_deleted_at_once(cloud):
    share_id = cloud.create_share()
    snapshot_id = snapshots.create(cloud, share_id)
    lose(cloud.db, HOST)
    snapshots.delete(cloud, snapshot_id)
    snapshots.check_gone(cloud, snapshot_id)
    assert cloud.api.show(share_id)['status'] == 'available'
    cloud.beat()
    cloud.settle()
    cloud.check_invariants()


def test_snapshot_that_was_begun_is_deleted_when_the_back_end_is_back(cloud):
    share_id = cloud.create_share()
    snapshot_id = snapshots.create(cloud, share_id)
    begin(cloud)
    lose(cloud.db, HOST)
    snapshots.delete(cloud, snapshot_id)
    assert snapshots.show(cloud, snapshot_id)['status'] == 'deleting'
    assert cloud.api.show(share_id)['status'] == 'available'
    cloud.beat()
    cloud.settle()
    snapshots.check_gone(cloud, snapshot_id)
    cloud.check_invariants()
