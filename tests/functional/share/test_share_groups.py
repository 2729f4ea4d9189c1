"""Share groups: their life on back ends, and the shares in them."""

import uuid

import pytest

from manila_lite.db.queries.recovery import recovery
from tests.support import cloud_snapshots, share_groups, share_transfers
from tests.support.cloud import TYPE_ID, Cloud

POOLS = 'dummy_driver_pools = one, two\n'


@pytest.fixture
def cloud(build_cloud):
    return build_cloud(backends=['alpha', 'beta'])


@pytest.fixture
def group(cloud):
    return share_groups.create(cloud)


def groups_on(cloud):
    """Return the groups on each back end."""
    return {
        name: cloud.driver(name).group_inventory()
        for name in cloud.backend_names
        if cloud.driver(name).group_inventory()
    }


def backend_of(cloud, group):
    host = share_groups.show(cloud.api, group)['host']
    return host.partition('#')[0].partition('@')[2]


def messages(cloud, group):
    return [
        (one['resource_type'], one['action_id'])
        for one in cloud.api.get(f'/messages?resource_id={group}')['messages']
    ]


# Create


def test_group_is_created_on_the_back_end_it_is_placed_on(cloud, group):
    assert groups_on(cloud) == {backend_of(cloud, group): {group}}
    assert cloud.usage('share_groups') == (1, 0)
    cloud.check_invariants()


def test_group_that_its_driver_does_not_create_is_in_error(cloud):
    type_id = share_groups.create_type(cloud.api)
    for name in cloud.backend_names:
        cloud.driver(name).fail_next('create_share_group')
    answer = share_groups.request(cloud.api, type_id)
    group = answer.json['share_group']['id']
    cloud.settle()
    assert share_groups.show(cloud.api, group)['status'] == 'error'
    assert messages(cloud, group) == [('SHARE_GROUP', '002')]
    share_groups.delete(cloud.api, group)
    cloud.settle()
    share_groups.check_gone(cloud.api, group)
    assert groups_on(cloud) == {}
    assert cloud.usage('share_groups') == (0, 0)
    cloud.check_invariants()


def test_group_that_no_pool_can_have_is_in_error_without_a_host(cloud):
    type_id = share_groups.create_type(cloud.api, consistent_snapshot_support='pool')
    answer = share_groups.request(cloud.api, type_id)
    group = answer.json['share_group']['id']
    cloud.settle()
    shown = share_groups.show(cloud.api, group)
    assert (shown['status'], shown['host']) == ('error', None)
    assert messages(cloud, group) == [('SHARE_GROUP', '001')]
    share_groups.delete(cloud.api, group)
    share_groups.check_gone(cloud.api, group)
    cloud.check_invariants()


def test_group_needs_the_consistency_that_its_type_demands(build_cloud):
    cloud = build_cloud(
        backends=['alpha', 'beta'],
        backend_conf='dummy_driver_consistent_snapshots = host\n',
    )
    for wanted, status in (('host', 'available'), ('pool', 'error')):
        type_id = share_groups.create_type(
            cloud.api, wanted, consistent_snapshot_support=wanted
        )
        answer = share_groups.request(cloud.api, type_id)
        group = answer.json['share_group']['id']
        cloud.settle()
        shown = share_groups.show(cloud.api, group)
        assert shown['status'] == status
        assert shown['consistent_snapshot_support'] == wanted


def test_unknown_consistency_of_a_type_is_refused_when_it_is_used(cloud):
    type_id = share_groups.create_type(cloud.api, consistent_snapshot_support='fake')
    refused = share_groups.request(cloud.api, type_id, expect=400)
    assert 'consistent_snapshot_support' in refused.text
    assert cloud.usage('share_groups') == (0, 0)


@pytest.fixture
def other(cloud):
    """Return the id of a share type that only one back end has."""
    return cloud.api.request(
        'POST',
        '/types',
        {
            'share_type': {
                'name': 'only beta',
                'extra_specs': {
                    'driver_handles_share_servers': 'False',
                    'share_backend_name': 'beta',
                },
            }
        },
        expect=200,
    ).json['share_type']['id']


