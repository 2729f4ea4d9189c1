"""Share groups on share networks: their servers and those of their shares."""

from functools import partial

import pytest

from manila_lite.db.queries.services import services
from tests.functional.share.servers import server_calls
from tests.support import cloud_snapshots, sampling, share_groups, share_transfers
from tests.support.cloud import TYPE_ID
from tests.support.cloud_images import prepared
from tests.support.concurrent_calls import status_codes
from tests.support.dhss import ShareServersCloud

NOWHERE = '7fa1342b-de9d-4d89-bdc8-af67795c0e52'


@pytest.fixture
def cloud(cloud):
    cloud.settle()
    return cloud


@pytest.fixture
def network(cloud):
    return cloud.add_network()


@pytest.fixture
def group(cloud, network):
    return share_groups.create(cloud, share_network_id=network)


def server_of_group(cloud, group):
    return share_groups.show(cloud.api, group)['share_server_id']


def request(cloud, expect=202, **body):
    """Request a group of a type of its own; return the response."""
    name = f'type {cloud.rng.random()}'
    type_id = share_groups.create_type(cloud.api, name)
    return share_groups.request(cloud.api, type_id, expect, **body)


def request_share(cloud, group, expect=None, **body):
    body = {'share_proto': 'NFS', 'size': 1, 'share_group_id': group, **body}
    return cloud.api.request('POST', '/shares', {'share': body}, expect=expect)


def server_request(cloud, server, action=None, args=None, expect=None):
    """Delete a server, or request an action on it."""
    path = f'/share-servers/{server}'
    if action is None:
        return cloud.api.request('DELETE', path, expect=expect)
    return cloud.api.request('POST', f'{path}/action', {action: args}, expect=expect)


# Create


def test_group_on_a_network_gets_a_share_server(cloud, network, group):
    shown = share_groups.show(cloud.api, group)
    (server,) = cloud.servers()
    assert shown['share_network_id'] == network
    assert shown['share_server_id'] == server.id
    assert server.status == 'active'
    assert server_calls.set_up(cloud) == 1


def test_only_administrators_see_the_server_of_a_group(cloud, group):
    tenant = share_transfers.client_of(cloud, 'project')
    shown = share_groups.show(tenant, group)
    assert shown['share_network_id']
    assert 'share_server_id' not in shown


def test_group_uses_a_server_that_exists(cloud, network):
    server = cloud.server_of(cloud.create_share_on_network(network))
    group = share_groups.create(cloud, share_network_id=network)
    assert server_of_group(cloud, group) == server
    assert server_calls.set_up(cloud) == 1


def test_server_is_built_if_the_driver_rejects_all_for_a_group(cloud, network):
    server = cloud.server_of(cloud.create_share_on_network(network))
    cloud.driver().restrict_servers(lambda server, group: False)
    group = share_groups.create(cloud, share_network_id=network)
    assert server_of_group(cloud, group) != server


@pytest.mark.parametrize(
    'limit', ['max_shares_per_share_server = 1', 'max_share_server_size = 1']
)
def test_group_is_not_put_on_a_server_without_room(build_cloud, limit):
    cloud = build_cloud(backend_conf=limit)
    network = cloud.add_network()
    server = cloud.server_of(cloud.create_share_on_network(network))
    group = share_groups.create(cloud, share_network_id=network)
    assert server_of_group(cloud, group) != server
    share = cloud.create_share(share_group_id=group)
    assert cloud.server_of(share) == server_of_group(cloud, group)


def test_group_and_share_created_at_once_share_a_server(cloud, network):
    competing_runners = cloud.competing_runners()

    def another():
        cloud.api.create(share_network_id=network)
        for _ in range(10):
            for runner in competing_runners:
                runner.step()

    cloud.pause_at('before setup_server', another)
    request(cloud, share_network_id=network)
    cloud.settle()
    assert not cloud.pending_pauses
    (server,) = cloud.servers()
    (share,) = cloud.api.get('/shares')['shares']
    (group,) = cloud.api.get('/share-groups')['share_groups']
    assert cloud.server_of(share['id']) == server.id
    assert server_of_group(cloud, group['id']) == server.id


