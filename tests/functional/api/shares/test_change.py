"""Shares are updated, resized, deleted and restored."""

import datetime

import pytest
import sqlalchemy as sa

from manila_lite.db.models import shares as share_models
from tests.functional.api import differences
from tests.functional.api.conftest import create_type, member_of
from tests.functional.api.samples.cloud import GROUP, pending_work_kinds
from tests.functional.api.samples.replicas import insert_replica, make_replicable


def status(api, share):
    return api.show(share)['status']


def fault(answer):
    (fault,) = answer.json.values()
    return fault['message']


@pytest.fixture
def share(cloud):
    """A share of 2 GiB that is available."""
    return cloud.create_share(size=2, name='data')


# Update


def test_update_accepts_display_names_only(member, share):
    answer = member.request(
        'PUT',
        f'/shares/{share}',
        {
            'share': {
                'display_name': 'new',
                'display_description': 'told',
                'name': 'ignored',
                'description': 'ignored',
                'size': 9,
            }
        },
        expect=200,
    )
    shown = member.show(share)
    assert answer.json == {'share': shown}
    assert (shown['name'], shown['description']) == ('new', 'told')
    assert shown['size'] == 2


@pytest.mark.facts('LP2023964')
@pytest.mark.parametrize('key', ['display_name', 'display_description'])
def test_update_refuses_what_is_too_long(member, share, key):
    path = f'/shares/{share}'
    body = {'share': {key: 'x' * 256}}
    answer = member.request('PUT', path, body, expect=400)
    assert key in fault(answer)
    assert '255' in fault(answer)
    body = {'share': {key: 'x' * 255}}
    member.request('PUT', path, body, expect=200)


def test_update_of_nothing_changes_nothing(member, share):
    before = member.show(share)
    member.request('PUT', f'/shares/{share}', {'share': {}}, expect=200)
    member.request('PUT', f'/shares/{share}', {'share': {'name': 'x'}}, expect=200)
    assert member.show(share) == before


def test_update_without_share_is_unprocessable(member, share):
    member.request('PUT', f'/shares/{share}', {}, expect=422)


@pytest.mark.facts('LP1801763.2', 'LP1801763.4', 'remove-deprecated-public-share')
def test_making_a_share_public_requires_the_policy(admin, member, share):
    body = {'share': {'is_public': True}}
    member.request('PUT', f'/shares/{share}', body, expect=403)
    admin.request('PUT', f'/shares/{share}', body, expect=200)
    assert member.show(share)['is_public'] is True
    member.request(
        'PUT', f'/shares/{share}', {'share': {'is_public': False}}, expect=200
    )
    assert member.show(share)['is_public'] is False


# Extend


@pytest.mark.parametrize('size', [5, '5'])
def test_extend_grows_share_and_quota(cloud, member, share, size):
    member.act(share, 'extend', {'new_size': size})
    assert status(member, share) == 'extending'
    assert cloud.usage('gigabytes') == (2, 3)
    cloud.settle()
    shown = member.show(share)
    assert (shown['status'], shown['size']) == ('available', 5)
    assert cloud.usage('gigabytes') == (5, 0)
    cloud.check_invariants()


@pytest.mark.parametrize('size', [2, 1, '2', 0, -3, 'x', 2.5, None, True])
def test_extend_to_no_larger_size_is_refused(member, share, size):
    member.act(share, 'extend', {'new_size': size}, expect=400)
    assert status(member, share) == 'available'


@pytest.mark.parametrize('found', ['error', 'creating', 'deleting'])
@pytest.mark.parametrize('action, size', [('extend', 3), ('shrink', 1)])
def test_resize_in_another_status_is_refused(admin, member, share, action, size, found):
    admin.act(share, 'reset_status', {'status': found})
    answer = member.act(share, action, {'new_size': size}, expect=400)
    # Users know the share, but not its instances.
    assert f'The share is in status {found}' in fault(answer)


def test_extend_beyond_the_gigabytes_is_forbidden(build_cloud):
    cloud = build_cloud('[quota]\ngigabytes = 3')
    share = cloud.create_share(size=2)
    cloud.api.act(share, 'extend', {'new_size': 4}, expect=403)
    assert status(cloud.api, share) == 'available'
    assert cloud.usage('gigabytes') == (2, 0)


