"""Snapshots are created, shown, updated, reset and deleted."""

import pytest
import sqlalchemy as sa

from tests.functional.api.conftest import member_of
from tests.functional.api.snapshot_client import (
    UNKNOWN,
    act_on_snapshot,
    create_available_snapshot,
    create_snapshot,
    delete_snapshot,
    list_snapshot_instances,
    show_snapshot,
)
from tests.support.cloud_images import prepared


@pytest.fixture
@prepared
def share(cloud, member):
    share_id = member.create(size=2)['id']
    cloud.settle()
    return share_id


# Create


@pytest.mark.facts('add_snapshot_metadata.1')
def test_snapshot_is_accepted_then_available(cloud, member, share):
    made = create_snapshot(
        member, share, name='one', description='first', metadata={'color': 'red'}
    )
    assert made['status'] == 'creating'
    assert member.show(share)['status'] == 'snapshotting'
    cloud.settle()
    shown = show_snapshot(member, made['id'])
    assert shown == made | {'status': 'available'}
    assert (
        shown['name'],
        shown['description'],
        shown['share_id'],
        shown['size'],
        shown['share_size'],
        shown['share_proto'],
        shown['project_id'],
        shown['metadata'],
    ) == ('one', 'first', share, 2, 2, 'NFS', 'project', {'color': 'red'})
    assert member.show(share)['status'] == 'available'
    assert cloud.usage('snapshots') == (1, 0)
    assert cloud.usage('snapshot_gigabytes') == (2, 0)
    cloud.check_invariants()


# By force


@pytest.mark.facts('force_snapshot_request')
@pytest.mark.parametrize('force', [None, 'what', {}, 2, ''])
def test_force_must_be_a_boolean(member, share, force):
    fault = create_snapshot(member, share, force=force, expect=400)
    assert 'force' in fault['badRequest']['message']
    assert member.show(share)['status'] == 'available'


@pytest.mark.facts('force_snapshot_request')
@pytest.mark.parametrize('force', [True, 'true'])
@pytest.mark.parametrize('works', [True, False])
def test_snapshot_of_a_failed_share_is_attempted_by_force(
    cloud, member, admin, share, fail_next_call, force, works
):
    admin.act(share, 'reset_status', {'status': 'error'})
    create_snapshot(member, share, expect=400)
    create_snapshot(member, share, force=False, expect=400)
    if not works:
        fail_next_call('create_snapshot')
    made = create_snapshot(member, share, force=force)
    assert member.show(share)['status'] == 'error'
    cloud.settle()
    assert show_snapshot(member, made['id'])['status'] == (
        'available' if works else 'error'
    )
    assert member.show(share)['status'] == 'error'
    assert cloud.usage('snapshots') == (1, 0)
    cloud.check_invariants()


@pytest.mark.facts('force_snapshot_request')
@pytest.mark.parametrize(
    'action, size, ends', [('extend', 3, True), ('shrink', 1, False)]
)
def test_snapshot_of_a_busy_share_is_attempted_by_force(
    cloud, member, share, fail_next_call, action, size, ends
):
    member.act(share, action, {'new_size': size})
    if not ends:
        fail_next_call('shrink_share')
    made = create_snapshot(member, share, force=True)
    cloud.settle()
    assert show_snapshot(member, made['id'])['status'] == 'available'
    shown = member.show(share)
    assert (shown['status'], shown['size']) == (
        ('available', 3) if ends else ('shrinking_error', 2)
    )
    cloud.check_invariants()


def test_force_does_not_overtake_another_snapshot(cloud, member, admin, share):
    """The order of snapshots is that of the back end."""
    admin.act(share, 'reset_status', {'status': 'error'})
    create_snapshot(member, share, force=True)
    create_snapshot(member, share, force=True, expect=400)
    assert member.show(share)['status'] == 'error'
    cloud.settle()
    admin.act(share, 'reset_status', {'status': 'available'})
    create_snapshot(member, share, force=True)
    assert member.show(share)['status'] == 'snapshotting'
    cloud.settle()
    cloud.check_invariants()


@pytest.mark.parametrize('status', ['creating', 'deleting', 'migrating'])
def test_nothing_is_attempted_while_a_share_comes_or_goes(member, admin, share, status):
    admin.act(share, 'reset_status', {'status': status})
    create_snapshot(member, share, force=True, expect=400)