def test_group_whose_server_fails_is_in_error_with_the_server(cloud, network):
    cloud.driver().fail_next('_setup_server')
    group = request(cloud, share_network_id=network).json['share_group']['id']
    cloud.settle()
    shown = share_groups.show(cloud.api, group)
    (server,) = cloud.servers()
    assert (shown['status'], server.status) == ('error', 'error')
    assert shown['share_server_id'] == server.id
    assert cloud.addresses() == {}
    (message,) = cloud.api.get('/messages')['messages']
    assert (message['resource_type'], message['resource_id']) == ('SHARE_GROUP', group)
    server_request(cloud, server.id, expect=409)
    share_groups.delete(cloud.api, group)
    cloud.settle()
    share_groups.check_gone(cloud.api, group)
    server_request(cloud, server.id, expect=202)
    cloud.settle()
    assert cloud.servers() == []


def test_group_that_its_driver_does_not_create_stays_on_its_server(cloud, network):
    cloud.driver().fail_next('create_share_group')
    group = request(cloud, share_network_id=network).json['share_group']['id']
    cloud.settle()
    assert share_groups.show(cloud.api, group)['status'] == 'error'
    assert [one.status for one in cloud.servers()] == ['active']
    share_groups.delete(cloud.api, group)
    cloud.settle()
    server_calls.delete_idle(cloud)
    assert cloud.servers() == []


def test_group_in_a_zone_is_on_the_subnet_of_the_zone(cloud):
    network = cloud.add_network('nova')
    group = share_groups.create(
        cloud, share_network_id=network, availability_zone='nova'
    )
    assert server_of_group(cloud, group)


# Requests that are refused


def test_type_with_servers_requires_a_network(cloud):
    answer = request(cloud, expect=400)
    assert 'share_network_id is required' in str(answer.json)
    assert cloud.usage('share_groups') == (0, 0)


def test_type_without_servers_refuses_a_network(build_cloud):
    cloud = build_cloud()
    network = cloud.add_network()
    cloud.settle()
    cloud.api.request(
        'POST',
        f'/types/{TYPE_ID}/extra_specs',
        {'extra_specs': {'driver_handles_share_servers': 'False'}},
    )
    answer = request(cloud, expect=400, share_network_id=network)
    assert 'share_network_id cannot be used' in str(answer.json)


def test_types_with_and_without_servers_are_not_in_one_group(cloud, network):
    body = {
        'share_type': {
            'name': 'plain',
            'extra_specs': {'driver_handles_share_servers': 'False'},
        }
    }
    answer = cloud.api.request('POST', '/types', body, expect=200)
    both = [TYPE_ID, answer.json['share_type']['id']]
    type_id = share_groups.create_type(cloud.api, share_types=both)
    for on_network in ({}, {'share_network_id': network}):
        answer = share_groups.request(
            cloud.api, type_id, 400, share_types=both, **on_network
        )
        assert 'must be the same' in str(answer.json)


def test_unknown_network_is_a_bad_request(cloud):
    answer = request(cloud, expect=400, share_network_id=NOWHERE)
    assert f'share_network_id: Share network {NOWHERE}' in str(answer.json)


def test_network_of_another_project_is_as_unknown(cloud):
    another = share_transfers.client_of(cloud, 'another')
    network = cloud.add_network()
    type_id = share_groups.create_type(cloud.api)
    share_groups.request(another, type_id, 400, share_network_id=network)


def test_network_that_is_not_active_is_refused(cloud, network):
    cloud.api.request(
        'POST',
        f'/share-networks/{network}/action',
        {'reset_status': {'status': 'error'}},
        expect=202,
    )
    answer = request(cloud, expect=400, share_network_id=network)
    assert 'must be active' in str(answer.json)


def test_network_without_a_subnet_for_the_zone_is_refused(cloud):
    cloud.db.write(services.get_or_create_zone_id, 'elsewhere')
    network = cloud.add_network('elsewhere')
    answer = request(
        cloud, expect=400, share_network_id=network, availability_zone='nova'
    )
    assert 'has no subnet for nova' in str(answer.json)


# Shares in the group


def test_shares_of_a_group_are_on_its_network_and_server(cloud, network, group):
    server = server_of_group(cloud, group)
    # There is another server that would be preferred.
    cloud.driver().restrict_servers(lambda server, share: False)
    for _ in range(2):
        cloud.create_share_on_network(network)
        cloud.driver().restrict_servers(None)
    for body in ({}, {'share_network_id': network}):
        share = cloud.create_share(share_group_id=group, **body)
        assert cloud.api.show(share)['share_network_id'] == network
        assert cloud.server_of(share) == server


