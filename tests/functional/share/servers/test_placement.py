"""Share servers: built on demand and reused."""

import pytest

from manila_lite.db.transitions import fire
from manila_lite.states.share_server import SHARE_SERVER
from tests.functional.share.servers.server_calls import set_up
from tests.support import cloud_snapshots
from tests.support.dhss import ADMIN_NETWORK

# Build and reuse


@pytest.mark.facts('fix-neutron-plugin')
def test_first_share_on_a_network_builds_a_server(cloud):
    share = cloud.create_share_on_network(cloud.add_network())
    (server,) = cloud.servers()
    assert cloud.server_of(share) == server.id
    assert (server.status, server.host) == ('active', 'node@alpha')
    assert server.identifier == f'dummy-{server.id}'
    assert cloud.addresses() == {server.id: {'10.10.0.2'}}
    export = cloud.api.get(f'/shares/{share}/export_locations')['export_locations'][0]
    assert export['path'].startswith('10.10.0.2:')


@pytest.mark.facts('share-network-with-multiple-subnets.3')
def test_subnet_without_a_zone_is_for_every_zone(build_cloud):
    cloud = build_cloud(backend_conf='backend_availability_zone = special')
    network = cloud.add_network()
    (subnet,) = cloud.api.get(f'/share-networks/{network}/subnets')[
        'share_network_subnets'
    ]
    assert subnet['availability_zone'] is None
    share = cloud.create_share_on_network(network)
    assert cloud.api.show(share)['availability_zone'] == 'special'
    shown = cloud.api.get(f'/share-servers/{cloud.server_of(share)}')
    assert shown['share_server']['share_network_subnet_ids'] == [subnet['id']]


def test_reported_details_of_a_server_are_stored(cloud):
    cloud.create_share_on_network(cloud.add_network())
    (server,) = cloud.servers()
    assert cloud.api.get(f'/share-servers/{server.id}/details') == {
        'details': {
            'server_id': server.id,
            'identifier': f'dummy-{server.id}',
            'primary_public_ip': '10.10.0.2',
            'service_ip': '',
        }
    }


@pytest.mark.facts('LP1978962')
def test_only_active_servers_are_used_again(cloud):
    network = cloud.add_network()
    used = set()
    for status in ('error', 'deleting', 'inactive'):
        server = cloud.server_of(cloud.create_share_on_network(network))
        assert server not in used
        used.add(server)
        cloud.db.write(reset_server, server, status)
    for server in used:
        cloud.db.write(reset_server, server, 'active')
    share = cloud.create_share_on_network(network)
    assert cloud.server_of(share) in used


def reset_server(session, server_id, status):
    event = SHARE_SERVER.reset_event(status)
    fire(session, SHARE_SERVER, server_id, event)


@pytest.mark.facts('share-servers.3')
def test_deleted_server_is_built_again_with_the_next_share(build_cloud):
    cloud = build_cloud(prepared=False)  # a driver that counts calls
    network = cloud.add_network()
    share = cloud.create_share_on_network(network)
    first = cloud.server_of(share)
    cloud.api.delete(share)
    cloud.settle()
    cloud.api.request('DELETE', f'/share-servers/{first}', expect=202)
    cloud.settle()
    assert cloud.servers() == []
    share = cloud.create_share_on_network(network)
    (server,) = cloud.servers()
    assert cloud.server_of(share) == server.id != first
    assert set_up(cloud) == 2


def test_next_share_uses_the_existing_server(build_cloud):
    cloud = build_cloud(prepared=False)  # a driver that counts calls
    network = cloud.add_network()
    servers = {
        cloud.server_of(cloud.create_share_on_network(network)) for _ in range(3)
    }
    assert len(servers) == len(cloud.servers()) == 1
    assert set_up(cloud) == 1


def test_networks_have_their_own_servers(cloud):
    shares = [cloud.create_share_on_network(cloud.add_network()) for _ in range(2)]
    assert len({cloud.server_of(share) for share in shares}) == 2


def test_server_has_addresses_in_every_subnet_of_its_zone(build_cloud):
    cloud = build_cloud(backend_conf='dummy_driver_network_allocations = 2')
    network = cloud.add_network('nova')
    cloud.add_subnet(network, 'nova')
    cloud.create_share_on_network(network)
    (server,) = cloud.servers()
    assert len(cloud.addresses()[server.id]) == 4


def test_admin_network_gets_its_own_addresses(build_cloud):
    cloud = build_cloud(
        extra_conf=ADMIN_NETWORK,
        backend_conf="""
dummy_driver_admin_network_allocations = 1
admin_network_config_group = admin_network
""",
    )
    cloud.create_share_on_network(cloud.add_network())
    assert list(cloud.addresses().values()) == [{'10.10.0.2', '10.99.0.2'}]


