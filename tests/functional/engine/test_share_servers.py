"""Share servers: built on demand, reused, removed."""

import datetime

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import services
from tests.support import cloud_snapshots
from tests.support import databases
from tests.support.cloud import Cloud
from tests.support.cloud import Crash
from tests.support.dhss import ADMIN_NETWORK
from tests.support.dhss import INSTANCE
from tests.support.dhss import ShareServersCloud

MESSAGE = services.Message.__table__
MINUTES = 60


@pytest.fixture
def build_cloud(build_cloud):
    """Build a cloud with one back end, whose invariants are checked."""
    built = []

    def build(*args, **options):
        built.append(
            build_cloud(
                *args, kind=ShareServersCloud, backends=['alpha'], **options
            )
        )
        return built[-1]

    yield build
    for cloud in built:
        cloud.check_invariants()


@pytest.fixture
def cloud(build_cloud):
    return build_cloud()


def details(cloud):
    """Return the detail of every user message, oldest first."""
    return [
        row.detail_id
        for row in cloud.db.read(
            lambda session: session.rows(
                sa.select(MESSAGE).order_by(MESSAGE.c.created_at)
            )
        )
    ]


def set_up(cloud):
    """Return how often a server was set up."""
    return [call.method for call in cloud.driver().calls].count(
        '_setup_server'
    )


def delete_idle(cloud, minutes=10):
    cloud.clock.advance(minutes * MINUTES + 1)
    cloud.share.backends[0].endpoints.share_servers.delete_idle(
        datetime.timedelta(minutes=minutes)
    )
    cloud.settle()


# Build and reuse


def test_first_share_on_a_network_builds_a_server(cloud):
    share = cloud.create_share_on_network(cloud.add_network())
    (server,) = cloud.servers()
    assert cloud.server_of(share) == server.id
    assert (server.status, server.host) == ('active', 'node@alpha')
    assert server.identifier == f'dummy-{server.id}'
    assert cloud.addresses() == {server.id: {'10.10.0.2'}}
    export = cloud.api.get(f'/shares/{share}/export_locations')[
        'export_locations'
    ][0]
    assert export['path'].startswith('10.10.0.2:')


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


def test_next_share_uses_the_existing_server(cloud):
    network = cloud.add_network()
    servers = {
        cloud.server_of(cloud.create_share_on_network(network))
        for _ in range(3)
    }
    assert len(servers) == len(cloud.servers()) == 1
    assert set_up(cloud) == 1


def test_networks_have_their_own_servers(cloud):
    shares = [
        cloud.create_share_on_network(cloud.add_network()) for _ in range(2)
    ]
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


@pytest.mark.parametrize(
    'limit, servers',
    [
        ('max_shares_per_share_server = 2', 2),
        ('max_share_server_size = 3', 4),
        ('', 1),
    ],
)
def test_server_limits_are_respected(build_cloud, limit, servers):
    cloud = build_cloud(backend_conf=limit)
    network = cloud.add_network()
    for _ in range(4):
        cloud.create_share_on_network(network, size=2)
    assert len(cloud.servers()) == servers


def test_share_larger_than_the_server_limit_gets_its_own_server(build_cloud):
    cloud = build_cloud(backend_conf='max_share_server_size = 3')
    network = cloud.add_network()
    large = cloud.create_share_on_network(network, size=5)
    small = cloud.create_share_on_network(network, size=1)
    assert cloud.server_of(large) != cloud.server_of(small)


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


# Concurrent builds


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
    cloud.driver().restrict_servers(
        lambda server, share: server['id'] != unfit
    )
    competing_runners = cloud.competing_runners()

    def others():
        for _ in range(
            2
        ):  # one fills the existing server, the other needs a new one
            cloud.api.create(share_network_id=network)
            for _ in range(10):
                for runner in competing_runners:
                    runner.step()
        assert len(cloud.servers()) == 2

    cloud.pause_at('after choose_share_server_compatible_with_share', others)
    cloud.api.create(share_network_id=network)
    cloud.settle()
    assert len(cloud.servers()) == 2


# Failures