# Names, sizes and refusals


def test_names_have_aliases_and_bounds(cloud, member, share):
    made = create_available_snapshot(
        cloud, member, share, display_name='one', display_description='first'
    )
    assert show_snapshot(member, made)['name'] == 'one'
    assert show_snapshot(member, made)['description'] == 'first'
    for body in (
        {'name': 'x' * 256},
        {'description': 'x' * 256},
        {'name': 1},
        {'metadata': []},
        {'metadata': {'a': 1}},
    ):
        create_snapshot(member, share, expect=400, **body)
    made = create_available_snapshot(
        cloud, member, share, name='x' * 255, description=None
    )
    assert show_snapshot(member, made)['name'] == 'x' * 255


def test_size_is_that_of_the_share_at_that_time(cloud, member, share):
    before = create_available_snapshot(cloud, member, share)
    member.act(share, 'extend', {'new_size': 5})
    cloud.settle()
    after = create_available_snapshot(cloud, member, share)
    assert [show_snapshot(member, one)['share_size'] for one in (before, after)] == [
        2,
        5,
    ]
    assert cloud.usage('snapshot_gigabytes') == (7, 0)


def test_share_must_be_available(cloud, member, admin, share):
    for status in ('error', 'creating', 'deleting', 'migrating'):
        admin.act(share, 'reset_status', {'status': status})
        fault = create_snapshot(member, share, expect=400)
        assert 'status' in fault['badRequest']['message']
    assert cloud.usage('snapshots') == (0, 0)


def test_one_snapshot_at_a_time(cloud, member, share):
    create_snapshot(member, share)
    create_snapshot(member, share, expect=400)
    cloud.settle()
    create_snapshot(member, share)


def test_share_in_the_recycle_bin_is_forbidden(cloud, member, share):
    member.act(share, 'soft_delete')
    create_snapshot(member, share, expect=403)


@pytest.mark.facts('LP1925342')
def test_share_without_the_support_is_unprocessable(cloud, member, make_type):
    """Like a body without its wrapper."""
    share_id = member.create(share_type=make_type('bare', snapshot_support='False'))[
        'id'
    ]
    cloud.settle()
    (fault,) = create_snapshot(member, share_id, expect=422).values()
    assert share_id in fault['message']
    assert 'back end' not in fault['message']
    member.request('POST', '/snapshots', {'other': {}}, expect=422)


def test_unknown_and_foreign_shares_answer_alike(cloud, stranger, share):
    answers = [create_snapshot(stranger, id, expect=404) for id in (UNKNOWN, share)]
    texts = [str(one).replace(share, UNKNOWN) for one in answers]
    assert texts[0] == texts[1]


def test_public_share_of_another_project_is_forbidden(cloud, admin, stranger, share):
    admin.request('PUT', f'/shares/{share}', {'share': {'is_public': True}}, expect=200)
    create_snapshot(stranger, share, expect=403)


def test_snapshot_by_administrator_belongs_to_the_project_of_the_share(cloud, admin):
    owner = member_of(cloud, 'another')
    share_id = owner.create()['id']
    cloud.settle()
    snapshot = create_available_snapshot(cloud, admin, share_id)
    shown = show_snapshot(owner, snapshot)
    assert (shown['project_id'], shown['user_id']) == ('another', 'user of another')
    assert cloud.usage('snapshots', 'another') == (1, 0)
    assert cloud.usage('snapshots') == (0, 0)


@pytest.mark.parametrize(
    'query', ['', '?user_id=user of project', '?share_type=default']
)
@pytest.mark.parametrize(
    'quota, error',
    [
        ('snapshots', 'SnapshotLimitExceeded'),
        ('snapshot_gigabytes', 'SnapshotSizeExceedsAvailableQuota'),
    ],
)
@pytest.mark.facts('LP1859775')
def test_quota_is_enforced(cloud, member, admin, share, quota, error, query):
    create_available_snapshot(cloud, member, share)
    used, _ = cloud.usage(quota)
    admin.request(
        'PUT', f'/quota-sets/project{query}', {'quota_set': {quota: used}}, expect=200
    )
    fault = create_snapshot(member, share, expect=413)['overLimit']
    assert error in fault['message']
    if quota == 'snapshot_gigabytes':
        assert f'{used} GiB of {used} GiB in use' in fault['message']
    assert cloud.usage(quota) == (used, 0)
    assert member.show(share)['status'] == 'available'


