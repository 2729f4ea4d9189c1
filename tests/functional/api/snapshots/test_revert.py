"""Shares are reverted to snapshots: permissions, refusals and results."""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import shares
from tests.functional.api import differences
from tests.functional.api.conftest import member_of
from tests.functional.api.snapshot_client import (
    UNKNOWN,
    act_on_snapshot,
    create_available_snapshot,
    show_snapshot,
)
from tests.support.cloud_images import prepared


@pytest.fixture
def type_name(make_type):
    return make_type(
        'reverting', snapshot_support='True', revert_to_snapshot_support='True'
    )


@pytest.fixture
@prepared
def share(cloud, member, type_name):
    share_id = member.create(size=2, share_type=type_name)['id']
    cloud.settle()
    assert member.show(share_id)['status'] == 'available'
    return share_id


@pytest.fixture
def snapshot(cloud, member, share):
    return create_available_snapshot(cloud, member, share)


def revert(api, share_id, snapshot_id, expect=202, **options):
    answer = api.act(
        share_id, 'revert', {'snapshot_id': snapshot_id}, expect=expect, **options
    )
    if expect >= 400:
        (fault,) = answer.json.values()
        return fault['message']
    return None


def update_instance(cloud, share_id, **columns):
    table = shares.ShareInstance.__table__
    cloud.db.write(
        lambda session: session.run(
            sa.update(table).where(table.c.share_id == share_id).values(**columns)
        )
    )


def test_share_and_snapshot_are_busy_then_available(cloud, member, share, snapshot):
    revert(member, share, snapshot)
    assert member.show(share)['status'] == 'reverting'
    assert show_snapshot(member, snapshot)['status'] == 'restoring'
    cloud.settle()
    assert member.show(share)['status'] == 'available'
    assert show_snapshot(member, snapshot)['status'] == 'available'
    cloud.check_invariants()


@pytest.mark.facts('share-revert-to-snapshot.3')
@pytest.mark.parametrize('before, now', [(2, 5), (5, 2)])
def test_size_and_quota_become_those_of_the_snapshot(
    cloud, member, type_name, before, now
):
    share = member.create(size=before, share_type=type_name)['id']
    cloud.settle()
    snapshot = create_available_snapshot(cloud, member, share)
    member.act(share, 'extend' if now > before else 'shrink', {'new_size': now})
    cloud.settle()
    assert cloud.usage('gigabytes') == (now, 0)
    revert(member, share, snapshot)
    cloud.settle()
    assert member.show(share)['size'] == before
    assert cloud.usage('gigabytes') == (before, 0)
    cloud.check_invariants()


@pytest.mark.parametrize('reported', [1, 7])
def test_size_is_that_reported_by_the_back_end(
    cloud, member, share, snapshot, reported
):
    """The requested size, which was charged, is another one."""
    member.act(share, 'shrink', {'new_size': 1})
    cloud.settle()
    for backend in cloud.backend_names:
        cloud.driver(backend).revert_to_size_next(reported)
    revert(member, share, snapshot)
    assert cloud.usage('gigabytes') == (1, 1)
    cloud.settle()
    assert member.show(share)['size'] == reported
    assert show_snapshot(member, snapshot)['size'] == 2
    assert cloud.usage('gigabytes') == (reported, 0)
    cloud.check_invariants()


def test_failure_returns_reserved_quota(cloud, member, share, snapshot, fail_next_call):
    member.act(share, 'shrink', {'new_size': 1})
    cloud.settle()
    fail_next_call('revert_to_snapshot')
    revert(member, share, snapshot)
    assert cloud.usage('gigabytes') == (1, 1)
    cloud.settle()
    shown = member.show(share)
    assert (shown['status'], shown['size']) == ('reverting_error', 1)
    assert cloud.usage('gigabytes') == (1, 0)
    cloud.check_invariants()


def test_growth_beyond_the_quota_is_forbidden(cloud, member, admin, share, snapshot):
    member.act(share, 'shrink', {'new_size': 1})
    cloud.settle()
    admin.request(
        'PUT', '/quota-sets/project', {'quota_set': {'gigabytes': 1}}, expect=200
    )
    revert(member, share, snapshot, expect=403)
    assert member.show(share)['status'] == 'available'
    assert show_snapshot(member, snapshot)['status'] == 'available'
    assert cloud.usage('gigabytes') == (1, 0)


def test_failure_shows_reverting_error_only(
    cloud, member, share, snapshot, fail_next_call
):
    fail_next_call('revert_to_snapshot')
    revert(member, share, snapshot)
    cloud.settle()
    assert member.show(share)['status'] == 'reverting_error'
    assert show_snapshot(member, snapshot)['status'] == 'available'
    assert cloud.usage('gigabytes') == (2, 0)
    messages = member.get(f'/messages?resource_id={share}')['messages']
    assert [(one['action_id'], one['message_level']) for one in messages] == [
        ('006', 'ERROR')
    ]
    cloud.check_invariants()


@differences.proves('detail_id of success')
def test_user_is_notified_of_success(cloud, member, share, snapshot):
    revert(member, share, snapshot)
    cloud.settle()
    (messages,) = member.get(f'/messages?resource_id={share}')['messages']
    assert (messages['action_id'], messages['message_level']) == ('006', 'INFO')
    assert messages['detail_id'] == '000'


