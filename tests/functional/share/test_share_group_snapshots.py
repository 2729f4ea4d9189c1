"""Snapshots of share groups: of all shares at once, and of each alone."""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import share_groups as models
from tests.support import cloud_snapshots, share_groups, share_transfers
from tests.support.cloud_images import prepared

MEMBER = models.ShareGroupSnapshotMember.__table__


class Singles:
    """A driver that takes snapshots only of single shares."""

    def __init__(self, driver):
        self._driver = driver
        self.create_snapshot = driver.create_snapshot
        self.delete_snapshot = driver.delete_snapshot
        self.get_snapshot_status = driver.get_snapshot_status


@pytest.fixture
def cloud(build_cloud):
    cloud = build_cloud(backends=['alpha'])
    cloud_snapshots.enable_snapshot_features(cloud)
    return cloud


@pytest.fixture
@prepared
def group(cloud):
    """A group with two shares."""
    group = share_groups.create(cloud)
    for _ in range(2):
        cloud.create_share(share_group_id=group, size=2)
    return group


@pytest.fixture
def shares(cloud, group):
    listed = cloud.api.get(f'/shares?share_group_id={group}')['shares']
    return sorted(one['id'] for one in listed)


def use_singles(cloud):
    endpoint = cloud.share.backends[0].endpoints.share_group_snapshots
    endpoint.driver = Singles(endpoint.driver)


@pytest.fixture(params=['at once', 'one by one'])
def way(request, cloud):
    if request.param == 'one by one':
        use_singles(cloud)
    return request.param


def on_back_end(cloud):
    return cloud.driver().snapshot_inventory()


def statuses(cloud, shares):
    return {cloud.api.show(id)['status'] for id in shares}


@pytest.mark.facts('LP1888905')
def test_snapshot_has_a_member_of_each_share(cloud, group, shares, way):
    id = share_groups.take_snapshot(cloud, group, name='monday')
    shown = share_groups.show_snapshot(cloud.api, id)
    assert shown['name'] == 'monday'
    assert sorted(one['share_id'] for one in shown['members']) == shares
    listed = cloud.api.get(f'{share_groups.SNAPSHOTS}/{id}/members')
    assert (
        sorted(one['share_id'] for one in listed['share_group_snapshot_members'])
        == shares
    )
    first, *others = listed['share_group_snapshot_members']
    rest = cloud.api.get(f'{share_groups.SNAPSHOTS}/{id}/members?marker={first["id"]}')
    assert rest['share_group_snapshot_members'] == others
    members = {one['id']: one['size'] for one in shown['members']}
    assert on_back_end(cloud) == members == dict.fromkeys(members, 2)
    assert cloud.usage('share_group_snapshots') == (1, 0)
    assert statuses(cloud, shares) == {'available'}
    cloud.check_invariants()
    share_groups.delete_snapshot(cloud.api, id)
    cloud.settle()
    share_groups.check_snapshot_gone(cloud.api, id)
    assert on_back_end(cloud) == {}
    assert cloud.usage('share_group_snapshots') == (0, 0)
    cloud.check_invariants()


def test_snapshot_of_an_empty_group_has_no_members(cloud):
    id = share_groups.take_snapshot(cloud, share_groups.create(cloud))
    assert share_groups.show_snapshot(cloud.api, id)['members'] == []


def test_shares_are_held_while_their_group_is_snapshotted(cloud, group, shares):
    share_groups.request_snapshot(cloud.api, group)
    assert statuses(cloud, shares) == {'snapshotting'}
    query = f'?share_group_id={group}'
    cloud.api.request('DELETE', f'/shares/{shares[0]}{query}', expect=403)
    cloud.api.act(shares[0], 'extend', {'new_size': 5}, expect=400)
    share_groups.request_snapshot(cloud.api, group, expect=409)
    cloud.settle()
    assert statuses(cloud, shares) == {'available'}


def test_share_is_not_snapshotted_by_force_beside_its_group(cloud, group, shares):
    """The order of snapshots is that of the back end."""
    share_groups.request_snapshot(cloud.api, group)
    cloud.api.act(shares[0], 'reset_status', {'status': 'error'})
    body = {'share_id': shares[0], 'force': True}
    answer = cloud.api.request('POST', '/snapshots', {'snapshot': body}, expect=400)
    assert 'another snapshot of it is being taken' in str(answer.json)
    cloud.settle()
    cloud.api.request('POST', '/snapshots', {'snapshot': body}, expect=202)
    cloud.settle()
    assert statuses(cloud, shares) == {'available', 'error'}
    cloud.check_invariants()


@pytest.mark.parametrize('failure', ['fail_next', 'half_fail_next'])
def test_shares_are_released_when_the_snapshot_fails(
    cloud, group, shares, way, failure
):
    method = 'create_share_group_snapshot'
    if way == 'one by one':
        method = 'create_snapshot'
    getattr(cloud.driver(), failure)(method)
    answer = share_groups.request_snapshot(cloud.api, group)
    id = answer.json['share_group_snapshot']['id']
    cloud.settle()
    assert share_groups.show_snapshot(cloud.api, id)['status'] == 'error'
    assert statuses(cloud, shares) == {'available'}
    (message,) = cloud.api.get('/messages')['messages']
    assert message['resource_type'] == 'SHARE_GROUP'
    assert message['resource_id'] == group
    share_groups.delete_snapshot(cloud.api, id)
    cloud.settle()
    assert on_back_end(cloud) == {}
    cloud.check_invariants()