def test_failure_is_visible(cloud, member, share, fail_next_call):
    fail_next_call('create_snapshot')
    snapshot = create_snapshot(member, share)['id']
    cloud.settle()
    assert show_snapshot(member, snapshot)['status'] == 'error'
    assert member.show(share)['status'] == 'available'
    delete_snapshot(member, snapshot)
    cloud.settle()
    member.get(f'/snapshots/{snapshot}', expect=404)
    assert cloud.usage('snapshots') == (0, 0)


# Usage


def test_quotas_and_limits_show_what_is_used(cloud, member, admin, share):
    create_available_snapshot(cloud, member, share)
    create_available_snapshot(cloud, member, share)
    absolute = member.get('/limits')['limits']['absolute']
    assert (
        absolute['totalShareSnapshotsUsed'],
        absolute['totalSnapshotGigabytesUsed'],
    ) == (2, 4)
    for query in ('', '?user_id=user of project', '?share_type=default'):
        detail = admin.get(f'/quota-sets/project/detail{query}')['quota_set']
        assert (
            detail['snapshots']['in_use'],
            detail['snapshot_gigabytes']['in_use'],
        ) == (2, 4), query


@pytest.mark.facts('snapshot_provider_location')
def test_provider_location_is_for_administrators(cloud, member, admin, share):
    snapshot = create_available_snapshot(cloud, member, share)
    assert 'provider_location' not in show_snapshot(member, snapshot)
    assert 'provider_location' not in show_snapshot(admin, snapshot, version='2.11')
    assert (
        show_snapshot(admin, snapshot, version='2.12')['provider_location']
        == (list_snapshot_instances(admin, snapshot)[0]['provider_location'])
    )


# Change


def test_update_changes_name_and_description(cloud, member, share):
    snapshot = create_available_snapshot(
        cloud, member, share, name='one', description='old'
    )
    for body, name, description in (
        ({'display_name': 'two'}, 'two', 'old'),
        ({'display_description': None}, 'two', None),
        ({'status': 'error', 'size': 9}, 'two', None),
        ({}, 'two', None),
    ):
        answer = member.request(
            'PUT', f'/snapshots/{snapshot}', {'snapshot': body}, expect=200
        ).json['snapshot']
        assert answer == show_snapshot(member, snapshot)
        assert (answer['name'], answer['description']) == (name, description)
    assert (answer['status'], answer['size']) == ('available', 2)
    member.request('PUT', f'/snapshots/{snapshot}', {'display_name': 'x'}, expect=422)
    member.request(
        'PUT',
        f'/snapshots/{snapshot}',
        {'snapshot': {'display_name': 'x' * 256}},
        expect=400,
    )


@pytest.mark.facts('LP2120650')
def test_foreign_snapshot_is_unknown(cloud, member, stranger, share):
    snapshot = create_available_snapshot(cloud, member, share)
    for method, path, body in (
        ('GET', '', None),
        ('DELETE', '', None),
        ('PUT', '', {'snapshot': {'display_name': 'x'}}),
    ):
        stranger.request(method, f'/snapshots/{snapshot}{path}', body, expect=404)
    for action in ({'force_delete': None}, {'reset_status': {'status': 'error'}}):
        stranger.request('POST', f'/snapshots/{snapshot}/action', action, expect=403)
    assert show_snapshot(member, snapshot)['status'] == 'available'


@pytest.mark.facts('LP2160085')
@pytest.mark.parametrize(
    'status, code',
    [
        ('available', 202),
        ('error', 202),
        ('creating', 202),
        ('deleting', 202),
        ('error_deleting', 202),
        ('manage_starting', 202),
        ('manage_error', 202),
        ('unmanage_starting', 202),
        ('unmanage_error', 202),
        ('migrating', 202),
        ('migrating_to', 202),
        ('restoring', 202),
        ('server_migrating', 400),
        ('server_migrating_to', 400),
        ('deferred_deleting', 400),
        ('moon', 400),
        ('', 400),
        (None, 400),
    ],
)
def test_reset_accepts_the_published_statuses(
    cloud, member, admin, share, status, code
):
    snapshot = create_available_snapshot(cloud, member, share)
    act_on_snapshot(member, snapshot, 'reset_status', {'status': status}, expect=403)
    act_on_snapshot(admin, snapshot, 'reset_status', {'status': status}, expect=code)
    assert show_snapshot(member, snapshot)['status'] == (
        status if code == 202 else 'available'
    )


