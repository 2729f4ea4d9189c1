"""The recovery API for administrators."""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import engine
from tests.support import share_backups
from tests.support.api_client import ApiClient
from tests.support.rescues import instance_of, strand

WORK = engine.Work.__table__
PATHS = ['/recovery/in-flight', '/recovery/preview', '/recovery/log']


@pytest.fixture
def cloud(build_cloud):
    cloud = build_cloud(backends=['alpha'])
    cloud.settle()
    return cloud


@pytest.fixture
def share(cloud):
    return cloud.create_share(size=2)


def listed(cloud, path='/recovery/in-flight'):
    ((_, found),) = cloud.api.get(path).items()
    return found


def request_run(cloud, expect=202, **args):
    return cloud.api.request('POST', '/recovery/run', {'run': args}, expect=expect).json


# Roles


@pytest.mark.parametrize('roles', ['member,reader', 'reader'])
def test_tenants_have_no_access(cloud, share, roles):
    tenant = ApiClient(cloud, roles=roles)
    for path in PATHS:
        tenant.get(path, expect=403)
    tenant.request('POST', '/recovery/run', {'run': {}}, expect=403)
    assert cloud.step() is False


@pytest.mark.parametrize('version', ['2.0', '2.51', '2.99'])
def test_it_is_available_in_every_version(cloud, version):
    for path in PATHS:
        cloud.api.get(path, version=version)


# In flight


def test_resource_at_rest_is_not_listed(cloud, share):
    assert [listed(cloud, path) for path in PATHS] == [[], [], []]


def test_pages_begin_at_an_offset_only(cloud):
    """A marker is ignored: ids of different kinds may be the same."""
    cloud.api.create()
    cloud.api.create()
    first, second = listed(cloud)
    for query, expected in (
        ('limit=1', [first]),
        ('limit=1&offset=1', [second]),
        (f'marker={first["resource_id"]}', [first, second]),
    ):
        for path in PATHS:
            found = listed(cloud, f'{path}?{query}')
            assert len(found) == (len(expected) if path == PATHS[0] else 0)
        found = listed(cloud, f'{PATHS[0]}?{query}')
        assert [one['resource_id'] for one in found] == [
            one['resource_id'] for one in expected
        ]


def test_waiting_work_is_listed_and_not_previewed(cloud):
    share = cloud.api.create(size=3)['id']
    (shown,) = listed(cloud)
    assert (
        shown['resource_type'],
        shown['resource_id'],
        shown['status'],
        shown['host'],
        shown['holder'],
        shown['owner'],
    ) == (
        'share_instance',
        instance_of(cloud, share),
        'creating',
        None,
        'waiting',
        None,
    )
    assert 0 <= shown['age'] < 1
    assert shown['next_step'] == (
        'placement.create_share_instance is run on manila-scheduler'
    )
    assert listed(cloud, '/recovery/preview') == []


def test_claimed_work_shows_its_owner(cloud, share):
    seen = []
    cloud.pause_at('before extend_share', lambda: seen.extend(listed(cloud)))
    cloud.api.act(share, 'extend', {'new_size': 5})
    cloud.settle()
    (shown,) = seen
    assert shown['holder'] == 'held'
    assert shown['owner'].startswith('manila-share@node@alpha:')
    assert 0 < shown['lease_left'] <= 30
    assert shown['heartbeat_age'] >= 0
    assert shown['next_step'] == (f'it is left alone: {shown["owner"]} works on it')


def test_work_that_waits_for_other_work_shows_what_holds_that(cloud, share):
    def meanwhile():
        cloud.api.delete(share)
        seen.extend(listed(cloud))

    seen = []
    cloud.pause_at('before apply_access', meanwhile)
    rule = {'access_type': 'ip', 'access_to': '10.0.0.1', 'access_level': 'rw'}
    cloud.api.act(share, 'allow_access', rule, expect=200)
    cloud.settle()
    (shown,) = (one for one in seen if one['status'] == 'deleting')
    (held,) = {one['owner'] for one in seen if one['owner']}
    assert shown['holder'] == 'waiting'
    assert shown['next_step'].endswith(f' after access.sync_access, held by {held}')


def test_resources_in_flight_are_two_statements(cloud, share):
    cloud.api.create()
    for name in ('a', 'b'):
        cloud.api.request(
            'POST',
            '/snapshots',
            {'snapshot': {'share_id': share, 'name': name}},
            expect=202 if name == 'a' else None,
        )
    before = cloud.statements
    assert len({one['resource_type'] for one in listed(cloud)}) == 2
    assert cloud.statements - before == 2


def test_abandoned_work_is_previewed(cloud, share):
    def meanwhile():
        cloud.clock.advance(40)
        seen.extend(listed(cloud, '/recovery/preview'))

    seen = []
    cloud.pause_at('before extend_share', meanwhile)
    cloud.api.act(share, 'extend', {'new_size': 5})
    cloud.settle()
    (shown,) = seen
    assert shown['holder'] == 'abandoned'
    assert shown['next_step'] == (
        'the back end is asked: get_share_status, which ends in available '
        'or extending_error'
    )


