"""Existing shares are managed and unmanaged."""

import datetime

import pytest
import sqlalchemy as sa

from manila_lite.db.models import services, shares
from tests.support.api_client import ApiClient
from tests.support.cloud import TYPE_ID

POOL = 'node@alpha#pool'
UNKNOWN = '00000000-0000-4000-8000-000000000000'


def body(path, **more):
    return {'protocol': 'nfs', 'export_path': path, 'service_host': POOL} | more


def manage(api, path, expect=200, version=None, **more):
    older = version is not None and int(version.split('.')[1]) < 7
    answer = api.request(
        'POST',
        '/os-share-manage' if older else '/shares/manage',
        {'share': body(path, **more)},
        expect=expect,
        version=version,
    )
    return answer.json.get('share') or next(iter(answer.json.values()))


def managed(cloud, path, **more):
    """Manage a share and settle; return the share, managed or in error."""
    share = manage(cloud.api, path, **more)
    cloud.settle()
    return cloud.api.show(share['id'])


def paths(api, share_id):
    return [
        one['path']
        for one in api.get(f'/shares/{share_id}/export_locations')['export_locations']
    ]


@pytest.fixture
def path(cloud):
    """Place a share on the back end; return its path."""
    return cloud.driver().add_unmanaged_share('found', size=3)


def test_answer_shows_a_share_without_a_size(cloud, admin, path):
    share = manage(admin, path, name='a', description='b', is_public=True)
    assert (share['status'], share['size']) == ('manage_starting', None)
    assert (share['name'], share['description']) == ('a', 'b')
    assert share['is_public'] is True
    assert (share['host'], share['availability_zone']) == (POOL, 'nova')
    assert cloud.usage('shares') == cloud.usage('gigabytes') == (0, 0)


def test_share_is_managed_as_the_back_end_has_it(cloud, admin, path):
    share = managed(cloud, path)
    assert (share['status'], share['size']) == ('available', 3)
    assert share['progress'] == '100%'
    assert paths(admin, share['id'])[0] == path
    assert datetime.datetime.fromisoformat(share['metadata']['__managed_at'])
    assert cloud.usage('shares') == (1, 0)
    assert cloud.usage('gigabytes') == (3, 0)
    cloud.check_invariants()


@pytest.mark.facts('LP1863298')
def test_quota_may_be_exceeded(cloud, admin, path):
    admin.request(
        'PUT',
        '/quota-sets/project',
        {'quota_set': {'shares': 0, 'gigabytes': 1}},
        expect=200,
    )
    assert managed(cloud, path)['status'] == 'available'
    assert cloud.usage('gigabytes') == (3, 0)
    cloud.check_invariants()


@pytest.mark.facts('LP1883506')
@pytest.mark.parametrize('how', ['force_delete', 'unmanage'])
def test_failed_manage_leaves_no_quota_behind(cloud, admin, how):
    for _ in range(2):
        share = managed(cloud, '/nowhere')
        assert share['status'] == 'manage_error'
        admin.act(share['id'], how)
        cloud.settle()
        admin.get(f'/shares/{share["id"]}', expect=404)
        for name in ('shares', 'gigabytes'):
            assert cloud.usage(name) == (0, 0)
        cloud.check_invariants()


def test_default_limits_apply_to_a_new_project(build_cloud):
    cloud = build_cloud('[quota]\nshares = 1')
    managed(cloud, cloud.driver().add_unmanaged_share('found'))
    cloud.api.create(expect=413)


def test_export_path_may_be_an_object(cloud, path):
    assert managed(cloud, {'path': path})['status'] == 'available'


def test_driver_gets_the_options(cloud, path, monkeypatch):
    received, driver = [], cloud.driver()
    manage_existing = driver.manage_existing
    monkeypatch.setattr(
        driver,
        'manage_existing',
        lambda share, options: (
            received.append(options) or manage_existing(share, options)
        ),
    )
    managed(cloud, path, driver_options={'depth': 'full', 'n': 1})
    assert received == [{'depth': 'full', 'n': 1}]


@pytest.mark.facts('is_public_manage_request')
def test_below_2_8_shares_are_not_public(cloud, admin, path):
    share = manage(admin, path, version='2.7', is_public=True)
    assert share['is_public'] is False


# Refusals


@pytest.mark.parametrize('missing', ['protocol', 'export_path', 'service_host'])
def test_location_is_required(admin, missing):
    given = body('p')
    del given[missing]
    answer = admin.request('POST', '/shares/manage', {'share': given}, expect=400)
    assert missing in answer.json['badRequest']['message']


