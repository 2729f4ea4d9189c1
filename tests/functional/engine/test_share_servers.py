"""Share servers: made when a share needs one, used again, removed."""

import datetime

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import services
from tests.support import cloud_snapshots as album
from tests.support import databases
from tests.support.cloud import Cloud
from tests.support.cloud import Crash
from tests.support.dhss import ADMIN_NETWORK
from tests.support.dhss import INSTANCE
from tests.support.dhss import ShareServersCloud

MESSAGE = services.Message.__table__
MINUTES = 60


@pytest.fixture
def begin(tmp_path):
    """Makes clouds with one back end, and checks them at the end."""
    made = []

    def begin(**given):
        made.append(ShareServersCloud(tmp_path, backends=['alpha'], **given))
        return made[-1]

    yield begin
    for cloud in made:
        cloud.check_invariants()
        cloud.db.dispose()


@pytest.fixture
def cloud(begin):
    return begin()


def details(cloud):
    """Of every user message, oldest first."""
    return [
        row.detail_id
        for row in cloud.db.read(
            lambda session: session.rows(
                sa.select(MESSAGE).order_by(MESSAGE.c.created_at)
            )
        )
    ]


def set_up(cloud):
    """How often a server was set up."""
    return [call.method for call in cloud.driver().calls].count(
        '_setup_server'
    )


def delete_idle(cloud, minutes=10):
    cloud.clock.advance(minutes * MINUTES + 1)
    cloud.share.backends[0].endpoints.share_servers.delete_idle(
        datetime.timedelta(minutes=minutes)
    )
    cloud.settle()


# Made and used again


def test_the_first_share_on_a_network_has_a_server_made(cloud):
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


def test_what_the_driver_answers_of_a_server_is_remembered(cloud):
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


def test_the_next_share_is_put_on_the_server_that_is_there(cloud):
    network = cloud.add_network()
    servers = {
        cloud.server_of(cloud.create_share_on_network(network))
        for _ in range(3)
    }
    assert len(servers) == len(cloud.servers()) == 1
    assert set_up(cloud) == 1


def test_networks_have_servers_of_their_own(cloud):
    shares = [
        cloud.create_share_on_network(cloud.add_network()) for _ in range(2)
    ]
    assert len({cloud.server_of(share) for share in shares}) == 2


def test_a_server_has_addresses_in_every_subnet_of_its_zone(begin):
    cloud = begin(backend_conf='dummy_driver_network_allocations = 2')
    network = cloud.add_network('nova')
    cloud.add_subnet(network, 'nova')
    cloud.create_share_on_network(network)
    (server,) = cloud.servers()
    assert len(cloud.addresses()[server.id]) == 4


def test_administrators_have_a_network_of_their_own(begin):
    cloud = begin(
        extra_conf=ADMIN_NETWORK,
        backend_conf="""
dummy_driver_admin_network_allocations = 1
admin_network_config_group = admin_network
""",
    )
    cloud.create_share_on_network(cloud.add_network())
    assert list(cloud.addresses().values()) == [{'10.10.0.2', '10.99.0.2'}]


def test_a_driver_that_finds_no_server_fit_gets_another(cloud):
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
def test_a_server_takes_as_much_as_its_limits_say(begin, limit, servers):
    cloud = begin(backend_conf=limit)
    network = cloud.add_network()
    for _ in range(4):
        cloud.create_share_on_network(network, size=2)
    assert len(cloud.servers()) == servers


def test_a_share_larger_than_a_server_may_be_has_one_for_itself(begin):
    cloud = begin(backend_conf='max_share_server_size = 3')
    network = cloud.add_network()
    large = cloud.create_share_on_network(network, size=5)
    small = cloud.create_share_on_network(network, size=1)
    assert cloud.server_of(large) != cloud.server_of(small)


def test_a_share_of_a_snapshot_is_on_the_server_of_the_snapshot(cloud):
    album.enable_snapshot_features(cloud)
    network = cloud.add_network()
    parent = cloud.create_share_on_network(network, size=1)
    snapshot = album.create_available(cloud, parent)
    # There is another that would be taken rather.
    cloud.driver().restrict_servers(lambda server, share: False)
    for _ in range(2):
        cloud.create_share_on_network(network)
        cloud.driver().restrict_servers(None)
    share = cloud.create_share_on_network(network, snapshot_id=snapshot)
    assert cloud.server_of(share) == cloud.server_of(parent)


# Two at once


def test_of_two_first_shares_one_makes_the_server_for_both(cloud):
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


def test_who_waits_for_a_server_that_fails_makes_one_himself(cloud):
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


def test_a_server_that_fills_up_meanwhile_is_not_overfilled(begin):
    cloud = begin(backend_conf='max_shares_per_share_server = 2')
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


