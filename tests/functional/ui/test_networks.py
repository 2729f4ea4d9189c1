"""Share networks and security services on the page."""

import re

import pytest

from tests.support import share_servers

AD = {'type': 'active_directory', 'name': 'forest', 'domain': 'example.com'}


@pytest.fixture
def network(api):
    network, _ = share_servers.create_network_with_subnets(api, name='green')
    return network


@pytest.fixture
def service(api):
    return create_service(api, **AD)


def create_service(api, **body):
    answer = api.request(
        'POST', '/security-services', {'security_service': body}, expect=200
    )
    return answer.json['security_service']['id']


def path(network):
    return f'/ui/networks/{network}'


def act(browser, network, action, expect=200, **fields):
    form = browser.open(path(network)).form(f'{path(network)}/{action}')
    return browser.submit(form, expect=expect, **fields)


def test_network_is_created_with_a_subnet_and_shown(alice, bob, root):
    form = alice.open('/ui/networks').form('/ui/networks')
    page = alice.submit(form, name='red <b>')
    assert 'The share network has been created.' in page.text
    assert 'Share network red <b>' in page.text
    assert '<b>' not in page.html
    where = alice.address.partition('?')[0]
    assert where in alice.open('/ui/networks').links
    assert where in root.open('/ui/networks').links
    assert where not in bob.open('/ui/networks').links
    bob.open(where, expect=404)


def test_refused_network_is_explained_and_keeps_what_was_typed(alice):
    form = alice.open('/ui/networks').form('/ui/networks')
    page = alice.submit(form, expect=400, name='half', neutron_net_id='x')
    assert 'neutron_subnet_id' in page.text
    assert page.form('/ui/networks').fields['name'] == 'half'


def test_subnet_is_added_and_deleted_by_typing_the_name(network, alice):
    page = act(alice, network, 'add-subnet')
    assert 'The subnet is being added.' in page.text
    subnets = [
        form.fields['subnet_id']
        for form in page.forms
        if form.action.endswith('/delete-subnet')
    ]
    assert len(subnets) == 2
    fields = {'subnet_id': subnets[0]}
    act(alice, network, 'delete-subnet', 400, confirm='no', **fields)
    page = act(alice, network, 'delete-subnet', confirm='green', **fields)
    assert subnets[0] not in page.html
    assert subnets[1] in page.html


def test_security_service_is_added_replaced_and_removed(network, service, api, alice):
    act(alice, network, 'add-security-service', security_service_id=service)
    other = create_service(api, **AD | {'name': 'wood'})
    page = act(
        alice,
        network,
        'replace-security-service',
        current_service_id=service,
        new_service_id=other,
    )
    assert 'The security service is being replaced.' in page.text
    assert re.search('wood active directory example.com', page.text)
    page = act(alice, network, 'remove-security-service', confirm='green')
    assert 'The security service has been removed.' in page.text


def test_administrator_sees_servers_and_status_of_a_network(
    cloud, network, alice, root
):
    server = share_servers.insert_server(cloud, network)
    assert f'/ui/servers/{server}' in root.open(path(network)).links
    assert server not in alice.open(path(network)).html
    page = act(root, network, 'reset-status', confirm='green', status='error')
    assert 'The status has been set.' in page.text
    assert 'Status ✗ error' in alice.open(path(network)).text
    assert 'Set the status: not possible. Policies' in (alice.open(path(network)).text)


def test_name_and_description_are_changed(network, alice):
    page = act(alice, network, 'update', name='blue', description='far')
    assert 'Share network blue' in page.text
    assert 'Description far' in page.text


def test_network_is_deleted_by_its_name(network, alice):
    act(alice, network, 'delete', 400, confirm='blue')
    page = act(alice, network, 'delete', confirm='green')
    assert 'The share network is being deleted.' in page.text
    alice.open(path(network), expect=404)


def test_networks_are_listed_in_pages_and_found_by_name(api, alice, monkeypatch):
    monkeypatch.setattr('manila_lite.api.ui.listing.ROWS', 2)
    for number in range(5):
        share_servers.create_network_with_subnets(api, name=f'net-{number}')
    where, seen = '/ui/networks', []
    while where:
        page = alice.open(where)
        seen += re.findall(r'net-\d', page.text)
        where = next((link for link in page.links if 'after=' in link), None)
    assert sorted(seen) == [f'net-{number}' for number in range(5)]
    assert 'net-2' not in alice.open('/ui/networks?name~=t-1').text
    assert 'net-1' in alice.open('/ui/networks?name~=t-1').text
    assert 'no such share networks' in (alice.open('/ui/networks?status=error').text)


def test_password_of_a_security_service_is_not_shown(alice, root):
    form = alice.open('/ui/security-services').form('/ui/security-services')
    page = alice.submit(form, **AD, password='hush-hush')
    assert 'The security service has been created.' in page.text
    assert 'forest' in page.text
    for browser in (alice, root):
        assert 'hush' not in browser.open('/ui/security-services').html


def test_refused_security_service_keeps_all_but_the_password(alice):
    form = alice.open('/ui/security-services').form('/ui/security-services')
    page = alice.submit(
        form, expect=400, **AD | {'dns_ip': 70 * '1'}, password='hush-hush'
    )
    assert 'dns_ip' in page.text
    assert page.form('/ui/security-services').fields['name'] == 'forest'
    assert 'hush' not in page.html


def test_security_service_in_use_is_not_deleted(network, service, alice):
    act(alice, network, 'add-security-service', security_service_id=service)
    page = alice.open('/ui/security-services')
    assert 'Not possible. Share networks use it.' in page.text
    act(alice, network, 'remove-security-service', confirm='green')
    where = f'/ui/security-services/{service}/delete'
    form = alice.open('/ui/security-services').form(where)
    alice.submit(form, expect=400, confirm='tree')
    page = alice.submit(form, confirm='forest')
    assert 'There are no security services.' in page.text