def test_abandoned_work_of_the_data_service_is_shown_to_be_repeated(cloud, share):
    def meanwhile():
        cloud.clock.advance(40)
        seen.extend(listed(cloud, '/recovery/preview'))

    seen = []
    cloud.pause_at('before connection_get_info', meanwhile)
    share_backups.request(cloud.api, share)
    cloud.settle()
    (shown,) = [one for one in seen if one['resource_type'] == 'share_backup']
    assert shown['holder'] == 'abandoned'
    assert shown['next_step'] == ('backups.create_backup is run again on manila-data')


def test_a_preview_changes_nothing(cloud, share):
    strand(cloud, share, 'reset_deleting')
    before = all_rows(cloud)
    (shown,) = listed(cloud, '/recovery/preview')
    assert (shown['holder'], shown['work_id']) == ('nobody', None)
    assert shown['next_step'] == (
        'the work is done once more: provisioning.delete_share_instance, '
        'which ends in gone or error_deleting'
    )
    assert all_rows(cloud) == before
    assert 'get_share_status' not in [call.method for call in cloud.driver().calls]


def all_rows(cloud):
    with cloud.db.engine.connect() as connection:
        return [
            connection.execute(sa.select(table)).all()
            for table in (engine.Transition.__table__, WORK)
        ]


@pytest.mark.parametrize(
    'query, count',
    [
        ('?resource_type=share_instance', 3),
        ('?resource_type=access_rule', 0),
        ('?host=node@alpha', 3),
        ('?host=node@beta', 0),
        ('?limit=2', 2),
        ('?limit=2&offset=2', 1),
    ],
)
def test_lists_are_filtered_and_paged(cloud, query, count):
    for share in [cloud.create_share() for _ in range(3)]:
        strand(cloud, share, 'reset_migrating')
    for path in PATHS[:2]:
        assert len(listed(cloud, path + query)) == count
    request_run(cloud)
    cloud.settle()
    assert len(listed(cloud, PATHS[2] + query)) == count


@pytest.mark.parametrize('path', PATHS)
@pytest.mark.parametrize('query', ['resource_type=sheep', 'limit=-1'])
def test_invalid_query_is_refused(cloud, path, query):
    cloud.api.get(f'{path}?{query}', expect=400)


# Run and log


def test_a_pass_of_every_service_can_be_requested(cloud, share):
    strand(cloud, share, 'reset_migrating')
    assert request_run(cloud) == {'hosts': ['node@alpha']}
    while cloud.step():
        pass
    assert cloud.api.show(share)['status'] == 'error'
    (entry,) = listed(cloud, '/recovery/log')
    assert (
        entry['status_before'],
        entry['action'],
        entry['status_after'],
        entry['asked_by'],
    ) == ('migrating', 'given up', 'error', 'user')


def test_a_pass_of_one_service_can_be_requested(cloud, share):
    assert request_run(cloud, host='node@alpha') == {'hosts': ['node@alpha']}
    request_run(cloud, host='node@nowhere', expect=404)


def test_recovery_of_one_resource_can_be_requested(cloud, share):
    strand(cloud, share, 'extend')
    request_run(
        cloud, resource_type='share_instance', resource_id=instance_of(cloud, share)
    )
    while cloud.step():
        pass
    assert cloud.api.show(share)['status'] == 'available'
    (entry,) = listed(cloud, f'/recovery/log?resource_id={instance_of(cloud, share)}')
    assert (entry['action'], entry['status_after'], entry['asked_by']) == (
        'converged',
        'available',
        'user',
    )


def test_request_for_a_resource_at_rest_is_logged(cloud, share):
    request_run(
        cloud, resource_type='share_instance', resource_id=instance_of(cloud, share)
    )
    cloud.settle()
    (entry,) = listed(cloud, '/recovery/log')
    assert entry['action'] == 'left alone'
    assert entry['status_before'] == entry['status_after'] == 'available'


@pytest.mark.parametrize(
    'args, code',
    [
        ({'resource_type': 'share_instance', 'resource_id': 'nothing'}, 404),
        ({'resource_type': 'sheep', 'resource_id': 'x'}, 400),
        ({'resource_type': 'share_instance'}, 400),
        ({'resource_id': 'x'}, 400),
        (
            {'resource_type': 'access_rule', 'resource_id': 'x', 'host': 'node@alpha'},
            400,
        ),
        ({'sheep': 1}, 400),
    ],
)
def test_invalid_request_is_refused(cloud, args, code):
    request_run(cloud, expect=code, **args)
    assert not cloud.step()


def test_unplaced_resource_is_left_to_the_scheduler(cloud):
    share = cloud.api.create(size=3)['id']
    request_run(
        cloud,
        expect=409,
        resource_type='share_instance',
        resource_id=instance_of(cloud, share),
    )