@pytest.mark.parametrize(
    'order', ['fail_next', 'half_fail_next', 'lose_reply_next']
)
def test_failed_build_leaves_the_server_in_error(cloud, order):
    getattr(cloud.driver(), order)('_setup_server')
    share = cloud.api.create(share_network_id=cloud.add_network())['id']
    cloud.settle()
    assert cloud.api.show(share)['status'] == 'error'
    (server,) = cloud.servers()
    assert (server.status, server.build_key) == ('error', None)
    assert cloud.addresses() == {}
    assert details(cloud) == ['004']  # no share server
    # Its deletion removes whatever exists of it.
    cloud.api.delete(share)
    cloud.settle()
    cloud.api.request('DELETE', f'/share-servers/{server.id}', expect=202)
    cloud.settle()
    assert cloud.servers() == []
    assert cloud.driver().server_inventory() == {}


def test_server_details_in_an_error_are_stored(cloud):
    error = exception.ShareBackendException(msg='no')
    error.detail_data = {'server_details': {'vserver': 'half'}}
    cloud.driver().faults.fail_next('_setup_server', error=error)
    cloud.api.create(share_network_id=cloud.add_network())
    cloud.settle()
    (server,) = cloud.servers()
    assert cloud.api.get(f'/share-servers/{server.id}/details') == {
        'details': {'vserver': 'half'}
    }


def test_user_is_notified_of_a_full_subnet(build_cloud):
    cloud = build_cloud(
        backend_conf='standalone_network_plugin_allowed_ip_ranges = 10.10.0.7'
    )
    cloud.create_share_on_network(cloud.add_network())
    second = cloud.api.create(share_network_id=cloud.add_network())['id']
    cloud.settle()
    assert cloud.api.show(second)['status'] == 'error'
    assert details(cloud) == ['033']
    assert sum(map(len, cloud.addresses().values())) == 1


def test_transient_error_is_retried_with_the_same_server(cloud):
    cloud.driver().faults.fail_next(
        '_setup_server', error=exception.ServiceUnavailable()
    )
    cloud.create_share_on_network(cloud.add_network())
    assert len(cloud.servers()) == 1
    assert set_up(cloud) == 2


def test_failed_share_leaves_its_server_to_others(cloud):
    network = cloud.add_network()
    cloud.driver().fail_next('create_share')
    share = cloud.api.create(share_network_id=network)['id']
    cloud.settle()
    assert cloud.api.show(share)['status'] == 'error'
    other = cloud.create_share_on_network(network)
    assert cloud.server_of(share) == cloud.server_of(other)


def test_server_with_a_lost_build_keeps_its_addresses(cloud):
    """The back end may have it, so its addresses are not reused."""

    def die():
        raise Crash('the process ends')

    network = cloud.add_network()
    cloud.pause_at('after setup_server', die)
    share = cloud.api.create(share_network_id=network)['id']
    with pytest.raises(Crash):
        cloud.settle()
    cloud.restart()
    cloud.settle()
    assert cloud.api.show(share)['status'] == 'error'
    (broken,) = cloud.servers()
    assert broken.status == 'error'
    cloud.create_share_on_network(network)
    given = cloud.addresses()
    assert len(given) == 2
    assert given[broken.id] == {'10.10.0.2'}
    cloud.api.delete(share)
    cloud.settle()
    cloud.api.request('DELETE', f'/share-servers/{broken.id}', expect=202)
    cloud.settle()
    assert broken.id not in cloud.addresses()


# Removal


def test_server_stays_after_its_last_share_by_default(cloud):
    share = cloud.create_share_on_network(cloud.add_network())
    cloud.api.delete(share)
    cloud.settle()
    (server,) = cloud.servers()
    assert server.status == 'active'
    assert server.idle_since is not None


def test_server_is_deleted_with_its_last_share_if_configured(build_cloud):
    cloud = build_cloud(
        extra_conf='delete_share_server_with_last_share = true'
    )
    network = cloud.add_network()
    shares = [cloud.create_share_on_network(network) for _ in range(2)]
    cloud.api.delete(shares[0])
    cloud.settle()
    assert len(cloud.servers()) == 1
    cloud.api.delete(shares[1])
    cloud.settle()
    assert cloud.servers() == []
    assert cloud.addresses() == {}
    assert cloud.driver().server_inventory() == {}


def test_idle_server_is_deleted_after_the_interval(cloud):
    network = cloud.add_network()
    used = cloud.create_share_on_network(cloud.add_network())
    cloud.api.delete(cloud.create_share_on_network(network))
    cloud.settle()
    delete_idle(cloud)
    assert [server.id for server in cloud.servers()] == [cloud.server_of(used)]
    assert len(cloud.addresses()) == 1