@pytest.mark.facts('share_types_query')
def test_groups_are_listed_by_their_share_types(cloud, other):
    type_id = share_groups.create_type(cloud.api, share_types=[TYPE_ID, other])
    both, first, second = (
        share_groups.create(cloud, type_id, share_types=types)
        for types in ([TYPE_ID, other], [TYPE_ID], [other])
    )
    for query, wanted in (
        (TYPE_ID, {both, first}),
        (other, {both, second}),
        (f'{TYPE_ID},{other}', {both}),
        (f"['{other}', '{TYPE_ID}']", {both}),
        (str(uuid.uuid4()), set()),
        (f'{other},{uuid.uuid4()}', set()),
    ):
        for path in ('/share-groups', '/share-groups/detail'):
            listed = cloud.api.get(f'{path}?share_types={query}')
            found = [one['id'] for one in listed['share_groups']]
            assert (set(found), len(found)) == (wanted, len(wanted)), query
    for query in ('', ',', '[]', ','.join(['x'] * 21)):
        cloud.api.get(f'/share-groups?share_types={query}', expect=400)


@pytest.mark.facts('share-groups.1')
def test_share_joins_a_group_at_its_creation_only(cloud, group):
    share = cloud.create_share()
    member = cloud.create_share(share_group_id=group)
    for id, values in (
        (share, {'share_group_id': group}),
        (member, {'share_group_id': None}),
    ):
        cloud.api.request('PUT', f'/shares/{id}', {'share': values})
    assert cloud.api.show(share)['share_group_id'] is None
    assert cloud.api.show(member)['share_group_id'] == group


def test_group_is_placed_where_all_its_share_types_fit(cloud, other):
    type_id = share_groups.create_type(cloud.api, share_types=[TYPE_ID, other])
    for _ in range(3):
        group = share_groups.create(cloud, type_id, share_types=[TYPE_ID, other])
        assert backend_of(cloud, group) == 'beta'


def test_driver_without_groups_has_groups(build_cloud):
    cloud = build_cloud(backends=['alpha'])
    driver = cloud.share.backends[0].endpoints.share_groups
    driver.driver = object()
    group = share_groups.create(cloud)
    share_groups.delete(cloud.api, group)
    cloud.settle()
    share_groups.check_gone(cloud.api, group)


# Refusals


@pytest.mark.parametrize(
    'body, code, text',
    [
        ({'share_types': ['7fa1342b-de9d-4d89-bdc8-af67795c0e52']}, 400,
         'there is no share type'),
        ({'availability_zone': 'nowhere'}, 404, 'nowhere'),
        ({'share_network_id': 'net'}, 400, 'share_network_id'),
        ({'availability_zone': 'nowhere', 'share_network_id': 'net'}, 404,
         'nowhere'),
        ({'source_share_group_snapshot_id': 'snap'}, 400,
         'source_share_group_snapshot_id'),
        ({'colour': 'red'}, 400, 'colour'),
    ],
)  # fmt: skip
def test_request_that_names_what_cannot_be_is_refused(cloud, body, code, text):
    type_id = share_groups.create_type(cloud.api)
    answer = share_groups.request(cloud.api, type_id, expect=code, **body)
    assert text in str(answer.json)
    assert cloud.usage('share_groups') == (0, 0)


def test_share_types_must_be_those_of_the_group_type(cloud):
    cloud.api.request(
        'POST',
        '/types',
        {
            'share_type': {
                'name': 'another',
                'extra_specs': {'driver_handles_share_servers': 'False'},
            }
        },
        expect=200,
    )
    type_id = share_groups.create_type(cloud.api, share_types=['another'])
    answer = share_groups.request(cloud.api, type_id, expect=400)
    assert 'not one of those of share group type' in str(answer.json)


def test_quota_limits_the_share_groups(cloud):
    cloud.api.request(
        'PUT', '/quota-sets/project', {'quota_set': {'share_groups': 1}}, expect=200
    )
    group = share_groups.create(cloud)
    type_id = share_groups.show(cloud.api, group)['share_group_type_id']
    answer = share_groups.request(cloud.api, type_id, expect=413)
    assert 'share groups' in str(answer.json)