def test_a_server_that_comes_after_the_choice_is_chosen_too(begin):
    """Made from its beginning to its end, while one is about to begin."""
    cloud = begin(backend_conf='max_shares_per_share_server = 2')
    network = cloud.add_network()
    unfit = cloud.server_of(cloud.create_share_on_network(network))
    cloud.driver().restrict_servers(
        lambda server, share: server['id'] != unfit
    )
    competing_runners = cloud.competing_runners()

    def others():
        for _ in range(2):  # one fills what is there, one needs another
            cloud.api.create(share_network_id=network)
            for _ in range(10):
                for runner in competing_runners:
                    runner.step()
        assert len(cloud.servers()) == 2

    cloud.pause_at('after choose_share_server_compatible_with_share', others)
    cloud.api.create(share_network_id=network)
    cloud.settle()
    assert len(cloud.servers()) == 2


# What goes wrong


@pytest.mark.parametrize(
    'order', ['fail_next', 'half_fail_next', 'lose_reply_next']
)
def test_a_server_that_cannot_be_made_is_visibly_in_error(cloud, order):
    getattr(cloud.driver(), order)('_setup_server')
    share = cloud.api.create(share_network_id=cloud.add_network())['id']
    cloud.settle()
    assert cloud.api.show(share)['status'] == 'error'
    (server,) = cloud.servers()
    assert (server.status, server.build_key) == ('error', None)
    assert cloud.addresses() == {}
    assert details(cloud) == ['004']  # no share server
    # All there is of it goes when it is deleted.
    cloud.api.delete(share)
    cloud.settle()
    cloud.api.request('DELETE', f'/share-servers/{server.id}', expect=202)
    cloud.settle()
    assert cloud.servers() == []
    assert cloud.driver().server_inventory() == {}


def test_what_an_error_tells_of_a_server_is_remembered(cloud):
    error = exception.ShareBackendException(msg='no')
    error.detail_data = {'server_details': {'vserver': 'half'}}
    cloud.driver().faults.fail_next('_setup_server', error=error)
    cloud.api.create(share_network_id=cloud.add_network())
    cloud.settle()
    (server,) = cloud.servers()
    assert cloud.api.get(f'/share-servers/{server.id}/details') == {
        'details': {'vserver': 'half'}
    }


def test_a_network_without_free_addresses_is_told_as_such(begin):
    cloud = begin(
        backend_conf='standalone_network_plugin_allowed_ip_ranges = 10.10.0.7'
    )
    cloud.create_share_on_network(cloud.add_network())
    second = cloud.api.create(share_network_id=cloud.add_network())['id']
    cloud.settle()
    assert cloud.api.show(second)['status'] == 'error'
    assert details(cloud) == ['033']
    assert sum(map(len, cloud.addresses().values())) == 1


def test_trouble_that_passes_is_tried_again_with_the_same_server(cloud):
    cloud.driver().faults.fail_next(
        '_setup_server', error=exception.ServiceUnavailable()
    )
    cloud.create_share_on_network(cloud.add_network())
    assert len(cloud.servers()) == 1
    assert set_up(cloud) == 2


def test_a_share_that_fails_leaves_its_server_to_others(cloud):
    network = cloud.add_network()
    cloud.driver().fail_next('create_share')
    share = cloud.api.create(share_network_id=network)['id']
    cloud.settle()
    assert cloud.api.show(share)['status'] == 'error'
    other = cloud.create_share_on_network(network)
    assert cloud.server_of(share) == cloud.server_of(other)


def test_a_server_whose_making_was_cut_short_keeps_its_addresses(cloud):
    """The back end may have it, so nobody else is given them."""

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


# The end of a server


def test_a_server_stays_when_its_last_share_goes(cloud):
    share = cloud.create_share_on_network(cloud.add_network())
    cloud.api.delete(share)
    cloud.settle()
    (server,) = cloud.servers()
    assert server.status == 'active'
    assert server.idle_since is not None


def test_a_server_goes_with_its_last_share_where_so_configured(begin):
    cloud = begin(extra_conf='delete_share_server_with_last_share = true')
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


def test_what_nothing_has_been_on_for_a_while_is_cleaned_up(cloud):
    network = cloud.add_network()
    used = cloud.create_share_on_network(cloud.add_network())
    cloud.api.delete(cloud.create_share_on_network(network))
    cloud.settle()
    delete_idle(cloud)
    assert [server.id for server in cloud.servers()] == [cloud.server_of(used)]
    assert len(cloud.addresses()) == 1


def test_what_was_idle_for_a_short_while_only_is_not(cloud):
    cloud.api.delete(cloud.create_share_on_network(cloud.add_network()))
    cloud.settle()
    cloud.clock.advance(9 * MINUTES)
    cloud.share.backends[0].endpoints.share_servers.delete_idle(
        datetime.timedelta(minutes=10)
    )
    cloud.settle()
    assert len(cloud.servers()) == 1


def test_a_server_of_which_shares_were_let_go_is_kept(cloud):
    share = cloud.create_share_on_network(cloud.add_network())
    cloud.api.act(share, 'unmanage')
    cloud.settle()
    delete_idle(cloud)
    (server,) = cloud.servers()
    assert not server.is_auto_deletable