def test_extend_beyond_one_share_answers_413(build_cloud):
    cloud = build_cloud('[quota]\nper_share_gigabytes = 3')
    share = cloud.create_share(size=2)
    cloud.api.act(share, 'extend', {'new_size': 4}, expect=413)
    assert status(cloud.api, share) == 'available'


def test_extend_beyond_replica_gigabytes_answers_413(build_cloud):
    cloud = build_cloud('[quota]\nreplica_gigabytes = 3')
    create_type(cloud, replication_type='dr')
    share = cloud.api.create(size=2, share_type='special')['id']
    cloud.api.act(share, 'reset_status', {'status': 'available'})
    cloud.api.act(share, 'extend', {'new_size': 4}, expect=413)


@pytest.mark.facts('max-share-extend-size', 'min-max-share-size')
def test_type_limits_the_size_of_an_extend(cloud, admin, member, make_type):
    make_type(provisioning__max_share_size='3', provisioning__max_share_extend_size='5')
    share = cloud.create_share(size=2, share_type='special')
    member.act(share, 'extend', {'new_size': 4}, expect=400)
    admin.act(share, 'extend', {'new_size': 6}, expect=400)
    admin.act(share, 'extend', {'new_size': 5})


def test_forced_extend_is_for_administrators_from_2_64(cloud, admin, member, share):
    forced = {'new_size': 3, 'force': True}
    member.act(share, 'extend', forced, expect=403)
    member.act(share, 'extend', forced, version='2.63')
    cloud.settle()
    admin.act(share, 'extend', forced | {'new_size': 4})
    cloud.settle()
    assert member.show(share)['size'] == 4


def test_forced_extend_skips_the_scheduler(build_cloud):
    cloud = build_cloud('[quota]\ngigabytes = -1', capacity=10)
    share = cloud.create_share(size=2)
    cloud.api.act(share, 'extend', {'new_size': 5000})
    cloud.settle()
    assert cloud.api.show(share)['size'] == 2
    cloud.api.act(share, 'reset_status', {'status': 'available'})
    cloud.settle()
    cloud.api.act(share, 'extend', {'new_size': 5000, 'force': True})
    assert cloud.db.read(pending_work_kinds) == ['provisioning.extend_share_instance']


# Shrink


def test_shrink_gives_quota_back_when_done(cloud, member, share):
    member.act(share, 'shrink', {'new_size': '1'})
    assert status(member, share) == 'shrinking'
    assert cloud.usage('gigabytes') == (2, 0)
    cloud.settle()
    shown = member.show(share)
    assert (shown['status'], shown['size']) == ('available', 1)
    assert cloud.usage('gigabytes') == (1, 0)
    cloud.check_invariants()


@pytest.mark.parametrize('size', [2, 3, 0, -1, 'x', None])
def test_shrink_to_no_smaller_size_is_refused(member, share, size):
    member.act(share, 'shrink', {'new_size': size}, expect=400)
    assert status(member, share) == 'available'


@pytest.mark.facts('min-max-share-size')
def test_type_limits_the_size_of_a_shrink(cloud, member, make_type):
    make_type(provisioning__min_share_size='2')
    share = cloud.create_share(size=3, share_type='special')
    member.act(share, 'shrink', {'new_size': 1}, expect=400)
    member.act(share, 'shrink', {'new_size': 2})


# Delete


def test_delete_removes_the_share_and_returns_quota(cloud, member, share):
    member.delete(share)
    assert status(member, share) == 'deleting'
    cloud.settle()
    member.request('GET', f'/shares/{share}', expect=404)
    assert cloud.usage('shares') == cloud.usage('gigabytes') == (0, 0)
    cloud.check_invariants()


@pytest.mark.facts('LP1657033')
def test_metadata_is_gone_with_its_share(cloud, member):
    share = cloud.create_share(metadata={'color': 'red'})
    kept = cloud.create_share(metadata={'color': 'blue'})
    member.delete(share)
    cloud.settle()
    for path in ('', '/metadata', '/metadata/color'):
        member.request('GET', f'/shares/{share}{path}', expect=404)
    table = share_models.ShareMetadata.__table__
    rows = cloud.db.read(lambda session: session.rows(sa.select(table.c.share_id)))
    assert [row.share_id for row in rows] == [kept]