def test_group_type_of_a_group_is_in_use(cloud, group):
    type_id = share_groups.show(cloud.api, group)['share_group_type_id']
    path = f'{share_groups.TYPES}/{type_id}'
    cloud.api.request('DELETE', path, expect=400)
    cloud.api.request('DELETE', f'/types/{TYPE_ID}', expect=400)
    share_groups.delete(cloud.api, group)
    cloud.settle()
    cloud.api.request('DELETE', path, expect=204)


def test_other_projects_do_not_find_a_group(cloud, group):
    another = share_transfers.client_of(cloud, 'another')
    share_groups.check_gone(another, group)
    share_groups.delete(another, group, expect=404)
    assert another.get('/share-groups')['share_groups'] == []
    another.request(
        'POST',
        '/shares',
        {'share': {'share_proto': 'NFS', 'size': 1, 'share_group_id': group}},
        expect=404,
    )


# Shares in groups


def test_share_is_placed_with_its_group(cloud, group):
    for _ in range(3):
        share = cloud.create_share(share_group_id=group)
        shown = cloud.api.show(share)
        assert shown['share_group_id'] == group
        assert f'@{backend_of(cloud, group)}#' in shown['host']
    cloud.check_invariants()


def test_shares_are_in_the_pool_of_a_group_that_is_consistent_in_pools(build_cloud):
    cloud = build_cloud(
        backends=['alpha'],
        backend_conf=POOLS + 'dummy_driver_consistent_snapshots = pool\n',
    )
    type_id = share_groups.create_type(cloud.api, consistent_snapshot_support='pool')
    group = share_groups.create(cloud, type_id)
    host = share_groups.show(cloud.api, group)['host']
    for _ in range(4):
        share = cloud.create_share(share_group_id=group)
        assert cloud.api.show(share)['host'] == host


@pytest.mark.parametrize('support, code', [('pool', 400), ('host', 200)])
def test_snapshot_must_be_where_the_group_is_consistent(build_cloud, support, code):
    cloud = build_cloud(
        backends=['alpha'],
        backend_conf=POOLS + f'dummy_driver_consistent_snapshots = {support}\n',
    )
    cloud_snapshots.enable_snapshot_features(cloud)
    type_id = share_groups.create_type(cloud.api, consistent_snapshot_support=support)
    group = share_groups.create(cloud, type_id)
    pool = share_groups.show(cloud.api, group)['host']
    by_pool = {}
    for _ in range(4):
        share = cloud.create_share()
        by_pool[cloud.api.show(share)['host']] = share
    same, elsewhere = by_pool.pop(pool), *by_pool.values()
    for share, expect in ((same, 200), (elsewhere, code)):
        snapshot = cloud_snapshots.create_available(cloud, share)
        cloud.api.create(snapshot_id=snapshot, share_group_id=group, expect=expect)
    cloud.settle()
    cloud.check_invariants()


@pytest.mark.parametrize('status', ['creating', 'error', 'deleting'])
def test_group_that_is_not_available_gets_no_shares(cloud, group, status):
    share_groups.act(cloud.api, group, 'reset_status', {'status': status})
    cloud.api.create(share_group_id=group, expect=400)
    assert cloud.usage('shares') == (0, 0)


def test_group_without_a_host_gets_no_shares_and_no_snapshots(cloud):
    type_id = share_groups.create_type(cloud.api, consistent_snapshot_support='pool')
    answer = share_groups.request(cloud.api, type_id)
    group = answer.json['share_group']['id']
    cloud.settle()
    share_groups.act(cloud.api, group, 'reset_status', {'status': 'available'})
    cloud.api.create(share_group_id=group, expect=400)
    answer = share_groups.request_snapshot(cloud.api, group, expect=409)
    assert 'not on a back end' in str(answer.json)


def test_group_type_must_demand_a_known_consistency(cloud):
    type_id = share_groups.create_type(cloud.api, consistent_snapshot_support='Pool')
    answer = share_groups.request(cloud.api, type_id, expect=400)
    assert 'must be one of: pool, host' in str(answer.json)


def test_function_of_a_driver_judges_shares_and_not_groups(build_cloud):
    cloud = build_cloud(
        backends=['alpha'],
        backend_conf='filter_function = share.share_proto == "NFS"\n',
    )
    group = share_groups.create(cloud)
    cloud.create_share(share_group_id=group)