def test_server_idle_for_a_short_time_is_kept(cloud):
    cloud.api.delete(cloud.create_share_on_network(cloud.add_network()))
    cloud.settle()
    cloud.clock.advance(9 * MINUTES)
    cloud.share.backends[0].endpoints.share_servers.delete_idle(
        datetime.timedelta(minutes=10)
    )
    cloud.settle()
    assert len(cloud.servers()) == 1


def test_server_with_unmanaged_shares_is_kept(cloud):
    share = cloud.create_share_on_network(cloud.add_network())
    cloud.api.act(share, 'unmanage')
    cloud.settle()
    delete_idle(cloud)
    (server,) = cloud.servers()
    assert not server.is_auto_deletable


def test_server_in_use_again_is_kept(cloud):
    network = cloud.add_network()
    cloud.api.delete(cloud.create_share_on_network(network))
    cloud.settle()
    share = cloud.create_share_on_network(network)
    delete_idle(cloud)
    assert [server.id for server in cloud.servers()] == [
        cloud.server_of(share)
    ]


@pytest.mark.parametrize('kept', [True, False])
def test_teardown_gets_the_security_services_of_the_network(cloud, kept):
    """Also when the network is deleted, as long as the services exist."""
    network = cloud.add_network()
    service = cloud.api.request(
        'POST',
        '/security-services',
        {'security_service': {'type': 'ldap', 'user': 'me'}},
        expect=200,
    ).json['security_service']['id']
    cloud.api.request(
        'POST',
        f'/share-networks/{network}/action',
        {'add_security_service': {'security_service_id': service}},
        expect=200,
    )
    cloud.api.delete(cloud.create_share_on_network(network))
    cloud.settle()
    reported, driver = [], cloud.driver()
    teardown = driver.teardown_server

    def note(details, security_services):
        reported.extend(
            (one['type'], one['user']) for one in security_services
        )
        teardown(details, security_services=security_services)

    driver.teardown_server = note
    cloud.api.request('DELETE', f'/share-networks/{network}', expect=202)
    if not kept:
        cloud.api.request(
            'DELETE', f'/security-services/{service}', expect=202
        )
    cloud.settle()
    assert reported == ([('ldap', 'me')] if kept else [])
    assert cloud.servers() == []


def test_failed_teardown_puts_the_server_into_error(cloud):
    cloud.api.delete(cloud.create_share_on_network(cloud.add_network()))
    cloud.settle()
    (server,) = cloud.servers()
    cloud.driver().fail_next('_teardown_server')
    cloud.api.request('DELETE', f'/share-servers/{server.id}', expect=202)
    cloud.settle()
    assert cloud.servers()[0].status == 'error'
    assert len(cloud.addresses()) == 1
    cloud.api.request('DELETE', f'/share-servers/{server.id}', expect=202)
    cloud.settle()
    assert cloud.servers() == []


def test_server_reset_to_deleting_with_shares_is_kept(cloud):
    share = cloud.create_share_on_network(cloud.add_network())
    server = cloud.server_of(share)
    cloud.api.request(
        'POST',
        f'/share-servers/{server}/action',
        {'reset_status': {'status': 'deleting'}},
        expect=202,
    )
    cloud.settle()
    assert cloud.servers()[0].status == 'error'
    assert cloud.driver().server_inventory()
    cloud.api.request(
        'POST',
        f'/share-servers/{server}/action',
        {'reset_status': {'status': 'active'}},
        expect=202,
    )


# Manage and unmanage


def manage(cloud, network, identifier, **extra_conf):
    answer = cloud.api.request(
        'POST',
        '/share-servers/manage',
        {
            'share_server': {
                'host': 'node@alpha',
                'share_network_id': network,
                'identifier': identifier,
                **extra_conf,
            }
        },
        expect=202,
    )
    cloud.settle()
    return answer.json['share_server']['id']


def test_server_is_managed_with_its_addresses(cloud):
    network = cloud.add_network()
    identifier = cloud.driver().add_unmanaged_server('theirs', ['10.10.0.50'])
    server_id = manage(cloud, network, identifier)
    (server,) = cloud.servers()
    assert (server.id, server.status) == (server_id, 'active')
    assert server.identifier == 'theirs'
    assert not server.is_auto_deletable
    assert server.network_allocation_update_support
    assert cloud.addresses() == {server_id: {'10.10.0.50'}}
    share = cloud.create_share_on_network(network)
    assert cloud.server_of(share) == server_id