# Refusals


@pytest.mark.parametrize(
    'args',
    [
        None,
        {},
        {'snapshot_id': None},
        {'snapshot_id': 'first'},
        {'snapshot_id': 1},
        {'snapshot_id': ''},
        [],
    ],
)
def test_snapshot_is_given_by_its_uuid(member, share, args):
    member.act(share, 'revert', args, expect=400)


def test_version_and_project(cloud, stranger, member, share, snapshot):
    revert(member, share, snapshot, expect=404, version='2.26')
    revert(member, UNKNOWN, snapshot, expect=404)
    revert(stranger, share, snapshot, expect=404)
    revert(member, share, snapshot, version='2.27')


def test_public_share_of_another_project_is_forbidden(admin, stranger, share, snapshot):
    admin.request('PUT', f'/shares/{share}', {'share': {'is_public': True}}, expect=200)
    revert(stranger, share, snapshot, expect=403)


@pytest.mark.facts('share-revert-to-snapshot.2')
def test_type_must_support_it(cloud, member):
    share = member.create()['id']
    cloud.settle()
    snapshot = create_available_snapshot(cloud, member, share)
    assert 'support' in revert(member, share, snapshot, expect=400)


def test_unknown_and_foreign_snapshots_answer_alike(
    cloud, member, stranger, share, type_name
):
    elsewhere = stranger.create(share_type=type_name)['id']
    mine = member.create(share_type=type_name)['id']
    cloud.settle()
    ids = (
        UNKNOWN,
        create_available_snapshot(cloud, stranger, elsewhere),
        create_available_snapshot(cloud, member, mine),
    )
    assert (
        len({revert(member, share, id, expect=400).replace(id, '') for id in ids}) == 1
    )


@pytest.mark.facts('share-revert-to-snapshot.1')
def test_older_snapshot_conflicts(cloud, member, share, snapshot):
    newer = create_available_snapshot(cloud, member, share)
    assert newer in revert(member, share, snapshot, expect=409)
    act_on_snapshot(member, newer, 'nothing', expect=400)
    member.request('DELETE', f'/snapshots/{newer}', expect=202)
    # The newer snapshot may still exist on the back end.
    revert(member, share, snapshot, expect=409)
    cloud.settle()
    revert(member, share, snapshot)


@pytest.mark.parametrize(
    'status', ['error', 'creating', 'error_deleting', 'restoring', 'manage_error']
)
def test_snapshot_must_be_available(admin, member, share, snapshot, status):
    act_on_snapshot(admin, snapshot, 'reset_status', {'status': status})
    assert status in revert(member, share, snapshot, expect=409)


@pytest.mark.parametrize('status', ['error', 'creating', 'migrating'])
def test_share_must_be_available(admin, member, share, snapshot, status):
    admin.act(share, 'reset_status', {'status': status})
    assert status in revert(member, share, snapshot, expect=409)
    assert show_snapshot(member, snapshot)['status'] == 'available'


def test_rules_must_be_active(cloud, member, share, snapshot):
    update_instance(cloud, share, access_rules_status='error')
    assert 'rules' in revert(member, share, snapshot, expect=409)
    assert member.show(share)['status'] == 'available'


def test_share_in_the_recycle_bin_is_forbidden(cloud, member, share, snapshot):
    table = shares.Share.__table__
    cloud.db.write(
        lambda session: session.run(
            sa.update(table).where(table.c.id == share).values(is_soft_deleted=True)
        )
    )
    revert(member, share, snapshot, expect=403)


def test_first_of_several_reasons_is_given(cloud, admin, member, type_name):
    """In the order of the published API: 400 before 409."""
    bare = member.create()['id']
    share = member.create(share_type=type_name)['id']
    cloud.settle()
    of_bare, of_share = (
        create_available_snapshot(cloud, member, id) for id in (bare, share)
    )
    for id in (bare, share):
        admin.act(id, 'reset_status', {'status': 'error'})
    revert(member, bare, of_bare, expect=400)
    revert(member, share, of_bare, expect=400)
    revert(member, share, UNKNOWN, expect=400)
    update_instance(cloud, share, access_rules_status='error')
    assert 'status' in revert(member, share, of_share, expect=409)


def test_second_of_two_conflicts(cloud, member, share, snapshot):
    revert(member, share, snapshot)
    revert(member, share, snapshot, expect=409)
    member.act(share, 'extend', {'new_size': 9}, expect=400)
    member.request('DELETE', f'/snapshots/{snapshot}', expect=400)
    member.request('POST', '/snapshots', {'snapshot': {'share_id': share}}, expect=400)
    cloud.settle()
    cloud.check_invariants()


def test_administrator_reverts_for_another_project(cloud, admin, type_name):
    owner = member_of(cloud, 'another')
    share = owner.create(size=1, share_type=type_name)['id']
    cloud.settle()
    snapshot = create_available_snapshot(cloud, owner, share)
    owner.act(share, 'extend', {'new_size': 4})
    cloud.settle()
    revert(admin, share, snapshot)
    cloud.settle()
    assert cloud.usage('gigabytes', 'another') == (1, 0)
    assert cloud.usage('gigabytes') == (0, 0)