def test_share_of_another_type_does_not_join_a_group(cloud, group):
    cloud.api.request(
        'POST',
        '/types',
        {
            'share_type': {
                'name': 'another',
                'extra_specs': {'driver_handles_share_servers': 'False'},
            }
        },
        expect=200,
    )
    cloud.api.create(share_group_id=group, share_type='another', expect=400)


def test_share_in_a_group_is_deleted_by_those_who_name_the_group(cloud, group):
    share = cloud.create_share(share_group_id=group)
    cloud.api.delete(share, expect=400)
    cloud.api.request('DELETE', f'/shares/{share}?share_group_id={group}')
    cloud.settle()
    cloud.api.request('GET', f'/shares/{share}', expect=404)


# Delete


def test_group_with_shares_is_not_deleted(cloud, group):
    cloud.create_share(share_group_id=group)
    answer = share_groups.delete(cloud.api, group, expect=409)
    assert 'has shares' in str(answer.json)
    assert share_groups.show(cloud.api, group)['status'] == 'available'


def test_group_that_its_driver_does_not_delete_can_be_deleted_again(cloud, group):
    cloud.driver(backend_of(cloud, group)).fail_next('delete_share_group')
    share_groups.delete(cloud.api, group)
    cloud.settle()
    assert share_groups.show(cloud.api, group)['status'] == 'error'
    assert messages(cloud, group) == [('SHARE_GROUP', '007')]
    share_groups.delete(cloud.api, group)
    cloud.settle()
    share_groups.check_gone(cloud.api, group)
    assert groups_on(cloud) == {}


@pytest.mark.facts('force_delete')
def test_shares_of_a_group_deleted_by_force_stay_without_it(cloud, group):
    share = cloud.create_share(share_group_id=group)
    share_groups.act(cloud.api, group, 'force_delete')
    share_groups.check_gone(cloud.api, group)
    assert cloud.api.show(share)['share_group_id'] is None
    assert cloud.usage('share_groups') == (0, 0)
    cloud.api.delete(share)
    cloud.settle()
    cloud.api.request('GET', f'/shares/{share}', expect=404)


def test_group_deleted_by_force_while_it_is_created_leaves_nothing(cloud):
    type_id = share_groups.create_type(cloud.api)
    answer = share_groups.request(cloud.api, type_id)
    group = answer.json['share_group']['id']
    share_groups.act(cloud.api, group, 'force_delete')
    cloud.settle()
    share_groups.check_gone(cloud.api, group)
    assert groups_on(cloud) == {}
    cloud.check_invariants()


# Lost work


def test_group_whose_work_was_lost_is_what_the_back_end_says(cloud, group):
    cloud.api.request(
        'POST', f'/share-groups/{group}/action',
        {'reset_status': {'status': 'creating'}}, expect=202,
    )  # fmt: skip
    cloud.restart()
    cloud.settle()
    assert share_groups.show(cloud.api, group)['status'] == 'available'
    stuck = cloud.db.read(recovery.list_stuck, 'share_group', None, most=1)
    assert stuck == []


@pytest.mark.parametrize('status, end', [('creating', 'error'), ('deleting', None)])
def test_group_without_a_host_and_without_work_is_ended(cloud, status, end):
    type_id = share_groups.create_type(cloud.api, consistent_snapshot_support='pool')
    answer = share_groups.request(cloud.api, type_id)
    group = answer.json['share_group']['id']
    cloud.settle()
    share_groups.act(cloud.api, group, 'reset_status', {'status': status})
    cloud.settle()
    if end is None:
        share_groups.check_gone(cloud.api, group)
    else:
        assert share_groups.show(cloud.api, group)['status'] == end
    cloud.check_invariants()


def test_two_creations_of_a_group_at_once_are_one(cloud: Cloud):
    """The hint of the work is delivered twice."""
    cloud.duplicate_rate = 1
    group = share_groups.create(cloud)
    assert sum(map(len, groups_on(cloud).values())) == 1
    share_groups.delete(cloud.api, group)
    cloud.settle()
    assert groups_on(cloud) == {}
