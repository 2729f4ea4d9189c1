"""Replicas are shown, listed and paged."""

import pytest

from tests.functional.api.replica_client import (
    UNKNOWN,
    list_replica_ids,
    list_replicas,
    show_replica,
)
from tests.functional.api.samples.replicas import (
    insert_export,
    insert_replica,
    insert_replicas,
    make_replicable,
)

DETAIL = '/share-replicas/detail'
PATHS = pytest.mark.parametrize('path', ['/share-replicas', DETAIL])


@pytest.fixture
def share(cloud, member):
    """Create a replicable share with only its active replica."""
    return new_share(cloud, member)


def new_share(cloud, api, **body):
    share_id = api.create(**body)['id']
    cloud.settle()
    make_replicable(cloud, share_id)
    return share_id


@pytest.fixture
def replica(cloud, share):
    return insert_replica(cloud, share)


# Lists


@pytest.mark.facts('share-replication')
@PATHS
def test_active_replica_is_listed(cloud, member, share, path):
    (one,) = list_replicas(member, path=path)
    assert (one['share_id'], one['replica_state']) == (share, 'active')
    second = insert_replica(cloud, share)
    assert list_replica_ids(member, path=path) == [second, one['id']]


@PATHS
def test_shares_that_cannot_be_replicated_have_none(cloud, member, path):
    share_id = member.create()['id']
    cloud.settle()
    assert list_replica_ids(member, path=path) == []
    assert list_replica_ids(member, f'share_id={share_id}', path) == []


@PATHS
def test_list_can_be_filtered_by_share(cloud, member, share, replica, path):
    other = new_share(cloud, member)
    for share_id, count in ((share, 2), (other, 1)):
        found = list_replicas(member, f'share_id={share_id}', path)
        assert len(found) == count
        assert {one['share_id'] for one in found} == {share_id}


@PATHS
def test_unknown_share_has_no_replicas(member, replica, path):
    for share_id in (UNKNOWN, 'moon', ''):
        assert list_replica_ids(member, f'share_id={share_id}', path) == []


@pytest.mark.facts('LP1922243')
@PATHS
def test_foreign_share_has_no_replicas(stranger, share, replica, path):
    assert list_replica_ids(stranger, path=path) == []
    assert list_replica_ids(stranger, f'share_id={share}', path) == []


@PATHS
def test_replicas_of_a_public_share_are_hidden_from_other_projects(
    cloud, admin, stranger, path
):
    share = new_share(cloud, admin, is_public=True)
    replica = insert_replica(cloud, share)
    assert stranger.show(share)['has_replicas']
    assert list_replica_ids(stranger, f'share_id={share}', path) == []
    stranger.get(f'/share-replicas/{replica}', expect=404)


def test_administrators_see_replicas_of_all_projects(cloud, admin, stranger):
    share = new_share(cloud, stranger)
    assert [one['share_id'] for one in list_replicas(admin)] == [share]


@PATHS
def test_unpublished_filters_are_ignored(member, replica, path):
    assert len(list_replica_ids(member, 'status=none', path)) == 2


@pytest.mark.facts('share_replica_metadata_query')
@PATHS
@pytest.mark.parametrize(
    'form',
    [
        "{{'color': '{}', 'shape': 'round'}}",
        'color:{},shape:round',  # as the client writes it
    ],
)
def test_list_can_be_filtered_by_metadata_from_2_95(
    cloud, admin, member, share, replica, path, form
):
    metadata = {'color': 'red', 'shape': 'round', 'size': 'small'}
    member.request(
        'PUT', f'/share-replicas/{replica}/metadata', {'metadata': metadata}, expect=200
    )
    for api in (admin, member):
        for color, found in (('red', [replica]), ('blue', [])):
            query = f'metadata={form.format(color)}'
            assert list_replica_ids(api, query, path) == found
            assert list_replica_ids(api, f'{query}&share_id={share}', path) == found
            older = api.get(f'{path}?{query}', version='2.94')
            assert len(older['share_replicas']) == 2


@pytest.mark.facts('share_replica_metadata_query')
@PATHS
@pytest.mark.parametrize('text', ['color', '[]', "{'a':", ':red', 'a:b,c'])
def test_filter_by_metadata_must_be_a_mapping(member, path, text):
    member.get(f'{path}?metadata={text}', expect=400)


# Pages


@pytest.fixture
def five(cloud, share):
    """Create replicas; return five ids, newest first."""
    found = [insert_replica(cloud, share) for _ in range(4)]
    return [*reversed(found), list_replica_ids(cloud.api)[-1]]


@PATHS
def test_page_is_cut_by_limit_and_offset(member, five, path):
    assert list_replica_ids(member, 'limit=2', path) == five[:2]
    assert list_replica_ids(member, 'limit=2&offset=3', path) == five[3:]
    assert list_replica_ids(member, 'offset=4', path) == five[4:]
    assert list_replica_ids(member, 'limit=0', path) == five


@pytest.mark.facts('LP2023754')
@PATHS
def test_links_lead_through_all_pages(member, five, path):
    url, seen = f'{path}?limit=2', []
    while url:
        answer = member.get(url)
        seen += [one['id'] for one in answer['share_replicas']]
        links = answer.get('share_replica_links', [])
        url = links and links[0]['href'].partition('/v2')[2]
    assert seen == five


@PATHS
def test_page_may_follow_the_last_id_of_the_one_before(member, five, path):
    assert list_replica_ids(member, f'limit=2&marker={five[1]}', path) == five[2:4]
    assert list_replica_ids(member, f'marker={five[4]}', path) == []
    assert (
        list_replica_ids(member, f'limit=1&marker={five[0]}&offset=4', path)
        == (five[4:])
    )