def test_server_is_built_if_the_driver_rejects_all_candidates(cloud):
    network = cloud.add_network()
    cloud.create_share_on_network(network)
    cloud.driver().restrict_servers(lambda server, share: False)
    cloud.create_share_on_network(network)
    assert len(cloud.servers()) == 2


@pytest.mark.facts(
    'add-share-server-limits.1',
    'add-share-server-limits.2',
    'add-share-server-limits.3',
)
@pytest.mark.parametrize(
    'limit, servers',
    [('max_shares_per_share_server = 2', 2), ('max_share_server_size = 3', 4), ('', 1)],
)
def test_server_limits_are_respected(build_cloud, limit, servers):
    cloud = build_cloud(backend_conf=limit)
    network = cloud.add_network()
    for _ in range(4):
        cloud.create_share_on_network(network, size=2)
    assert len(cloud.servers()) == servers


@pytest.mark.facts('add-share-server-limits.2')
def test_snapshots_count_towards_the_size_of_a_server(build_cloud):
    cloud = build_cloud(backend_conf='max_share_server_size = 3')
    cloud_snapshots.enable_snapshot_features(cloud)
    network = cloud.add_network()
    first = cloud.create_share_on_network(network)
    cloud_snapshots.create_available(cloud, first)
    second, third = (cloud.create_share_on_network(network) for _ in range(2))
    assert cloud.server_of(first) == cloud.server_of(second)
    assert cloud.server_of(third) != cloud.server_of(first)


def test_share_larger_than_the_server_limit_gets_its_own_server(build_cloud):
    cloud = build_cloud(backend_conf='max_share_server_size = 3')
    network = cloud.add_network()
    large = cloud.create_share_on_network(network, size=5)
    small = cloud.create_share_on_network(network, size=1)
    assert cloud.server_of(large) != cloud.server_of(small)


# Growth on a server


@pytest.fixture
def limited(build_cloud):
    return build_cloud(backend_conf='max_share_server_size = 4')


def status_and_size(cloud, *shares):
    found = [cloud.api.get(f'/shares/{share}')['share'] for share in shares]
    return [(share['status'], share['size']) for share in found]


def test_share_alone_on_its_server_grows_beyond_the_server_limit(limited):
    share = limited.create_share_on_network(limited.add_network())
    limited.api.act(share, 'extend', {'new_size': 6})
    limited.settle()
    assert status_and_size(limited, share) == [('available', 6)]


@pytest.mark.parametrize('force', [False, True])
def test_extension_past_the_server_limit_is_refused(limited, force):
    network = limited.add_network()
    shares = [limited.create_share_on_network(network) for _ in range(2)]
    limited.api.act(shares[0], 'extend', {'new_size': 4, 'force': force})
    limited.settle()
    assert status_and_size(limited, *shares) == [('available', 1)] * 2
    assert limited.usage('gigabytes') == (2, 0)
    (message,) = limited.api.get('/messages')['messages']
    assert (message['action_id'], message['detail_id']) == ('008', '009')
    assert 'max_share_server_size limits' in message['user_message']
    limited.api.act(shares[0], 'extend', {'new_size': 3})
    limited.settle()
    assert status_and_size(limited, shares[0]) == [('available', 3)]


def test_concurrent_extensions_keep_the_server_limit(limited):
    network = limited.add_network()
    shares = [limited.create_share_on_network(network) for _ in range(2)]
    competing_runners = limited.competing_runners()

    def another():
        limited.api.act(shares[1], 'extend', {'new_size': 3})
        for _ in range(10):
            for runner in competing_runners:
                runner.step()

    limited.pause_at('before extend_share', another)
    limited.api.act(shares[0], 'extend', {'new_size': 3})
    limited.settle()
    assert not limited.pending_pauses
    assert status_and_size(limited, *shares) == [('available', 3), ('available', 1)]


def test_share_is_not_put_on_a_server_that_is_being_filled(limited):
    network = limited.add_network()
    shares = [limited.create_share_on_network(network) for _ in range(2)]
    competing_runners = limited.competing_runners()

    def another():
        shares.append(limited.api.create(share_network_id=network)['id'])
        for _ in range(10):
            for runner in competing_runners:
                runner.step()

    limited.pause_at('before extend_share', another)
    limited.api.act(shares[0], 'extend', {'new_size': 3})
    limited.settle()
    assert not limited.pending_pauses
    servers = [limited.server_of(share) for share in shares]
    assert servers[0] == servers[1] != servers[2]