# Delete


def test_delete_removes_the_snapshot_and_returns_quota(cloud, member, share):
    snapshot = create_available_snapshot(cloud, member, share, metadata={'a': 'b'})
    delete_snapshot(member, snapshot)
    assert show_snapshot(member, snapshot)['status'] == 'deleting'
    cloud.settle()
    member.get(f'/snapshots/{snapshot}', expect=404)
    assert cloud.usage('snapshots') == (0, 0)
    assert cloud.usage('snapshot_gigabytes') == (0, 0)
    cloud.check_invariants()


@pytest.mark.facts('LP1475351')
def test_snapshot_is_gone_whatever_the_usage_says(cloud, member, share):
    snapshot = create_available_snapshot(cloud, member, share)
    cloud.db.write(
        lambda session: session.run(sa.text('UPDATE quota_usages SET in_use = 0'))
    )
    delete_snapshot(member, snapshot)
    cloud.settle()
    member.get(f'/snapshots/{snapshot}', expect=404)
    assert cloud.usage('snapshots') == (0, 0)


@pytest.mark.facts('force_delete')
@pytest.mark.parametrize(
    'status',
    [
        'creating',
        'deleting',
        'error_deleting',
        'restoring',
        'unmanage_starting',
        'unmanage_error',
    ],
)
def test_status_may_forbid_deletion(cloud, member, admin, share, status):
    snapshot = create_available_snapshot(cloud, member, share)
    act_on_snapshot(admin, snapshot, 'reset_status', {'status': status})
    fault = delete_snapshot(member, snapshot, expect=400).json['badRequest']
    assert status in fault['message']
    act_on_snapshot(member, snapshot, 'force_delete', expect=403)
    act_on_snapshot(admin, snapshot, 'force_delete')
    cloud.settle()
    member.get(f'/snapshots/{snapshot}', expect=404)


def test_migrating_snapshot_is_not_even_deleted_by_force(cloud, member, admin, share):
    """Without a migration of its share, its status can be reset."""
    snapshot = create_available_snapshot(cloud, member, share)
    act_on_snapshot(admin, snapshot, 'reset_status', {'status': 'migrating'})
    delete_snapshot(member, snapshot, expect=400)
    act_on_snapshot(admin, snapshot, 'force_delete', expect=403)
    act_on_snapshot(admin, snapshot, 'reset_status', {'status': 'error'})
    delete_snapshot(member, snapshot)
    cloud.settle()
    member.get(f'/snapshots/{snapshot}', expect=404)


@pytest.mark.facts('snapshot-force-delete', 'LP1564623')
def test_failure_of_the_back_end_is_visible(
    cloud, member, admin, share, fail_next_call
):
    snapshot = create_available_snapshot(cloud, member, share)
    fail_next_call('delete_snapshot')
    delete_snapshot(member, snapshot)
    cloud.settle()
    assert show_snapshot(member, snapshot)['status'] == 'error_deleting'
    assert cloud.usage('snapshots') == (1, 0)
    fail_next_call('delete_snapshot')
    act_on_snapshot(admin, snapshot, 'force_delete')
    cloud.settle()
    member.get(f'/snapshots/{snapshot}', expect=404)
    assert cloud.usage('snapshots') == (0, 0)


@pytest.mark.facts('share-actions.softdelete.2', 'shares.delete')
def test_share_with_snapshots_is_not_deleted(cloud, member, admin, share):
    snapshot = create_available_snapshot(cloud, member, share)
    member.delete(share, expect=403)
    member.act(share, 'soft_delete', expect=403)
    admin.act(share, 'force_delete', expect=400)
    delete_snapshot(member, snapshot)
    cloud.settle()
    member.delete(share)
    cloud.settle()
    member.get(f'/shares/{share}', expect=404)
    cloud.check_invariants()