@pytest.mark.facts('manage-unmanage-share-servers.5')
@pytest.mark.parametrize(
    'wrong',
    [
        {'export_path': ''},
        {'export_path': {}},
        {'export_path': ['p']},
        {'export_path': {'path': 1}},
        {'driver_options': 'x'},
        {'driver_options': ['x']},
        {'service_host': 'node@alpha'},
        {'service_host': 'node@alpha#'},
        {'is_public': 'maybe'},
        {'share_server_id': UNKNOWN},
    ],
)
def test_wrong_values_are_refused(cloud, admin, wrong):
    answer = admin.request(
        'POST', '/shares/manage', {'share': body('p') | wrong}, expect=400
    )
    assert answer.json['badRequest']['message']


@pytest.mark.parametrize(
    'host', ['moon@alpha#pool', 'node@moon#pool', 'node@alpha#moon', '#pool']
)
def test_host_must_be_a_pool_of_a_service(admin, host):
    manage(admin, 'p', expect=404, service_host=host)


def test_service_must_be_up(cloud, admin, path):
    table = services.Service.__table__
    cloud.db.write(
        lambda session: session.run(
            sa.update(table)
            .where(table.c.host == 'node@alpha')
            .values(health='on fire')
        )
    )
    manage(admin, path, expect=400)


def test_type_must_exist(admin, path):
    manage(admin, path, expect=404, share_type='moon')


def test_default_type_must_be_set(build_cloud):
    cloud = build_cloud()
    cloud.services.managing.default_type = None
    manage(cloud.api, 'p', expect=404)


def test_type_of_the_other_mode_is_refused(admin, make_type, path):
    make_type('servers', driver_handles_share_servers='True')
    manage(admin, path, expect=400, share_type='servers')
    # Servers are unknown below 2.49, and none exists.
    manage(admin, path, expect=400, share_type='servers', share_server_id=UNKNOWN)
    manage(
        admin,
        path,
        expect=404,
        share_type='servers',
        service_host='node@moon#pool',
        share_server_id=UNKNOWN,
    )
    manage(
        admin,
        path,
        expect=400,
        share_type='servers',
        version='2.48',
        share_server_id=UNKNOWN,
    )


def test_below_2_49_share_servers_are_not_read(admin, path):
    manage(admin, path, version='2.48', share_server_id=UNKNOWN)


def test_mount_point_name_needs_its_type(cloud, admin, make_type, path):
    manage(admin, path, expect=400, mount_point_name='data')
    manage(
        admin,
        cloud.driver().add_unmanaged_share('other'),
        version='2.91',
        mount_point_name='data',
    )
    make_type('mounts', mount_point_name_support='True')
    share = manage(admin, path, share_type='mounts', mount_point_name='data')
    assert share['status'] == 'manage_starting'


@pytest.mark.facts('bp-manage-with-mount-point-name')
def test_mount_point_name_has_the_prefix_of_its_type(cloud, admin, make_type):
    make_type(
        'mounts',
        mount_point_name_support='True',
        provisioning__mount_point_prefix='own-',
    )
    first, second = (cloud.driver().add_unmanaged_share(name) for name in 'ab')
    body = {'share_type': 'mounts', 'mount_point_name': 'data'}
    share = managed(cloud, first, **body)
    found = admin.get('/shares?mount_point_name=own-data')['shares']
    assert [one['id'] for one in found] == [share['id']]
    assert share['status'] == 'available'
    fault = manage(admin, second, expect=400, **body)
    assert 'own-data' in fault['message']
    make_type('plain', mount_point_name_support='True')
    share = managed(cloud, second, **body | {'share_type': 'plain'})
    found = admin.get('/shares?mount_point_name=project_data')['shares']
    assert [one['id'] for one in found] == [share['id']]


def test_mount_point_name_is_kept_when_managing_again(cloud, path, make_type):
    make_type('mounts', mount_point_name_support='True')
    body = {'share_type': 'mounts', 'mount_point_name': 'data'}
    failed(cloud, path, protocol='CIFS', **body)
    assert managed(cloud, path, **body)['status'] == 'available'


def test_managed_path_is_refused(cloud, admin, path):
    manage(admin, path)
    fault = manage(admin, path, expect=409)
    assert path in fault['message']
    cloud.settle()
    manage(admin, path, expect=409)
    mine = cloud.create_share()
    host = admin.show(mine)['host']
    manage(admin, paths(admin, mine)[0], expect=409, service_host=host)


def test_two_spellings_of_a_path_are_one_share(cloud, path):
    """The second spelling is that of the administrators' export."""
    other = path.replace('10.0.0.10', '10.0.0.20')
    first, second = (manage(cloud.api, one)['id'] for one in (path, other))
    cloud.settle()
    assert sorted(cloud.api.show(id)['status'] for id in (first, second)) == [
        'available',
        'manage_error',
    ]
    cloud.check_invariants()