def test_clone_is_placed_on_the_server_of_the_snapshot(cloud):
    cloud_snapshots.enable_snapshot_features(cloud)
    network = cloud.add_network()
    parent = cloud.create_share_on_network(network, size=1)
    snapshot = cloud_snapshots.create_available(cloud, parent)
    # There is another server that would be preferred.
    cloud.driver().restrict_servers(lambda server, share: False)
    for _ in range(2):
        cloud.create_share_on_network(network)
        cloud.driver().restrict_servers(None)
    share = cloud.create_share_on_network(network, snapshot_id=snapshot)
    assert cloud.server_of(share) == cloud.server_of(parent)


@pytest.mark.facts('LP1918845')
@pytest.mark.parametrize(
    'limit', ['max_shares_per_share_server = 1', 'max_share_server_size = 1']
)
def test_clone_is_on_the_server_of_the_snapshot_beyond_limits(build_cloud, limit):
    cloud = build_cloud(backend_conf=limit)
    cloud_snapshots.enable_snapshot_features(cloud)
    network = cloud.add_network()
    parent = cloud.create_share_on_network(network, size=1)
    snapshot = cloud_snapshots.create_available(cloud, parent)
    share = cloud.create_share_on_network(network, snapshot_id=snapshot)
    assert cloud.server_of(share) == cloud.server_of(parent)
    other = cloud.create_share_on_network(network)
    assert cloud.server_of(other) != cloud.server_of(parent)


# Concurrent builds


@pytest.mark.facts('LP1978962')
def test_two_concurrent_first_shares_build_one_server(cloud):
    network = cloud.add_network()
    competing_runners = cloud.competing_runners()

    def another():
        cloud.api.create(share_network_id=network)
        for _ in range(10):
            for runner in competing_runners:
                runner.step()

    cloud.pause_at('before setup_server', another)
    shares = [cloud.api.create(share_network_id=network)['id']]
    cloud.settle()
    shares = [share['id'] for share in cloud.api.get('/shares')['shares']]
    assert len(shares) == 2
    assert len({cloud.server_of(share) for share in shares}) == 1
    assert set_up(cloud) == 1


def test_work_waiting_for_a_failed_build_builds_another_server(cloud):
    network = cloud.add_network()
    competing_runners = cloud.competing_runners()
    cloud.driver().fail_next('_setup_server')

    def another():
        cloud.api.create(share_network_id=network, name='second')
        for _ in range(10):
            for runner in competing_runners:
                runner.step()

    cloud.pause_at('before setup_server', another)
    cloud.api.create(share_network_id=network, name='first')
    cloud.settle()
    found = {
        share['name']: share['status']
        for share in cloud.api.get('/shares/detail')['shares']
    }
    assert found == {'first': 'error', 'second': 'available'}
    assert [server.status for server in cloud.servers()] == ['error', 'active']


def test_server_that_fills_up_during_the_choice_is_not_overfilled(build_cloud):
    cloud = build_cloud(backend_conf='max_shares_per_share_server = 2')
    network = cloud.add_network()
    cloud.create_share_on_network(network)
    competing_runners = cloud.competing_runners()

    def another():
        cloud.api.create(share_network_id=network)
        for _ in range(10):
            for runner in competing_runners:
                runner.step()

    cloud.pause_at('after choose_share_server_compatible_with_share', another)
    cloud.api.create(share_network_id=network)
    cloud.settle()
    counts = {}
    for share in cloud.api.get('/shares')['shares']:
        server = cloud.server_of(share['id'])
        counts[server] = counts.get(server, 0) + 1
    assert sorted(counts.values()) == [1, 2]


def test_server_built_after_the_choice_is_used(build_cloud):
    """It is built completely while another build is about to begin."""
    cloud = build_cloud(backend_conf='max_shares_per_share_server = 2')
    network = cloud.add_network()
    unfit = cloud.server_of(cloud.create_share_on_network(network))
    cloud.driver().restrict_servers(lambda server, share: server['id'] != unfit)
    competing_runners = cloud.competing_runners()

    def others():
        for _ in range(2):  # one fills the existing server, the other needs a new one
            cloud.api.create(share_network_id=network)
            for _ in range(10):
                for runner in competing_runners:
                    runner.step()
        assert len(cloud.servers()) == 2

    cloud.pause_at('after choose_share_server_compatible_with_share', others)
    cloud.api.create(share_network_id=network)
    cloud.settle()
    assert len(cloud.servers()) == 2
