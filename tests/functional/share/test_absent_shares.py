"""Requests for shares that the back end does not find."""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import access
from manila_lite.db.queries.shares import instances
from tests.support import cloud_snapshots
from tests.support.service_process import CTX, SHARE

pytestmark = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)

MAPPING = access.InstanceAccessRule.__table__


class Shelf:
    """Where the records of the back end are while they are not found."""

    def __init__(self, node):
        self.records = node.driver().backend.state.path / 'shares'
        self.away = self.records.with_name('shares-elsewhere')

    def take(self):
        self.records.rename(self.away)

    def put_back(self):
        self.away.rename(self.records)


@pytest.fixture
def shelf(node):
    return Shelf(node)


def allow(node, share):
    node.access.allow(
        CTX,
        node.target(share),
        access_type='ip',
        access_to='10.0.0.1',
        target='10.0.0.1',
    )
    node.run()


def rules(node):
    return [row.state for row in node.rows(sa.select(MAPPING.c.state))]


def deny(node, share):
    (rule,) = node.rows(sa.select(MAPPING.c.access_id))
    node.access.deny(CTX, node.target(share), rule.access_id)
    node.run()


def reset(node, share, status):
    node.operations.reset_status(CTX, node.target(share).instance_id, status)


def usage(node):
    return node.value(
        sa.text("SELECT SUM(in_use) FROM quota_usages WHERE resource = 'gigabytes'")
    )


@pytest.mark.parametrize('repeated', [False, True])
def test_absent_share_is_not_deleted(node, share, shelf, repeated):
    allow(node, share)
    before = usage(node)
    shelf.take()
    for _ in range(1 + repeated):
        node.ask('delete', share)
        node.run()
        assert node.status(share) == 'error_deleting'
        reset(node, share, 'error')
    assert rules(node) == ['error']
    assert usage(node) == before
    shelf.put_back()
    node.ask('delete', share)
    node.run()
    assert node.rows(sa.select(SHARE)) == []
    assert node.driver().inventory() == {}
    assert node.driver().access_inventory() == {}


def test_denied_client_of_an_absent_share_stays_known(node, share, shelf):
    allow(node, share)
    shelf.take()
    deny(node, share)
    assert rules(node) == ['error']
    shelf.put_back()
    deny(node, share)
    assert rules(node) == []
    assert node.driver().access_inventory() == {}


@pytest.mark.parametrize(
    'verb, args, status',
    [('extend', [5], 'extending_error'), ('shrink', [1], 'shrinking_error')],
)
def test_absent_share_is_not_changed(node, share, shelf, verb, args, status):
    shelf.take()
    node.ask(verb, share, *args)
    node.run()
    assert node.outcome(share) == (status, 3)
    assert node.problems() == []


def test_absent_share_can_be_force_deleted(node, share, shelf):
    shelf.take()
    node.ask('force_delete', share)
    node.run()
    assert node.rows(sa.select(SHARE)) == []


def test_share_that_was_never_made_can_be_deleted(node):
    node.driver().fail_next('create_share')
    share = node.create(3)
    node.run()
    assert node.status(share) == 'error'
    node.ask('delete', share)
    node.run()
    assert node.rows(sa.select(SHARE)) == []


@pytest.mark.parametrize('status, left', [('error', 0), ('available', 1)])
def test_deletion_that_began_earlier_goes_on_without_the_share(
    node, share, status, left
):
    """Its answer is lost after the share is gone.

    Who says that the share is available says that it is there.
    """
    node.driver().lose_reply_next('delete_share')
    node.ask('delete', share)
    node.run()
    assert node.status(share) == 'error_deleting'
    assert node.driver().inventory() == {}
    reset(node, share, status)
    node.ask('delete', share)
    node.run()
    assert len(node.rows(sa.select(SHARE))) == left


def test_share_is_deleted_by_a_driver_that_cannot_be_asked(node, share):
    node.driver().fail_next('get_share_status', error=NotImplementedError())
    node.ask('delete', share)
    node.run()
    assert node.rows(sa.select(SHARE)) == []


@pytest.mark.parametrize('has_begun', [False, True])
def test_snapshot_of_an_absent_share_is_deleted_if_that_is_being_removed(
    build_cloud, database_url, has_begun
):
    """As when a forced deletion is interrupted, and retries go on."""
    cloud = build_cloud(backends=['alpha'])
    share = cloud.create_share()
    snapshot = cloud_snapshots.create_available(cloud, share)
    (instance,) = cloud.api.get(f'/shares/{share}/instances')['share_instances']
    if has_begun:
        cloud.db.write(instances.begin_removal, instance['id'])
    Shelf(cloud).take()
    cloud_snapshots.delete(cloud, snapshot)
    cloud.settle()
    if has_begun:
        cloud_snapshots.check_gone(cloud, snapshot)
    else:
        assert cloud_snapshots.show(cloud, snapshot)['status'] == ('error_deleting')