def test_the_same_path_of_another_back_end_is_another_share(cloud, path):
    cloud.driver('beta').add_unmanaged_share('found', size=1)
    for host, size in ((POOL, 3), ('node@beta#pool', 1)):
        share = managed(cloud, path, service_host=host)
        assert (share['status'], share['size']) == ('available', size)


# Failures


def failed(cloud, *args, **more):
    share = managed(cloud, *args, **more)
    assert (share['status'], share['size']) == ('manage_error', 1)
    assert cloud.usage('shares') == cloud.usage('gigabytes') == (0, 0)
    cloud.check_invariants()
    return share


@pytest.mark.facts('error-share-set-size')
def test_several_shares_of_a_back_end_can_be_managed(cloud, path):
    other = cloud.driver().add_unmanaged_share('other', size=2)
    assert [managed(cloud, one)['status'] for one in (path, other)] == 2 * ['available']


def test_nothing_at_the_path_is_a_manage_error(cloud):
    failed(cloud, 'nowhere')


def test_share_without_size_is_a_manage_error(cloud):
    failed(cloud, cloud.driver().add_unmanaged_share('found', size=None))


@pytest.mark.parametrize('protocol', ['CIFS', 'gopher'])
def test_other_protocol_is_a_manage_error(cloud, path, protocol):
    failed(cloud, path, protocol=protocol)


def test_pool_that_does_not_fit_the_type_is_a_manage_error(cloud, make_type, path):
    make_type('green', color='green')
    share = failed(cloud, path, share_type='green')
    (message,) = cloud.api.get('/messages')['messages']
    assert message['resource_id'] == share['id']
    assert message['detail_id'] == '008'
    assert not [
        call for call in cloud.driver().calls if call.method == 'manage_existing'
    ]


def test_share_on_a_full_pool_can_be_managed(build_cloud):
    cloud = build_cloud(capacity=1)
    path = cloud.driver().add_unmanaged_share('found', size=50)
    assert managed(cloud, path)['status'] == 'available'


def test_share_that_could_not_be_managed_is_unmanaged(cloud, path):
    cloud.driver().fail_next('manage_existing')
    share = failed(cloud, path)
    cloud.api.act(share['id'], 'unmanage')
    assert cloud.api.show(share['id'])['status'] == ('manage_error_unmanage_starting')
    manage(cloud.api, path, expect=409)
    cloud.settle()
    cloud.api.get(f'/shares/{share["id"]}', expect=404)
    assert managed(cloud, path)['status'] == 'available'
    cloud.check_invariants()


@pytest.mark.facts('manage-unmanage-replicated.2')
def test_share_that_could_not_be_managed_is_managed_again(cloud, make_type, path):
    """It keeps its id; all else is as in the last request."""
    make_type('green', color='green')
    make_type('mirrored', replication_type='readable')
    first = failed(cloud, path, share_type='green', name='first')
    (again,) = {
        failed(cloud, path, share_type='green', protocol='cifs')['id'],
        failed(cloud, path, share_type='mirrored')['id'],
    }
    share = managed(cloud, path, name='last', description='told')
    assert again == share['id'] == first['id']
    assert (share['status'], share['size']) == ('available', 3)
    assert (share['name'], share['description']) == ('last', 'told')
    assert (share['share_type_name'], share['share_proto']) == ('default', 'NFS')
    assert share['replication_type'] is None
    assert len(cloud.api.get('/shares')['shares']) == 1
    assert cloud.usage('gigabytes') == (3, 0)
    manage(cloud.api, path, expect=409)
    cloud.check_invariants()


def test_share_of_another_project_is_not_managed_again(cloud, path):
    failed(cloud, path, protocol='CIFS')
    other = ApiClient(cloud, project='another')
    manage(other, path, expect=409)


def test_share_of_unknown_size_is_not_extended(cloud):
    share = failed(cloud, 'nowhere')
    cloud.api.act(share['id'], 'reset_status', {'status': 'available'})
    cloud.api.act(share['id'], 'extend', {'new_size': 5}, expect=400)


def test_deleted_failed_share_does_not_change_usage(cloud):
    share = failed(cloud, 'nowhere')
    cloud.api.act(share['id'], 'force_delete')
    cloud.settle()
    assert cloud.usage('shares') == (0, 0)
    cloud.check_invariants()


# Unmanage