def test_snapshot_with_an_unusable_member_is_in_error_and_leaves_none(
    cloud, group, shares
):
    use_singles(cloud)
    driver = cloud.share.backends[0].endpoints.share_group_snapshots.driver
    take, taken = driver.create_snapshot, []

    def take_broken_second(context, snapshot, **more):
        taken.append(snapshot['id'])
        broken = {'status': 'error'} if len(taken) == 2 else {}
        return take(context, snapshot, **more) | broken

    driver.create_snapshot = take_broken_second
    answer = share_groups.request_snapshot(cloud.api, group)
    id = answer.json['share_group_snapshot']['id']
    cloud.settle()
    assert share_groups.show_snapshot(cloud.api, id)['status'] == 'error'
    assert len(taken) == 2
    assert on_back_end(cloud) == {}
    assert statuses(cloud, shares) == {'available'}


def test_group_that_was_reset_is_not_deleted_with_a_snapshot(cloud):
    group = share_groups.create(cloud)
    share_groups.take_snapshot(cloud, group)
    share_groups.act(cloud.api, group, 'reset_status', {'status': 'deleting'})
    cloud.settle()
    assert share_groups.show(cloud.api, group)['status'] == 'error'
    assert cloud.driver().group_inventory() == {group}


def test_group_with_a_share_that_is_not_available_is_not_snapshotted(
    cloud, group, shares
):
    cloud.api.act(shares[1], 'reset_status', {'status': 'error'})
    share_groups.request_snapshot(cloud.api, group, expect=409)
    assert cloud.api.show(shares[0])['status'] == 'available'
    assert cloud.usage('share_group_snapshots') == (0, 0)


def test_group_with_a_share_in_the_recycle_bin_is_not_snapshotted(cloud, group, shares):
    cloud.api.act(shares[1], 'soft_delete')
    answer = share_groups.request_snapshot(cloud.api, group, expect=409)
    assert 'recycle bin' in str(answer.json)
    assert statuses(cloud, shares) == {'available'}


def test_share_in_a_snapshot_of_its_group_is_not_deleted(cloud, group, shares):
    id = share_groups.take_snapshot(cloud, group)
    path = f'/shares/{shares[0]}?share_group_id={group}'
    answer = cloud.api.request('DELETE', path, expect=403)
    assert 'in a snapshot of its share group' in str(answer.json)
    cloud.api.act(shares[0], 'force_delete', expect=400)
    cloud.api.act(shares[0], 'unmanage', expect=403)
    share_groups.delete(cloud.api, group, expect=409)
    share_groups.act(cloud.api, group, 'force_delete', expect=409)
    share_groups.delete_snapshot(cloud.api, id)
    cloud.settle()
    cloud.api.request('DELETE', path, expect=202)


def test_share_is_not_reverted_behind_a_newer_snapshot_of_its_group(
    cloud, group, shares
):
    older = cloud_snapshots.create_available(cloud, shares[0])
    cloud.clock.advance(2)
    id = share_groups.take_snapshot(cloud, group)
    cloud_snapshots.revert(cloud, shares[0], older, expect=409)
    share_groups.delete_snapshot(cloud.api, id)
    cloud.settle()
    cloud_snapshots.revert(cloud, shares[0], older)
    cloud.settle()
    cloud.check_invariants()


def test_order_of_snapshots_is_kept_when_a_clock_is_set_back(cloud, group, shares):
    older = cloud_snapshots.create_available(cloud, shares[0])
    cloud.clock.advance(-60)
    share_groups.take_snapshot(cloud, group)
    cloud_snapshots.revert(cloud, shares[0], older, expect=409)
    cloud.clock.advance(-60)
    newest = cloud_snapshots.create_available(cloud, shares[0])
    cloud_snapshots.revert(cloud, shares[0], newest)
    cloud.settle()
    cloud.check_invariants()


def test_snapshot_deleted_by_force_releases_the_shares(cloud, group, shares):
    answer = share_groups.request_snapshot(cloud.api, group)
    id = answer.json['share_group_snapshot']['id']
    share_groups.act_on_snapshot(cloud.api, id, 'force_delete')
    share_groups.check_snapshot_gone(cloud.api, id)
    cloud.settle()
    assert statuses(cloud, shares) == {'available'}
    assert on_back_end(cloud) == {}
    assert cloud.usage('share_group_snapshots') == (0, 0)
    cloud.check_invariants()


def test_other_projects_do_not_find_a_group_snapshot(cloud, group):
    id = share_groups.take_snapshot(cloud, group)
    another = share_transfers.client_of(cloud, 'another')
    share_groups.check_snapshot_gone(another, id)
    share_groups.delete_snapshot(another, id, expect=404)
    share_groups.request_snapshot(another, group, expect=400)
    listed = another.get(share_groups.SNAPSHOTS)['share_group_snapshots']
    assert listed == []


def test_snapshot_whose_work_was_lost_has_the_locations_of_the_back_end(
    cloud, group, way
):
    id = share_groups.take_snapshot(cloud, group)
    before = locations(cloud)
    assert all(before.values())
    cloud.db.write(
        lambda session: session.run(sa.update(MEMBER).values(provider_location=None))
    )
    share_groups.act_on_snapshot(cloud.api, id, 'reset_status', {'status': 'creating'})
    cloud.settle()
    assert share_groups.show_snapshot(cloud.api, id)['status'] == 'available'
    assert locations(cloud) == before


def locations(cloud):
    return {
        row.id: row.provider_location
        for row in cloud.db.read(lambda session: session.rows(sa.select(MEMBER)))
    }