@pytest.mark.parametrize('query', ['limit=-1', 'limit=x', 'offset=-1'])
def test_invalid_page_is_refused(member, query):
    member.get(f'/share-replicas?{query}', expect=400)


@pytest.mark.parametrize(
    'path, statements',
    [
        ('/share-replicas', 1),
        (DETAIL, 2),
        ('/share-replicas?share_id={share}', 1),
        (DETAIL + '?share_id={share}', 2),
    ],
)
def test_statement_count_of_lists_is_constant(cloud, member, share, path, statements):
    path = path.format(share=share)
    for length in (1, 1000):
        insert_replicas(cloud, share, length - 1)
        before = cloud.statements
        assert len(member.get(path)['share_replicas']) == length
        assert cloud.statements - before == statements


def test_showing_one_takes_two_statements(cloud, member, replica):
    before = cloud.statements
    show_replica(member, replica)
    assert cloud.statements - before == 2


# Show


def test_some_fields_are_for_administrators_only(admin, member, replica):
    theirs = {'host', 'share_server_id', 'cast_rules_to_readonly'}
    assert show_replica(admin, replica).keys() - show_replica(member, replica) == theirs
    assert show_replica(admin, replica, version='2.29').keys() & theirs == {
        'host',
        'share_server_id',
    }


@pytest.mark.facts('share-replication')
def test_replica_shows_its_state(cloud, admin, share, replica):
    shown = show_replica(admin, replica)
    assert {
        key: shown[key]
        for key in (
            'id',
            'share_id',
            'status',
            'replica_state',
            'availability_zone',
            'cast_rules_to_readonly',
            'share_network_id',
            'share_server_id',
            'metadata',
        )
    } == {
        'id': replica,
        'share_id': share,
        'status': 'available',
        'replica_state': 'in_sync',
        'availability_zone': 'nova',
        'cast_rules_to_readonly': True,
        'share_network_id': None,
        'share_server_id': None,
        'metadata': {},
    }
    assert admin.show(share)['host'] != shown['host']


def test_share_instance_that_is_no_replica_is_not_found(cloud, admin):
    share_id = cloud.create_share()
    (instance,) = admin.get(f'/shares/{share_id}/instances')['share_instances']
    for path in ('', '/metadata', '/export-locations'):
        admin.get(f'/share-replicas/{instance["id"]}{path}', expect=404)


def test_replica_in_deferred_deletion_is_hidden_from_tenants(
    cloud, admin, member, share
):
    deferred = insert_replica(cloud, share, status='deferred_deleting')
    member.get(f'/share-replicas/{deferred}', expect=404)
    assert deferred not in list_replica_ids(member)
    assert deferred in list_replica_ids(admin)


def test_share_shows_that_it_has_replicas(cloud, member, share):
    assert not member.show(share)['has_replicas']
    insert_replica(cloud, share)
    shown = member.show(share)
    assert (shown['has_replicas'], shown['replication_type']) == (True, 'readable')
    assert len(member.get('/shares')['shares']) == 1


@pytest.mark.facts('replica_state')
@pytest.mark.parametrize('version', ['2.11', '2.99'])
def test_instances_without_replication_have_no_replica_state(cloud, admin, version):
    share_id = cloud.create_share()
    path = f'/shares/{share_id}/instances'
    (one,) = admin.get(path, version=version)['share_instances']
    assert one['replica_state'] is None
    (one,) = admin.get(path, version='2.10')['share_instances']
    assert 'replica_state' not in one


def test_share_instances_show_the_state_of_a_replica(admin, share, replica):
    found = admin.get(f'/shares/{share}/instances')['share_instances']
    assert {one['id']: one['replica_state'] for one in found}[replica] == 'in_sync'


# Export locations


@pytest.fixture
def exports(cloud, replica):
    return [
        insert_export(cloud, replica, '10.0.0.2:/all'),
        insert_export(cloud, replica, '10.0.0.2:/admins', is_admin_only=True),
    ]


def exports_of(api, path, version=None):
    return {one['path'] for one in api.get(path, version=version)['export_locations']}


@pytest.mark.facts('bp-export-locations-az.2')
def test_passive_replicas_have_their_own_export_locations(
    member, share, replica, exports
):
    path = f'/share-replicas/{replica}/export-locations'
    (one,) = member.get(path)['export_locations']
    assert (one['path'], one['replica_state'], one['availability_zone']) == (
        '10.0.0.2:/all',
        'in_sync',
        'nova',
    )
    shown = member.get(f'{path}/{exports[0]}')['export_location']
    assert shown['path'] == one['path']


@pytest.mark.facts('bp-export-locations-az.1')
def test_shares_show_exports_of_passive_replicas_below_2_47(
    member, share, replica, exports
):
    path = f'/shares/{share}/export_locations'
    assert '10.0.0.2:/all' in exports_of(member, path, '2.46')
    assert exports_of(member, path, '2.47') == (
        exports_of(member, path, '2.46') - {'10.0.0.2:/all'}
    )


def test_some_exports_are_for_administrators_only(admin, member, replica, exports):
    path = f'/share-replicas/{replica}/export-locations'
    assert exports_of(admin, path) - exports_of(member, path) == {'10.0.0.2:/admins'}
    member.get(f'{path}/{exports[1]}', expect=403)
    admin.get(f'{path}/{exports[1]}')


def test_export_of_another_replica_is_not_found(cloud, admin, share, replica):
    other = insert_export(cloud, insert_replica(cloud, share), '10.0.0.3:/')
    admin.get(f'/share-replicas/{replica}/export-locations/{other}', expect=404)