def test_another_network_than_that_of_the_group_is_refused(cloud, group):
    other = cloud.add_network()
    answer = request_share(cloud, group, 400, share_network_id=other)
    assert 'share_network_id' in str(answer.json)
    assert cloud.usage('shares') == (0, 0)


def test_share_that_the_server_of_its_group_cannot_take_is_in_error(build_cloud):
    cloud = build_cloud(backend_conf='max_shares_per_share_server = 1')
    group = share_groups.create(cloud, share_network_id=cloud.add_network())
    cloud.create_share(share_group_id=group)
    request_share(cloud, group, 200)
    cloud.settle()
    statuses = [one['status'] for one in cloud.api.get('/shares/detail')['shares']]
    assert sorted(statuses) == ['available', 'error']
    assert len(cloud.servers()) == 1
    assert server_calls.details(cloud)


def test_share_that_the_driver_puts_on_no_server_of_its_group_is_in_error(cloud, group):
    cloud.driver().restrict_servers(lambda server, share: False)
    share = request_share(cloud, group, 200).json['share']['id']
    cloud.settle()
    assert cloud.api.show(share)['status'] == 'error'
    assert len(cloud.servers()) == 1


def test_clone_on_another_server_does_not_join_the_group(cloud, network):
    cloud_snapshots.enable_snapshot_features(cloud)
    parent = cloud.create_share_on_network(network)
    snapshot = cloud_snapshots.create_available(cloud, parent)
    same = share_groups.create(cloud, share_network_id=network)
    cloud.driver().restrict_servers(lambda server, group: False)
    type_id = share_groups.create_type(cloud.api, 'other')
    other = share_groups.create(cloud, type_id, share_network_id=network)
    cloud.driver().restrict_servers(None)
    answer = request_share(cloud, other, 400, snapshot_id=snapshot)
    assert 'not on the share server' in str(answer.json)
    clone = request_share(cloud, same, 200, snapshot_id=snapshot)
    cloud.settle()
    clone = clone.json['share']['id']
    assert cloud.server_of(clone) == server_of_group(cloud, same)


def test_clone_on_another_network_does_not_join_the_group(cloud, group):
    cloud_snapshots.enable_snapshot_features(cloud)
    parent = cloud.create_share_on_network(cloud.add_network())
    snapshot = cloud_snapshots.create_available(cloud, parent)
    answer = request_share(cloud, group, 400, snapshot_id=snapshot)
    assert 'snapshot_id' in str(answer.json)


# Snapshots and copies


@pytest.fixture
@prepared
def snapshot(cloud, group):
    cloud_snapshots.enable_snapshot_features(cloud)
    for _ in range(2):
        cloud.create_share(share_group_id=group)
    return share_groups.take_snapshot(cloud, group)


def test_drivers_are_given_the_server_with_a_group_and_its_snapshots(build_cloud):
    cloud = build_cloud(
        backend_conf='share_driver = tests.support.recording_driver.RecordingDriver\n',
        prepared=False,
    )
    cloud_snapshots.enable_snapshot_features(cloud)
    group = share_groups.create(cloud, share_network_id=cloud.add_network())
    server = server_of_group(cloud, group)
    share = cloud.create_share(share_group_id=group)
    snapshot = share_groups.take_snapshot(cloud, group)
    share_groups.delete_snapshot(cloud.api, snapshot)
    cloud.settle()
    cloud.api.request('DELETE', f'/shares/{share}?share_group_id={group}')
    cloud.settle()
    share_groups.delete(cloud.api, group)
    cloud.settle()
    recorded = dict(cloud.driver().recorded)
    for method in (
        'create_share_group',
        'create_share_group_snapshot',
        'delete_share_group_snapshot',
        'delete_share_group',
    ):
        assert recorded[method]['share_server']['id'] == server, method
    choice = recorded['choose_share_server_compatible_with_share']
    assert choice['share_group']['id'] == group
    metadata = recorded['setup_server']['kwargs']['metadata']
    assert metadata['request_host'].startswith('node@alpha#')