@pytest.mark.facts('bug-1867030')
def test_share_of_which_an_instance_is_gone_is_deleted(cloud, admin, member):
    share = cloud.create_share(size=2)
    make_replicable(cloud, share)
    replica = insert_replica(cloud, share)
    table = share_models.ShareInstance.__table__
    cloud.db.write(
        lambda session: session.run(sa.delete(table).where(table.c.id == replica))
    )
    member.delete(share)
    cloud.settle()
    member.request('GET', f'/shares/{share}', expect=404)


def test_share_in_error_can_be_deleted(cloud, admin, member, share):
    admin.act(share, 'reset_status', {'status': 'error'})
    member.delete(share)
    cloud.settle()
    member.request('GET', f'/shares/{share}', expect=404)


@pytest.mark.parametrize(
    'found', ['creating', 'deleting', 'migrating', 'error_deleting']
)
def test_delete_in_another_status_is_forbidden(admin, member, share, found):
    admin.act(share, 'reset_status', {'status': found})
    assert found in fault(member.delete(share, expect=403))
    assert status(member, share) == found


def test_member_of_a_group_is_deleted_with_its_group_only(sample):
    path = f'/shares/{sample.grouped_share}'
    for query in ('', '?share_group_id=', f'?share_group_id={sample.share}'):
        sample.member.request('DELETE', path + query, expect=400)
    sample.member.request('DELETE', f'{path}?share_group_id={GROUP}', expect=202)


@pytest.mark.facts('force_delete')
@pytest.mark.parametrize(
    'found',
    ['available', 'creating', 'deleting', 'error', 'error_deleting', 'migrating'],
)
def test_force_delete_ignores_status_and_driver(
    cloud, admin, member, share, fail_next_call, found
):
    admin.act(share, 'reset_status', {'status': found})
    fail_next_call('delete_share')
    admin.act(share, 'force_delete')
    cloud.settle()
    member.request('GET', f'/shares/{share}', expect=404)
    assert cloud.usage('gigabytes') == (0, 0)


@pytest.mark.facts('LP2067456', 'deferred-deletion.1')
def test_deferred_deletion_frees_quota_and_hides_at_once(build_cloud):
    cloud = build_cloud('is_deferred_deletion_enabled = true')
    member = member_of(cloud)
    share = cloud.create_share(size=2)
    member.delete(share)
    assert cloud.usage('gigabytes') == (0, 0)
    member.request('GET', f'/shares/{share}', expect=404)
    member.request('GET', f'/shares/{share}/metadata', expect=404)
    assert member.get('/shares')['shares'] == []
    assert status(cloud.api, share) == 'deferred_deleting'
    assert len(cloud.api.get('/shares')['shares']) == 1
    cloud.settle()
    cloud.api.request('GET', f'/shares/{share}', expect=404)
    cloud.check_invariants()


# The recycle bin


@pytest.fixture
def soft_deleted(member, share):
    member.act(share, 'soft_delete')
    return share


@pytest.mark.facts('recycle-bin.2')
def test_soft_delete_keeps_the_status_and_shows_the_expiry(build_cloud):
    cloud = build_cloud('soft_deleted_share_retention_time = 600')
    share = cloud.create_share()
    cloud.api.act(share, 'soft_delete')
    now = cloud.db.utcnow()
    shown = cloud.api.show(share)
    assert (shown['status'], shown['is_soft_deleted']) == ('available', True)
    until = datetime.datetime.fromisoformat(shown['scheduled_to_be_deleted_at'])
    assert abs(until - now - datetime.timedelta(seconds=600)) < (
        datetime.timedelta(seconds=1)
    )


@pytest.mark.facts('scheduled_to_be_deleted_at', 'recycle-bin.1')
def test_restore_clears_the_soft_deletion(cloud, member, soft_deleted):
    until = datetime.datetime.fromisoformat(
        member.show(soft_deleted)['scheduled_to_be_deleted_at']
    )
    left = until - cloud.db.utcnow()
    assert abs(left - datetime.timedelta(days=7)).total_seconds() < 1
    member.act(soft_deleted, 'restore', expect=202)
    shown = member.show(soft_deleted)
    assert shown['is_soft_deleted'] is False
    assert shown['scheduled_to_be_deleted_at'] is None


def test_restore_of_a_live_share_answers_200(member, share):
    member.act(share, 'restore', expect=200)


def test_restore_of_a_share_being_deleted_is_forbidden(member, soft_deleted):
    member.delete(soft_deleted)
    member.act(soft_deleted, 'restore', expect=403)


