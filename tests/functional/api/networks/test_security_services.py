"""The security service API: behaviour that is not in the published tables."""

import logging

import pytest

from tests.support.share_servers import create_network_with_subnets, insert_server

SECRET = 'open sesame'


def create(api, expect=200, version=None, type='ldap', **body):
    answer = api.request(
        'POST',
        '/security-services',
        {'security_service': {'type': type, **body}},
        expect=expect,
        version=version,
    ).json
    return answer['security_service'] if expect == 200 else answer


def update(api, id, expect=200, version=None, **body):
    answer = api.request(
        'PUT',
        f'/security-services/{id}',
        {'security_service': body},
        expect=expect,
        version=version,
    ).json
    return answer['security_service'] if expect == 200 else answer


def names(api, query='', version=None):
    return [
        one['name']
        for one in api.get(f'/security-services{query}', version=version)[
            'security_services'
        ]
    ]


def attach(api, network_id, service_id, expect=200):
    api.request(
        'POST',
        f'/share-networks/{network_id}/action',
        {'add_security_service': {'security_service_id': service_id}},
        expect=expect,
    )


@pytest.fixture
def used(cloud, member):
    """Create a service on a network with a share server; return its id."""
    service = create(member)['id']
    network, subnets = create_network_with_subnets(member)
    attach(member, network, service)
    insert_server(cloud, network, subnets)
    return service


@pytest.mark.facts('LP1696669')
def test_ou_is_stored_in_every_version_and_shown_from_2_44(member):
    created = create(member, version='2.0', ou='CN=x', password=SECRET)
    assert 'ou' not in created
    assert created['password'] == SECRET
    path = f'/security-services/{created["id"]}'
    assert member.get(path, version='2.44')['security_service']['ou'] == 'CN=x'


@pytest.mark.facts(
    'add-defaultadsite-to-security-service.1', 'add-defaultadsite-to-security-service.2'
)
def test_default_ad_site_is_accepted_from_2_76(member):
    kind = {'type': 'active_directory'}
    create(member, expect=400, version='2.75', default_ad_site='s', **kind)
    created = create(member, default_ad_site='site', **kind)
    update(member, created['id'], expect=400, version='2.75', default_ad_site='t')
    # A site and a server are alternatives.
    create(member, expect=400, default_ad_site='s', server='x', **kind)
    update(member, created['id'], expect=400, server='x')
    update(member, created['id'], server='x', default_ad_site=None)
    update(member, created['id'], expect=400, default_ad_site='s')
    other = create(member, type='ldap', server='x', default_ad_site='s')
    update(member, other['id'], expect=400, **kind)


@pytest.mark.parametrize('type', ['', 'LDAP', 'nis', None, 7])
@pytest.mark.facts('security_service_type')
def test_type_is_one_of_three(member, type):
    answer = create(member, expect=400, type=type)
    assert 'type must be one of' in answer['badRequest']['message']


def test_lists_are_filtered_by_exact_values(member):
    create(member, name='one', user='alice', dns_ip='10.0.0.1', ou='a')
    create(member, name='two', type='kerberos', domain='d', server='s')
    for query, found in (
        ('', ['two', 'one']),
        ('?name=one', ['one']),
        ('?name=on', []),
        ('?type=kerberos', ['two']),
        ('?user=alice', ['one']),
        ('?server=s', ['two']),
        ('?domain=d', ['two']),
        ('?dns_ip=10.0.0.1', ['one']),
        ('?status=gone', []),
        ('?status=new', ['two', 'one']),
        ('?ou=a', ['one']),
        ('?limit=1', ['two']),
        ('?limit=1&offset=1', ['one']),
        ('?color=x', ['two', 'one']),
        ('?color=x&name=one', ['one']),
        ('?sort_key=name', ['two', 'one']),
        ('?marker=x', []),
    ):
        assert names(member, query) == found, query
    assert names(member, '?ou=a', version='2.43') == ['two', 'one']


def test_services_of_a_network_are_listed(admin, member, stranger):
    network, _ = create_network_with_subnets(member)
    service = create(member, name='on')
    create(member, name='off')
    attach(member, network, service['id'])
    query = f'?share_network_id={network}'
    assert names(member, query) == names(admin, query) == ['on']
    shown = member.get(f'/security-services/detail{query}')
    assert shown['security_services'][0]['share_networks'] == [network]
    stranger.request('GET', f'/security-services{query}', expect=404)


@pytest.mark.facts('LP1721787')
def test_only_administrators_list_other_projects(admin, member, stranger):
    create(stranger, name='theirs')
    create(member, name='ours')
    assert names(admin, '?all_tenants=1') == ['ours', 'theirs']
    for query in ('?project_id=another', '?all_tenants=1&project_id=x'):
        assert names(member, query) == ['ours']
    query = '?all_tenants=1&project_id=another'
    assert names(admin, query) == ['theirs']
    assert names(member, '?all_tenants=1') == ['ours']


@pytest.mark.parametrize('count', [3, 30])
def test_statement_count_of_lists_is_constant(cloud, member, count):
    for _ in range(count):
        create(member)
    before = cloud.statements
    assert len(names(member, '/detail')) == count
    assert cloud.statements - before == 2


@pytest.mark.facts('security-services.active')
def test_only_the_name_of_a_service_in_use_can_change(member, used):
    for body in (
        {'password': 'x'},
        {'type': 'kerberos'},
        {'user': None},
        {'name': 'new', 'dns_ip': '::1'},
    ):
        assert 'forbidden' in update(member, used, expect=403, **body)
    shown = update(member, used, name='new', description='new')
    assert (shown['name'], shown['user']) == ('new', None)
    member.request('DELETE', f'/security-services/{used}', expect=403)


def test_attached_service_can_be_changed_but_not_deleted(member):
    service = create(member, type='kerberos')['id']
    network, _ = create_network_with_subnets(member)
    attach(member, network, service)
    member.request('DELETE', f'/security-services/{service}', expect=403)
    attach(member, network, create(member, type='ldap')['id'])
    # A network has at most one service of each type.
    update(member, service, expect=400, type='ldap')
    assert update(member, service, type='active_directory')['type'] == (
        'active_directory'
    )
    attach(member, network, create(member, type='kerberos')['id'])
    attach(member, network, service, expect=409)


def test_password_appears_in_no_log_and_no_error(member, used, caplog):
    caplog.set_level(logging.DEBUG)
    faults = [
        update(member, used, expect=403, password=SECRET),
        create(member, expect=400, type=SECRET),
        create(member, expect=400, password=[SECRET]),
        create(member, expect=400, password=SECRET * 30),
    ]
    create(member, password=SECRET)
    assert SECRET not in str(faults)
    assert SECRET not in caplog.text