def test_unmanaged_share_stays_on_the_back_end(cloud, admin, path):
    share = managed(cloud, path)
    admin.act(share['id'], 'unmanage')
    assert admin.show(share['id'])['status'] == 'unmanage_starting'
    cloud.settle()
    admin.get(f'/shares/{share["id"]}', expect=404)
    assert cloud.driver().unmanaged_shares() == {path: 3}
    assert cloud.usage('shares') == cloud.usage('gigabytes') == (0, 0)
    cloud.check_invariants()


def test_share_can_be_managed_again_with_its_content(cloud, admin):
    share_id = cloud.create_share(size=2)
    shown = admin.show(share_id)
    driver = cloud.driver(shown['host'].partition('@')[2][:-5])
    (instance_id,) = driver.inventory()
    driver.write(instance_id, 'precious')
    path = paths(admin, share_id)[0]
    admin.act(share_id, 'unmanage')
    cloud.settle()
    back = managed(cloud, path, service_host=shown['host'])
    assert back['size'] == 2
    (instance_id,) = driver.inventory()
    assert driver.read(instance_id) == 'precious'


def test_unmanaging_has_an_operation_of_its_own_below_2_7(cloud, admin):
    share_id = cloud.create_share()
    admin.request(
        'POST', f'/os-share-unmanage/{share_id}/unmanage', version='2.6', expect=202
    )
    cloud.settle()
    admin.get(f'/shares/{share_id}', expect=404)


@pytest.mark.parametrize('status', ['creating', 'deleting', 'migrating'])
def test_share_in_transit_is_not_unmanaged(cloud, admin, status):
    share_id = cloud.create_share()
    admin.act(share_id, 'reset_status', {'status': status})
    admin.act(share_id, 'unmanage', expect=403)


@pytest.mark.parametrize('status', ['error', 'error_deleting'])
def test_share_at_rest_is_unmanaged(cloud, admin, status):
    share_id = cloud.create_share()
    admin.act(share_id, 'reset_status', {'status': status})
    admin.act(share_id, 'unmanage')
    cloud.settle()
    cloud.check_invariants()


@pytest.mark.facts('LP-unmanage-preconditions')
def test_share_with_a_snapshot_is_not_unmanaged(cloud, admin):
    share_id = cloud.create_share()
    admin.request(
        'POST', '/snapshots', {'snapshot': {'share_id': share_id}}, expect=202
    )
    cloud.settle()
    admin.act(share_id, 'unmanage', expect=403)
    assert admin.show(share_id)['status'] == 'available'


def test_locked_share_is_not_unmanaged(cloud, admin):
    share_id = cloud.create_share()
    admin.request(
        'POST',
        '/resource-locks',
        {'resource_lock': {'resource_id': share_id, 'resource_type': 'share'}},
        expect=200,
    )
    admin.act(share_id, 'unmanage', expect=403)
    assert admin.show(share_id)['status'] == 'available'


def test_share_in_the_recycle_bin_is_not_unmanaged(cloud, admin):
    share_id = cloud.create_share()
    admin.act(share_id, 'soft_delete')
    admin.act(share_id, 'unmanage', expect=403)


@pytest.mark.facts('LP-unmanage-preconditions')
def test_share_on_a_server_is_unmanaged_from_2_49_on(cloud, admin):
    share_id = cloud.create_share()
    table = shares.ShareInstance.__table__
    cloud.db.write(
        lambda session: session.run(sa.update(table).values(share_server_id=UNKNOWN))
    )
    admin.act(share_id, 'unmanage', expect=403, version='2.48')
    admin.request(
        'POST', f'/os-share-unmanage/{share_id}/unmanage', version='2.6', expect=403
    )


def test_failure_of_the_driver_is_an_unmanage_error(cloud, admin, fail_next_call):
    share_id = cloud.create_share(size=2)
    fail_next_call('unmanage')
    admin.act(share_id, 'unmanage')
    cloud.settle()
    assert admin.show(share_id)['status'] == 'unmanage_error'
    assert cloud.usage('gigabytes') == (2, 0)
    cloud.check_invariants()
    admin.act(share_id, 'unmanage')
    cloud.settle()
    assert cloud.usage('gigabytes') == (0, 0)
    cloud.check_invariants()


def test_share_that_was_never_placed_is_unmanaged_at_once(cloud, admin, make_type):
    make_type('green', color='green')
    share_id = admin.create(share_type='green')['id']
    cloud.settle()
    assert admin.show(share_id)['status'] == 'error'
    admin.act(share_id, 'unmanage')
    admin.get(f'/shares/{share_id}', expect=404)
    cloud.check_invariants()


def test_type_is_the_default_one(cloud, path):
    assert managed(cloud, path)['share_type'] == TYPE_ID