@pytest.mark.facts('share-actions.softdelete.3')
def test_soft_delete_twice_is_forbidden(member, soft_deleted):
    member.act(soft_deleted, 'soft_delete', expect=403)


@pytest.mark.facts('share-actions.softdelete.1')
@pytest.mark.parametrize(
    'found', ['creating', 'deleting', 'migrating', 'error_deleting']
)
def test_soft_delete_requires_the_same_status_as_delete(admin, member, share, found):
    admin.act(share, 'reset_status', {'status': found})
    member.act(share, 'soft_delete', expect=403)
    assert member.show(share)['is_soft_deleted'] is False


@pytest.mark.facts('share-actions.softdelete.1')
def test_share_in_error_can_be_soft_deleted(admin, member, share):
    admin.act(share, 'reset_status', {'status': 'error'})
    member.act(share, 'soft_delete')


@pytest.mark.parametrize(
    'action, args',
    [
        ('extend', {'new_size': 3}),
        ('shrink', {'new_size': 1}),
        ('reset_status', {'status': 'error'}),
    ],
)
def test_actions_on_a_binned_share_are_forbidden(admin, soft_deleted, action, args):
    admin.act(soft_deleted, action, args, expect=403)
    assert status(admin, soft_deleted) == 'available'


def test_update_of_a_binned_share_is_forbidden(admin, soft_deleted):
    admin.request(
        'PUT', f'/shares/{soft_deleted}', {'share': {'display_name': 'new'}}, expect=403
    )
    assert admin.show(soft_deleted)['name'] == 'data'


def test_binned_share_can_be_deleted(cloud, member, soft_deleted):
    member.delete(soft_deleted)
    cloud.settle()
    member.request('GET', f'/shares/{soft_deleted}', expect=404)


@pytest.mark.facts('recycle-bin.4')
def test_expired_share_is_deleted(build_cloud):
    cloud = build_cloud('soft_deleted_share_retention_time = 600')
    share = cloud.create_share()
    cloud.api.act(share, 'soft_delete')
    for seconds, code in ((500, 200), (200, 404)):
        cloud.clock.advance(seconds)
        for backend in cloud.share.backends:
            backend.expire()
        cloud.settle()
        cloud.api.request('GET', f'/shares/{share}', expect=code)
    assert cloud.usage('shares') == (0, 0)


# Reset status


@pytest.mark.parametrize(
    'new_status',
    [
        'creating',
        'available',
        'deleting',
        'error',
        'error_deleting',
        'migrating',
        'migrating_to',
        'server_migrating',
    ],
)
def test_status_can_be_reset(admin, share, new_status):
    admin.act(share, 'reset_status', {'status': new_status})
    assert status(admin, share) == new_status


@pytest.mark.parametrize('new_status', ['extending', 'inactive', 'moon', '', None, 1])
def test_other_statuses_are_refused(admin, share, new_status):
    admin.act(share, 'reset_status', {'status': new_status}, expect=400)
    admin.act(share, 'reset_status', {'os-status': 'error'}, expect=400)
    assert status(admin, share) == 'available'


# Actions


@pytest.mark.parametrize(
    'body',
    [{}, {'extend': {'new_size': 3}, 'shrink': {'new_size': 1}}, [], 'extend', None],
)
def test_body_has_exactly_one_action(member, share, body):
    answer = member.request('POST', f'/shares/{share}/action', body, expect=400)
    assert fault(answer) == 'Malformed request body'


def test_unknown_action_is_named(member, share):
    answer = member.act(share, 'fly', expect=400)
    assert fault(answer) == 'There is no such action: fly'


def test_action_of_another_version_is_not_found(member, share):
    for action, version in (
        ('os-extend', '2.7'),
        ('extend', '2.6'),
        ('soft_delete', '2.68'),
    ):
        member.act(share, action, {'new_size': 3}, version=version, expect=404)


@differences.proves('reset_task_state')
def test_task_states_of_services_need_a_migration(admin, share):
    for state in ('migration_error', 'migration_success', None):
        admin.act(share, 'reset_task_state', {'task_state': state})
        assert admin.show(share)['task_state'] == state
    for state in (
        'migration_starting',
        'migration_driver_in_progress',
        'data_copying_in_progress',
        'moon',
        '',
    ):
        admin.act(share, 'reset_task_state', {'task_state': state}, expect=400)
    assert admin.show(share)['task_state'] is None