@pytest.mark.parametrize(
    'identifier, addresses', [('nowhere', None), ('theirs', ['192.0.2.1'])]
)
def test_server_that_does_not_fit_its_network_is_not_managed(
    cloud, identifier, addresses
):
    if addresses:
        cloud.driver().add_unmanaged_server(identifier, addresses)
    server_id = manage(cloud, cloud.add_network(), identifier)
    assert cloud.servers()[0].status == 'manage_error'
    assert cloud.addresses() == {}
    cloud.api.request(
        'POST',
        f'/share-servers/{server_id}/action',
        {'unmanage': {'force': True}},
        expect=202,
    )
    cloud.settle()
    assert cloud.servers() == []


def test_unmanaged_server_releases_its_addresses(cloud):
    cloud.api.delete(cloud.create_share_on_network(cloud.add_network()))
    cloud.settle()
    (server,) = cloud.servers()
    cloud.api.request(
        'POST',
        f'/share-servers/{server.id}/action',
        {'unmanage': {'force': False}},
        expect=202,
    )
    cloud.settle()
    assert cloud.servers() == []
    assert cloud.addresses() == {}
    again = manage(cloud, cloud.add_network(), server.identifier)
    assert cloud.addresses() == {again: {'10.10.0.2'}}


@pytest.mark.parametrize(
    'force, status', [(False, 'unmanage_error'), (True, None)]
)
def test_driver_without_unmanage_support_requires_force(cloud, force, status):
    cloud.api.delete(cloud.create_share_on_network(cloud.add_network()))
    cloud.settle()
    (server,) = cloud.servers()
    cloud.driver().faults.fail_next(
        'unmanage_server', error=NotImplementedError()
    )
    cloud.api.request(
        'POST',
        f'/share-servers/{server.id}/action',
        {'unmanage': {'force': force}},
        expect=202,
    )
    cloud.settle()
    assert [row.status for row in cloud.servers()] == (
        [status] if status else []
    )
    if force:  # it still exists, but is no longer managed, as requested
        cloud.driver().backend.state.servers.drop(server.id)


# Arguments of drivers, reports for schedulers


def test_every_driver_method_gets_the_share_server(cloud):
    reported = {}
    driver = cloud.driver()

    def note(name, found):
        def call(*args, **kwargs):
            reported.setdefault(name, []).append(
                kwargs.get('share_server', args[-1] if args else None)
            )
            return found(*args, **kwargs)

        return call

    for name in (
        'create_share',
        'delete_share',
        'extend_share',
        'shrink_share',
        'create_snapshot',
        'delete_snapshot',
        'revert_to_snapshot',
        'create_share_from_snapshot',
        'update_access',
        'snapshot_update_access',
        'unmanage_with_server',
        'manage_existing_with_server',
    ):
        setattr(
            driver._driver if hasattr(driver, '_driver') else driver,
            name,
            note(name, getattr(driver, name)),
        )
    cloud_snapshots.enable_snapshot_features(cloud)
    network = cloud.add_network()
    share = cloud.create_share_on_network(network, size=2)
    rule = {'access_type': 'ip', 'access_to': '10.0.0.1'}
    cloud.api.act(share, 'allow_access', rule | {'access_level': 'rw'}, None)
    cloud.settle()
    snapshot = cloud_snapshots.create_available(cloud, share)
    cloud_snapshots.act(cloud, snapshot, 'allow_access', rule)
    cloud.settle()
    cloud.api.act(share, 'revert', {'snapshot_id': snapshot})
    cloud.settle()
    copy = cloud.create_share_on_network(network, snapshot_id=snapshot, size=2)
    cloud_snapshots.delete(cloud, snapshot)
    cloud.settle()
    for action, size in (('extend', 3), ('shrink', 1)):
        cloud.api.act(share, action, {'new_size': size})
        cloud.settle()
    (server,) = cloud.servers()
    path = cloud.api.get(f'/shares/{copy}/export_locations')[
        'export_locations'
    ][0]['path']
    cloud.api.act(copy, 'unmanage')
    cloud.settle()
    cloud.api.request(
        'POST',
        '/shares/manage',
        {
            'share': {
                'protocol': 'NFS',
                'export_path': path,
                'service_host': 'node@alpha#pool',
                'share_server_id': server.id,
            }
        },
        expect=200,
    )
    cloud.settle()
    cloud.api.delete(share)
    cloud.settle()
    assert len(reported) == 12
    for name, servers in reported.items():
        for one in servers:
            assert one['id'] == server.id, name
            assert one['backend_details']['server_id'] == server.id
            assert [
                given['ip_address'] for given in one['network_allocations']
            ] == ['10.10.0.2']


