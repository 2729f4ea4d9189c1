"""Share servers are removed when idle or on request."""

import datetime

import pytest

from manila_lite.db.transitions import fire, insert_row
from manila_lite.states.share_server import SHARE_SERVER
from tests.functional.share.servers.server_calls import delete_idle

MINUTES = 60


def test_server_stays_after_its_last_share_by_default(cloud):
    share = cloud.create_share_on_network(cloud.add_network())
    cloud.api.delete(share)
    cloud.settle()
    (server,) = cloud.servers()
    assert server.status == 'active'
    assert server.idle_since is not None


@pytest.mark.facts('delete_share_server_with_last_share')
def test_server_is_deleted_with_its_last_share_if_configured(build_cloud):
    cloud = build_cloud(extra_conf='delete_share_server_with_last_share = true')
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


def test_idle_servers_are_marked_and_deleted_in_batches(cloud):
    cloud.db.write(add_servers, 105)
    endpoint = cloud.share.backends[0].endpoints.share_servers
    steps = []
    cloud.db.on_step = steps.append
    assert endpoint.delete_idle(datetime.timedelta(0)) == 105
    marking, deleting = 2, 105
    assert steps.count('committed') == marking + deleting
    del steps[:]
    assert endpoint.delete_idle(datetime.timedelta(0)) == 0
    assert 'commit' not in steps
    cloud.settle()
    assert cloud.servers() == []


def add_servers(session, count):
    for number in range(count):
        id = f'{number:036}'
        insert_row(
            session,
            SHARE_SERVER,
            'create',
            id=id,
            host='node@alpha',
            is_auto_deletable=True,
            security_service_update_support=False,
            network_allocation_update_support=False,
            share_replicas_migration_support=False,
            created_at=session.now,
        )
        fire(session, SHARE_SERVER, id, 'created')


@pytest.mark.facts('is_auto_deletable')
def test_server_with_unmanaged_shares_is_kept(cloud):
    share = cloud.create_share_on_network(cloud.add_network())
    cloud.api.act(share, 'unmanage')
    cloud.settle()
    delete_idle(cloud)
    (server,) = cloud.servers()
    assert not server.is_auto_deletable


def test_unmanaged_snapshot_does_not_keep_its_server(cloud):
    share = cloud.create_share_on_network(cloud.add_network())
    snapshot = cloud.api.request(
        'POST', '/snapshots', {'snapshot': {'share_id': share}}, expect=202
    ).json['snapshot']['id']
    cloud.settle()
    cloud.api.request(
        'POST', f'/snapshots/{snapshot}/action', {'unmanage': None}, expect=202
    )
    cloud.settle()
    cloud.api.get(f'/snapshots/{snapshot}', expect=404)
    cloud.api.delete(share)
    cloud.settle()
    delete_idle(cloud)
    assert cloud.servers() == []


def test_server_in_use_again_is_kept(cloud):
    network = cloud.add_network()
    cloud.api.delete(cloud.create_share_on_network(network))
    cloud.settle()
    share = cloud.create_share_on_network(network)
    delete_idle(cloud)
    assert [server.id for server in cloud.servers()] == [cloud.server_of(share)]


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
        reported.extend((one['type'], one['user']) for one in security_services)
        teardown(details, security_services=security_services)

    driver.teardown_server = note
    cloud.api.request('DELETE', f'/share-networks/{network}', expect=202)
    if not kept:
        cloud.api.request('DELETE', f'/security-services/{service}', expect=202)
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