def test_share_with_a_key_of_its_server_does_not_join_a_group(cloud, group):
    cloud.api.request(
        'POST',
        f'/types/{TYPE_ID}/extra_specs',
        {'extra_specs': {'encryption_support': 'share_server'}},
        expect=200,
    )
    answer = request_share(cloud, group, 400, encryption_key_ref=NOWHERE)
    assert 'encryption_key_ref' in str(answer.json)


@pytest.mark.facts('fix-cg-from-snapshot')
def test_group_from_a_snapshot_is_on_the_network_and_server_of_its_source(
    cloud, network, group, snapshot
):
    cloud.driver().restrict_servers(lambda server, share: False)
    cloud.create_share_on_network(network)
    cloud.driver().restrict_servers(None)
    answer = share_groups.request_copy(cloud.api, snapshot, share_network_id=network)
    copy = answer.json['share_group']['id']
    cloud.settle()
    source, shown = (share_groups.show(cloud.api, id) for id in (group, copy))
    assert shown['status'] == 'available'
    for key in ('share_network_id', 'share_server_id'):
        assert shown[key] == source[key]
    listed = cloud.api.get(f'/shares/detail?share_group_id={copy}')['shares']
    assert [one['share_network_id'] for one in listed] == [network] * 2
    assert {one['status'] for one in listed} == {'available'}
    for one in listed:
        assert cloud.server_of(one['id']) == source['share_server_id']


def test_another_network_than_that_of_the_snapshot_is_refused(cloud, snapshot):
    other = cloud.add_network()
    answer = share_groups.request_copy(cloud.api, snapshot, 400, share_network_id=other)
    assert 'share_network_id' in str(answer.json)


def test_group_is_not_copied_on_a_network_that_is_not_active(cloud, network, snapshot):
    cloud.api.request(
        'POST',
        f'/share-networks/{network}/action',
        {'reset_status': {'status': 'error'}},
        expect=202,
    )
    answer = share_groups.request_copy(cloud.api, snapshot, 400)
    assert 'must be active' in str(answer.json)


# The server while it has a group


def test_server_with_a_group_is_not_idle(cloud, group):
    server_calls.delete_idle(cloud)
    assert share_groups.show(cloud.api, group)['share_server_id']
    assert [one.status for one in cloud.servers()] == ['active']


def test_server_is_idle_when_its_group_is_deleted(cloud, group):
    share_groups.delete(cloud.api, group)
    cloud.settle()
    (server,) = cloud.servers()
    assert server.idle_since is not None
    server_calls.delete_idle(cloud)
    assert cloud.servers() == []


def test_server_of_a_group_that_is_deleted_by_force_becomes_idle(cloud, group):
    share_groups.act(cloud.api, group, 'force_delete')
    cloud.settle()
    for _ in range(2):  # it is found, and then has been idle long enough
        server_calls.delete_idle(cloud)
    assert cloud.servers() == []


def test_server_is_deleted_with_its_last_group_if_configured(build_cloud):
    cloud = build_cloud('delete_share_server_with_last_share = true')
    group = share_groups.create(cloud, share_network_id=cloud.add_network())
    share_groups.delete(cloud.api, group)
    cloud.settle()
    assert cloud.servers() == []


def test_server_with_a_group_is_neither_deleted_nor_unmanaged(cloud, group):
    server = server_of_group(cloud, group)
    answer = server_request(cloud, server, expect=409)
    assert 'share groups' in str(answer.json)
    server_request(cloud, server, 'unmanage', {'force': False}, expect=400)
    assert [one.status for one in cloud.servers()] == ['active']


def test_managed_server_takes_groups_and_is_unmanaged_without(cloud, network):
    cloud.driver().add_unmanaged_server('theirs', ['10.10.0.77'])
    server = server_calls.manage(cloud, network, 'theirs')
    group = share_groups.create(cloud, share_network_id=network)
    assert server_of_group(cloud, group) == server
    server_request(cloud, server, 'unmanage', {'force': False}, expect=400)
    share_groups.delete(cloud.api, group)
    cloud.settle()
    server_calls.delete_idle(cloud)
    assert [one.id for one in cloud.servers()] == [server]
    server_request(cloud, server, 'unmanage', {'force': False}, expect=202)
    cloud.settle()
    assert cloud.servers() == []


