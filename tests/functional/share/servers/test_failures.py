"""Failed builds of share servers."""

import pytest

from manila_lite import exception
from tests.functional.share.servers.server_calls import details, set_up
from tests.support.api_client import ApiClient
from tests.support.cloud import Crash


@pytest.mark.parametrize('order', ['fail_next', 'half_fail_next', 'lose_reply_next'])
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
    (found,) = cloud.api.get('/messages')['messages']
    text = found['user_message']
    assert 'Not enough free addresses in 10.10.0.0/24: 1 needed' in text
    assert 'Next: free addresses of the range' in text
    assert sum(map(len, cloud.addresses().values())) == 1


def test_user_is_notified_of_unused_security_services(cloud):
    error = exception.SecurityServicesUnsupported(types='ldap')
    cloud.driver().faults.fail_next('_setup_server', error=error)
    cloud.api.create(share_network_id=cloud.add_network())
    cloud.settle()
    (server,) = cloud.servers()
    assert server.status == 'error'
    assert details(cloud) == ['022']


@pytest.mark.facts('LP1900755-sec-service')
@pytest.mark.parametrize('method', ['_setup_server', 'create_share'])
def test_user_is_notified_of_rejected_credentials(cloud, method):
    error = exception.SecurityServiceFailedAuth(reason='host adc1 says no')
    cloud.driver().faults.fail_next(method, error=error)
    share = cloud.api.create(share_network_id=cloud.add_network())['id']
    cloud.settle()
    assert cloud.api.show(share)['status'] == 'error'
    member = ApiClient(cloud, roles='member,reader')
    (message,) = member.get('/messages')['messages']
    assert (message['resource_id'], message['detail_id']) == (share, '023')
    text = message['user_message']
    assert 'security service rejected the user or the password' in text
    assert 'adc1' not in text


def test_protocol_may_need_security_services_of_the_network(cloud):
    cloud.driver().dhss_mandatory_security_service_association = {
        'nfs': ['kerberos', 'ldap'],
        'cifs': None,
    }
    network = cloud.add_network()

    def create():
        share = cloud.api.create(share_network_id=network)['id']
        cloud.settle()
        return cloud.api.show(share)['status']

    for type in ('ldap', 'kerberos'):
        assert create() == 'error'
        assert cloud.servers() == []
        member = ApiClient(cloud, roles='member,reader')
        message = member.get('/messages')['messages'][0]
        assert message['detail_id'] == '025'
        assert 'lacks a required security' in message['user_message']
        service = cloud.api.request(
            'POST',
            '/security-services',
            {'security_service': {'type': type}},
            expect=200,
        ).json['security_service']['id']
        cloud.api.request(
            'POST',
            f'/share-networks/{network}/action',
            {'add_security_service': {'security_service_id': service}},
            expect=200,
        )
    assert create() == 'available'


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


@pytest.mark.parametrize('status', ['active', 'server_migrating'])
def test_status_of_a_server_being_built_cannot_be_reset(cloud, status):
    """The work that builds it belongs to a share; the server does not record it."""
    answers = []

    def reset():
        (server,) = cloud.servers()
        answers.append(
            cloud.api.request(
                'POST',
                f'/share-servers/{server.id}/action',
                {'reset_status': {'status': status}},
                expect=None,
            )
        )

    cloud.pause_at('before setup_server', reset)
    share = cloud.create_share_on_network(cloud.add_network())
    (answer,) = answers
    assert answer.status_int == 400
    assert 'is being created' in answer.json['badRequest']['message']
    assert cloud.api.show(share)['status'] == 'available'
    cloud.check_invariants()


def lose_build(cloud, network):
    """Let the process die that builds a server; return the share of it."""

    def die():
        raise Crash('the process ends')

    cloud.pause_at('after setup_server', die)
    share = cloud.api.create(share_network_id=network)['id']
    with pytest.raises(Crash):
        cloud.settle()
    (stuck,) = cloud.api.get('/share-servers')['share_servers']
    assert stuck['status'] == 'creating'
    assert stuck['updated_at'] is not None
    return share


def test_lost_build_of_a_server_is_repeated(cloud):
    share = lose_build(cloud, cloud.add_network())
    cloud.restart()
    cloud.settle()
    assert cloud.api.show(share)['status'] == 'available'
    (server,) = cloud.servers()
    assert server.status == 'active'
    assert cloud.addresses() == {server.id: {'10.10.0.2'}}
    cloud.check_invariants()


@pytest.mark.facts('LP1993828', 'LP2142133')
def test_server_with_a_lost_build_keeps_its_addresses(cloud):
    """The back end may have it, so its addresses are not reused."""
    network = cloud.add_network()
    share = lose_build(cloud, network)
    cloud.restart()
    cloud.driver().faults.fail_next('_setup_server')
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