def test_a_share_that_comes_meanwhile_saves_its_server(cloud):
    network = cloud.add_network()
    cloud.api.delete(cloud.create_share_on_network(network))
    cloud.settle()
    share = cloud.create_share_on_network(network)
    delete_idle(cloud)
    assert [server.id for server in cloud.servers()] == [
        cloud.server_of(share)
    ]


@pytest.mark.parametrize('kept', [True, False])
def test_who_removes_a_server_is_told_the_services_of_its_network(cloud, kept):
    """Also when the network goes with it, as long as they are there."""
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
    told, driver = [], cloud.driver()
    teardown = driver.teardown_server

    def note(details, security_services):
        told.extend((one['type'], one['user']) for one in security_services)
        teardown(details, security_services=security_services)

    driver.teardown_server = note
    cloud.api.request('DELETE', f'/share-networks/{network}', expect=202)
    if not kept:
        cloud.api.request(
            'DELETE', f'/security-services/{service}', expect=202
        )
    cloud.settle()
    assert told == ([('ldap', 'me')] if kept else [])
    assert cloud.servers() == []


def test_a_back_end_that_does_not_remove_a_server_puts_it_in_error(cloud):
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


def test_a_server_set_to_deleting_with_shares_on_it_is_kept(cloud):
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


# Servers that are there already


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


def test_a_server_is_taken_over_with_its_addresses(cloud):
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
def test_what_does_not_fit_is_not_taken_over(cloud, identifier, addresses):
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


def test_a_server_is_let_go_and_gives_its_addresses_back(cloud):
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
def test_who_cannot_let_go_does_so_by_force_only(cloud, force, status):
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
    if force:  # it is there still, and nobody knows it, as was asked for
        cloud.driver()._state.servers.drop(server.id)


# What drivers and schedulers are told


def test_every_verb_is_told_the_server(cloud):
    told = {}
    driver = cloud.driver()

    def note(name, found):
        def call(*args, **kwargs):
            told.setdefault(name, []).append(
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
    album.enable_snapshot_features(cloud)
    network = cloud.add_network()
    share = cloud.create_share_on_network(network, size=2)
    rule = {'access_type': 'ip', 'access_to': '10.0.0.1'}
    cloud.api.act(share, 'allow_access', rule | {'access_level': 'rw'}, None)
    cloud.settle()
    snapshot = album.create_available(cloud, share)
    album.act(cloud, snapshot, 'allow_access', rule)
    cloud.settle()
    cloud.api.act(share, 'revert', {'snapshot_id': snapshot})
    cloud.settle()
    copy = cloud.create_share_on_network(network, snapshot_id=snapshot, size=2)
    album.delete(cloud, snapshot)
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
    assert len(told) == 12
    for name, servers in told.items():
        for one in servers:
            assert one['id'] == server.id, name
            assert one['backend_details']['server_id'] == server.id
            assert [
                given['ip_address'] for given in one['network_allocations']
            ] == ['10.10.0.2']


def test_schedulers_are_told_of_servers_and_their_limits(begin):
    cloud = begin(
        backend_conf='max_shares_per_share_server = 7\n'
        'max_share_server_size = 70'
    )
    share = cloud.create_share_on_network(cloud.add_network())
    cloud.share.backends[0].report()
    (pool,) = cloud.api.get('/scheduler-stats/pools/detail')['pools']
    told = pool['capabilities']
    assert told['driver_handles_share_servers'] is True
    assert told['max_shares_per_share_server'] == 7
    assert told['max_share_server_size'] == 70
    assert told['share_server_multiple_subnet_support'] is True
    assert told['security_service_update_support'] is True
    assert told['network_allocation_update_support'] is True
    assert told['ipv4_support'] is True
    assert told['server_pools_mapping'] == {
        cloud.server_of(share): [{'pool_name': 'pool'}]
    }


def test_exports_have_no_version_that_the_network_has_not(begin):
    cloud = begin(
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


# What does not belong together


def test_a_share_on_a_network_needs_a_driver_that_makes_servers(tmp_path):
    cloud = Cloud(tmp_path, backends=['alpha'])
    network = cloud.api.request(
        'POST', '/share-networks', {'share_network': {}}, expect=200
    ).json['share_network']['id']
    share = cloud.api.create()['id']
    # As if the back end had been told otherwise since it was chosen.
    cloud.db.write(
        lambda session: session.run(
            sa.update(INSTANCE).values(share_network_id=network)
        )
    )
    cloud.settle()
    assert cloud.api.show(share)['status'] == 'error'
    assert details(cloud) == ['003']
    cloud.db.dispose()


def test_a_back_end_whose_network_makes_no_sense_does_not_start(tmp_path):
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
def test_servers_live_their_life_on_every_database(tmp_path, kind):
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