@pytest.mark.facts('LP2004212', 'share-networks.2')
def test_network_and_subnet_of_a_group_are_not_deleted(cloud, network, group):
    path = f'/share-networks/{network}'
    answer = cloud.api.request('DELETE', path, expect=409)
    assert 'share groups' in str(answer.json)
    shown = cloud.api.get(path)['share_network']
    (subnet,) = shown['share_network_subnets']
    answer = cloud.api.request('DELETE', f'{path}/subnets/{subnet["id"]}', expect=409)
    assert 'share groups' in str(answer.json)
    share_groups.delete(cloud.api, group)
    cloud.settle()
    cloud.api.request('DELETE', path, expect=202)
    cloud.settle()
    assert cloud.servers() == []


def test_network_is_not_changed_while_a_group_is_created_on_it(cloud, network, group):
    type_id = share_groups.show(cloud.api, group)['share_group_type_id']
    refused = []

    def change():
        answer = cloud.api.request(
            'POST',
            f'/share-networks/{network}/action',
            {'share_network_subnet_create_check': {}},
        )
        refused.append(answer)

    cloud.pause_at('before create_share_group', change)
    share_groups.request(cloud.api, type_id, share_network_id=network)
    cloud.settle()
    (answer,) = refused
    assert 'creating' in str(answer.json), answer


def test_server_with_a_group_is_not_migrated(build_cloud):
    cloud = build_cloud(kind=ShareServersCloud, backends=['alpha', 'beta'])
    network = cloud.add_network()
    group = share_groups.create(cloud, share_network_id=network)
    server = server_of_group(cloud, group)
    host = share_groups.show(cloud.api, group)['host']
    share = cloud.create_share_on_network(network, scheduler_hints={'only_host': host})
    assert cloud.server_of(share) == server
    other = next(f'node@{name}' for name in ('alpha', 'beta') if name not in host)
    options = {
        'host': other,
        'writable': False,
        'nondisruptive': False,
        'preserve_snapshots': True,
    }
    for action in ('migration_check', 'migration_start'):
        answer = server_request(cloud, server, action, options, 409)
        assert 'has share groups' in str(answer.json)


# Lists


def test_groups_are_listed_by_network_and_server(cloud, network, group):
    other = share_groups.create(
        cloud,
        share_groups.create_type(cloud.api, 'other'),
        share_network_id=cloud.add_network(),
    )
    server = server_of_group(cloud, other)
    for query, wanted in (
        (f'share_network_id={network}', [group]),
        (f'share_network={network}', [group]),
        (f'share_server_id={server}', [other]),
        (f'share_network_id={network}&share_server_id={server}', []),
    ):
        for path in ('/share-groups', '/share-groups/detail'):
            listed = cloud.api.get(f'{path}?{query}')['share_groups']
            assert [one['id'] for one in listed] == wanted, query


# Races


@pytest.fixture
def shared_cloud(build_cloud, database_url):
    return build_cloud(kind=ShareServersCloud, url=database_url, backends=['alpha'])


@sampling.dialects
def test_either_network_deletion_or_group_creation_is_accepted(shared_cloud):
    cloud = shared_cloud
    type_id = share_groups.create_type(cloud.api)
    for number in range(6):
        cloud.rng.seed(f'network of groups {number}')
        network = cloud.add_network()
        codes = status_codes(
            partial(
                share_groups.request, cloud.api, type_id, None, share_network_id=network
            ),
            partial(cloud.api.request, 'DELETE', f'/share-networks/{network}'),
            rng=cloud.rng,
        )
        assert tuple(codes) in [(202, 409), (400, 202)]
    cloud.settle()
    cloud.check_invariants()


@sampling.dialects
def test_group_is_never_put_on_a_server_that_is_removed(shared_cloud):
    cloud = shared_cloud
    type_id = share_groups.create_type(cloud.api)
    for number in range(6):
        cloud.rng.seed(f'server of groups {number}')
        network = cloud.add_network()
        share = cloud.create_share_on_network(network)
        server = cloud.server_of(share)
        cloud.api.delete(share)
        cloud.settle()
        share_groups.request(cloud.api, type_id, share_network_id=network)

        status_codes(
            lambda: cloud.settle() or cloud.api.request('GET', '/shares'),
            partial(server_request, cloud, server),
            rng=cloud.rng,
        )
        cloud.settle()
        cloud.check_invariants()
    groups = cloud.api.get('/share-groups/detail')['share_groups']
    assert {one['status'] for one in groups} == {'available'}
