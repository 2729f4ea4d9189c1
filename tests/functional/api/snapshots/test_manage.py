"""Existing snapshots are managed and unmanaged."""

import pytest

from tests.functional.api import snapshot_client
from tests.functional.api.conftest import member_of

UNKNOWN = '00000000-0000-4000-8000-000000000000'


@pytest.fixture
def share(cloud):
    return cloud.create_share(size=2)


@pytest.fixture
def location(cloud, admin, share):
    """Place a snapshot on the back end; return its provider location."""
    return driver_of(cloud, share).add_unmanaged_snapshot(
        instance_of(admin, share), 'found'
    )


def instance_of(admin, share):
    return admin.get(f'/shares/{share}/instances')['share_instances'][0]['id']


def driver_of(cloud, share):
    host = cloud.api.show(share)['host']
    return cloud.driver(host.partition('@')[2].partition('#')[0])


def manage(api, share, location, expect=202, version=None, **more):
    answer = api.request(
        'POST',
        '/snapshots/manage',
        {'snapshot': {'share_id': share, 'provider_location': location, **more}},
        expect=expect,
        version=version,
    )
    return answer.json.get('snapshot') or next(iter(answer.json.values()))


def managed(cloud, share, location, **more):
    snapshot = manage(cloud.api, share, location, **more)
    cloud.settle()
    return show(cloud.api, snapshot['id'])


def show(api, snapshot_id, expect=200):
    return api.get(f'/snapshots/{snapshot_id}', expect=expect).get('snapshot')


def unmanage(api, snapshot_id, expect=202):
    return api.request(
        'POST', f'/snapshots/{snapshot_id}/action', {'unmanage': None}, expect=expect
    )


def used(cloud):
    return (cloud.usage('snapshots'), cloud.usage('snapshot_gigabytes'))


def test_answer_shows_a_snapshot_that_is_not_charged_yet(cloud, admin, share, location):
    snapshot = manage(
        admin, share, location, name='a', description='b', metadata={'color': 'red'}
    )
    assert snapshot['status'] == 'manage_starting'
    assert (snapshot['name'], snapshot['description']) == ('a', 'b')
    assert snapshot['provider_location'] == location
    assert snapshot['metadata'] == {'color': 'red'}
    # The size of the share, until the back end has reported one.
    assert (snapshot['size'], snapshot['share_size']) == (2, 2)
    assert used(cloud) == ((0, 0), (0, 0))


def test_snapshot_is_managed(cloud, share, location):
    snapshot = managed(cloud, share, location)
    assert (snapshot['status'], snapshot['size']) == ('available', 2)
    assert used(cloud) == ((1, 0), (2, 0))
    cloud.check_invariants()


def test_metadata_is_accepted_from_2_73(admin, share, location):
    snapshot = manage(admin, share, location, version='2.72', metadata={'color': 'red'})
    assert show(admin, snapshot['id'])['metadata'] == {}


def test_snapshot_is_of_the_project_of_its_share(cloud, share, location):
    other = member_of(cloud, 'another')
    other.headers['X-Roles'] = 'admin,member,reader'
    snapshot = manage(other, share, location)
    cloud.settle()
    assert show(cloud.api, snapshot['id'])['project_id'] == 'project'
    assert cloud.usage('snapshots') == (1, 0)
    cloud.check_invariants()


def test_it_is_the_newest_snapshot(cloud, admin, share, location):
    snapshot_client.create_available_snapshot(cloud, cloud.api, share)
    snapshot = managed(cloud, share, location)
    newest, *_ = admin.get(f'/snapshots?share_id={share}&sort_key=created_at')[
        'snapshots'
    ]
    assert newest['id'] == snapshot['id']


@pytest.mark.parametrize('missing', ['share_id', 'provider_location'])
def test_location_is_required(admin, missing):
    given = {'share_id': UNKNOWN, 'provider_location': 'p'}
    del given[missing]
    answer = admin.request('POST', '/snapshots/manage', {'snapshot': given}, expect=400)
    assert missing in answer.json['badRequest']['message']


def test_managed_location_is_refused(cloud, admin, share, location):
    manage(admin, share, location)
    manage(admin, share, location, expect=409)
    cloud.settle()
    manage(admin, share, location, expect=409)


def test_share_must_be_available(admin, share, location):
    admin.act(share, 'reset_status', {'status': 'error'})
    manage(admin, share, location, expect=409)


def test_share_must_exist(admin):
    manage(admin, UNKNOWN, 'p', expect=404)


def test_share_must_support_snapshots(cloud, admin, make_type):
    make_type('none')
    share = cloud.create_share(share_type='none')
    manage(admin, share, 'p', expect=422)


@pytest.mark.parametrize('end', ['unmanage', 'delete'])
def test_missing_snapshot_is_a_manage_error(cloud, admin, share, end):
    """What was never managed is unmanaged or deleted, and credits no quota."""
    snapshot = managed(cloud, share, 'nowhere')
    assert snapshot['status'] == 'manage_error'
    assert used(cloud) == ((0, 0), (0, 0))
    cloud.check_invariants()
    if end == 'unmanage':
        unmanage(admin, snapshot['id'])
    else:
        admin.request('DELETE', f'/snapshots/{snapshot["id"]}', expect=202)
    cloud.settle()
    show(admin, snapshot['id'], expect=404)
    assert used(cloud) == ((0, 0), (0, 0))
    cloud.check_invariants()


def test_unmanaged_snapshot_can_be_managed_again(cloud, admin, share, location):
    snapshot = managed(cloud, share, location)
    unmanage(admin, snapshot['id'])
    assert show(admin, snapshot['id'])['status'] == 'unmanage_starting'
    cloud.settle()
    show(admin, snapshot['id'], expect=404)
    assert used(cloud) == ((0, 0), (0, 0))
    cloud.check_invariants()
    assert managed(cloud, share, location)['status'] == 'available'


@pytest.mark.parametrize(
    'status', ['creating', 'deleting', 'manage_starting', 'restoring']
)
def test_snapshot_in_transit_is_not_unmanaged(cloud, admin, share, location, status):
    snapshot = managed(cloud, share, location)['id']
    admin.request(
        'POST',
        f'/snapshots/{snapshot}/action',
        {'reset_status': {'status': status}},
        expect=202,
    )
    unmanage(admin, snapshot, expect=403)


def test_failure_of_the_driver_is_an_unmanage_error(
    cloud, admin, share, location, fail_next_call
):
    snapshot = managed(cloud, share, location)['id']
    fail_next_call('unmanage_snapshot')
    unmanage(admin, snapshot)
    cloud.settle()
    assert show(admin, snapshot)['status'] == 'unmanage_error'
    assert used(cloud) == ((1, 0), (2, 0))
    cloud.check_invariants()
    unmanage(admin, snapshot)
    cloud.settle()
    assert used(cloud) == ((0, 0), (0, 0))