def test_reports_contain_servers_and_their_limits(build_cloud):
    cloud = build_cloud(
        backend_conf='max_shares_per_share_server = 7\n'
        'max_share_server_size = 70'
    )
    share = cloud.create_share_on_network(cloud.add_network())
    cloud.share.backends[0].report()
    (pool,) = cloud.api.get('/scheduler-stats/pools/detail')['pools']
    reported = pool['capabilities']
    assert reported['driver_handles_share_servers'] is True
    assert reported['max_shares_per_share_server'] == 7
    assert reported['max_share_server_size'] == 70
    assert reported['share_server_multiple_subnet_support'] is True
    assert reported['security_service_update_support'] is True
    assert reported['network_allocation_update_support'] is True
    assert reported['ipv4_support'] is True
    assert reported['server_pools_mapping'] == {
        cloud.server_of(share): [{'pool_name': 'pool'}]
    }


def test_ip_versions_are_limited_to_those_of_the_network(build_cloud):
    cloud = build_cloud(
        backend_conf="""
network_plugin_ipv4_enabled = false
network_plugin_ipv6_enabled = true
standalone_network_plugin_gateway = fd00::1
standalone_network_plugin_mask = 64
"""
    )
    cloud.settle()
    (pool,) = cloud.api.get('/scheduler-stats/pools/detail')['pools']
    assert pool['capabilities']['ipv4_support'] is False


# Inconsistent configuration


def test_share_on_a_network_requires_a_dhss_driver(tmp_path):
    cloud = Cloud(tmp_path, backends=['alpha'])
    network = cloud.api.request(
        'POST', '/share-networks', {'share_network': {}}, expect=200
    ).json['share_network']['id']
    share = cloud.api.create()['id']
    # As if the back end had been reconfigured since it was chosen.
    cloud.db.write(
        lambda session: session.run(
            sa.update(INSTANCE).values(share_network_id=network)
        )
    )
    cloud.settle()
    assert cloud.api.show(share)['status'] == 'error'
    assert details(cloud) == ['003']
    cloud.db.dispose()


def test_back_end_with_invalid_network_options_does_not_start(tmp_path):
    with pytest.raises(
        exception.NetworkBadConfigurationException,
        match=r'section \[alpha\].*mask is not a mask: 99',
    ):
        ShareServersCloud(
            tmp_path,
            backends=['alpha'],
            backend_conf='standalone_network_plugin_mask = 99',
        )


# Every database


@pytest.mark.parametrize('kind', ['mysql', 'postgresql'])
def test_server_lifecycle_on_every_database(tmp_path, kind):
    with databases.temporary_database(kind, tmp_path) as url:
        cloud = ShareServersCloud(tmp_path, backends=['alpha'], url=url)
        network = cloud.add_network()
        shares = [cloud.create_share_on_network(network) for _ in range(2)]
        other = cloud.api.create(share_network_id=cloud.add_network())['id']
        cloud.driver().fail_next('_setup_server')
        cloud.settle()
        cloud.check_invariants()
        assert sorted(server.status for server in cloud.servers()) == [
            'active',
            'error',
        ]
        for share in (*shares, other):
            cloud.api.delete(share)
        cloud.settle()
        delete_idle(cloud)
        cloud.check_invariants()
        assert [server.status for server in cloud.servers()] == ['error']
        cloud.api.request(
            'DELETE', f'/share-servers/{cloud.servers()[0].id}', expect=202
        )
        cloud.settle()
        cloud.driver().add_unmanaged_server('theirs', ['10.10.0.50'])
        server = manage(cloud, network, 'theirs')
        assert cloud.addresses() == {server: {'10.10.0.50'}}
        cloud.check_invariants()
        cloud.db.dispose()
