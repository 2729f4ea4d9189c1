"""The share network API: behaviour that is not in the published tables."""

import pytest

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.networks import subnets as records
from tests.functional.api import differences
from tests.support.api_client import ApiClient
from tests.support.share_servers import assign_share_server, insert_server

NEUTRON = {'neutron_net_id': 'a-net', 'neutron_subnet_id': 'a-subnet'}

UNKNOWN = '00000000-0000-4000-8000-000000000000'


def create(api, expect=200, version=None, **body):
    answer = api.request(
        'POST',
        '/share-networks',
        {'share_network': body},
        expect=expect,
        version=version,
    ).json
    return answer['share_network'] if expect == 200 else answer


def names(api, query='', version=None, expect=200):
    """Return the names of the listed networks, newest first."""
    answer = api.get(f'/share-networks/detail{query}', version=version, expect=expect)
    return [one['name'] for one in answer.get('share_networks', ())]


def subnets(api, network):
    return api.get(f'/share-networks/{network["id"]}/subnets')['share_network_subnets']


def add_subnet(api, network, expect=200, version=None, **body):
    answer = api.request(
        'POST',
        f'/share-networks/{network["id"]}/subnets',
        {'share-network-subnet': body},
        expect=expect,
        version=version,
    ).json
    return answer['share_network_subnet'] if expect == 200 else answer


# Create


@differences.proves('network values of new share networks')
def test_values_that_the_service_writes_are_ignored(member):
    sent = {
        'created_at': '2001-02-03T04:05:06',
        'network_type': 'vlan',
        'segmentation_id': 77,
        'cidr': '10.7.0.0/24',
        'ip_version': 6,
    }
    for version in ('2.50', '2.99'):
        network = create(member, version=version, **sent)
        shown = {
            **network,
            **{
                key: value
                for subnet in network.get('share_network_subnets', ())
                for key, value in subnet.items()
            },
        }
        assert {shown[key] for key in sent.keys() - {'created_at'}} == {None}
        assert not network['created_at'].startswith('2001')


@pytest.mark.facts('share-network-with-multiple-subnets.1')
def test_new_network_has_one_subnet_for_its_zone_or_all_zones(member):
    for body, zone, version in (
        ({}, None, '2.99'),
        ({'availability_zone': 'nova'}, 'nova', '2.51'),
        # Older versions do not know zones of networks.
        ({'availability_zone': 'nova'}, None, '2.50'),
    ):
        created = create(member, version=version, **body)
        assert [one['availability_zone'] for one in subnets(member, created)] == [zone]


@pytest.mark.facts('share_network_az_request')
def test_zone_that_does_not_exist_is_refused(member):
    answer = create(member, expect=400, availability_zone='moon')
    assert 'moon' in answer['badRequest']['message']
    network = create(member)
    add_subnet(member, network, expect=400, availability_zone='moon')


@pytest.mark.parametrize(
    'body',
    [
        {'neutron_net_id': 'a'},
        {'neutron_subnet_id': 'a'},
        {'neutron_net_id': 'a', 'neutron_subnet_id': None},
        {'nova_net_id': 'a'},
        {'nova_net_id': None},
    ],
)
@pytest.mark.facts('remove-nova-network')
def test_neutron_ids_are_given_together_and_nova_ids_refused(member, body):
    assert 'badRequest' in create(member, expect=400, **body)
    network = create(member)
    member.request(
        'PUT', f'/share-networks/{network["id"]}', {'share_network': body}, expect=400
    )


def test_quota_counts_for_project_and_user(cloud, admin, member):
    for query in ('', '?user_id=user of project'):
        admin.request(
            'PUT',
            f'/quota-sets/project{query}',
            {'quota_set': {'share_networks': 2 if query else 3}},
            expect=200,
        )
    created = [create(member) for _ in range(2)]
    answer = create(member, expect=413)
    assert 'share networks' in answer['overLimit']['message']
    create(admin)
    create(admin, expect=413)
    assert cloud.usage('share_networks') == (3, 0)
    member.request('DELETE', f'/share-networks/{created[0]["id"]}', expect=202)
    assert cloud.usage('share_networks') == (2, 0)
    create(member)
    cloud.settle()
    cloud.check_invariants()


# List


@pytest.mark.facts('LP1923008', 'add-like-filter', 'add-update-security-service.1')
def test_lists_are_filtered_by_network_and_by_subnet(member):
    create(member, name='one', description='first', **NEUTRON)
    create(member, name='two', availability_zone='nova')
    assert names(member) == ['two', 'one']
    for query, found in (
        ('?name=one', ['one']),
        ('?name=on', []),
        ('?name~=O', []),
        ('?name~=n', ['one']),
        ('?name~=%25', []),
        ('?description~=irs', ['one']),
        ('?description=first', ['one']),
        ('?neutron_net_id=a-net', ['one']),
        ('?status=active', ['two', 'one']),
        ('?status=error', []),
        ('?limit=1', ['two']),
        ('?limit=1&offset=1', ['one']),
        ('?limit=0', ['two', 'one']),
        ('?created_since=2000-01-01', ['two', 'one']),
        ('?created_before=2000-01-01', []),
        ('?color=blue', ['two', 'one']),
    ):
        assert names(member, query) == found, query
    for query in ('?name~=x', '?description=x', '?description~=x'):
        assert names(member, query, version='2.35') == ['two', 'one']


@pytest.mark.parametrize('key', ['created_since', 'created_before'])
@pytest.mark.parametrize(
    'text', ['2000-01-01T00:00:00', '20000101', '2000-13-01', '01-01-2000', 'x', '']
)
@pytest.mark.facts('created_since_query')
def test_networks_are_filtered_by_dates_only(member, key, text):
    answer = member.get(f'/share-networks?{key}={text}', expect=400)
    assert 'yyyy-mm-dd' in answer['badRequest']['message']


def test_security_service_filters_networks(member):
    network = create(member, name='one')
    create(member, name='two')
    service = member.request(
        'POST',
        '/security-services',
        {'security_service': {'type': 'ldap', 'name': 'people'}},
        expect=200,
    ).json['security_service']
    member.request(
        'POST',
        f'/share-networks/{network["id"]}/action',
        {'add_security_service': {'security_service_id': service['id']}},
        expect=200,
    )
    for query in (
        f'security_service_id={service["id"]}',
        f'security_service={service["id"]}',
        'security_service=people',
    ):
        assert names(member, f'?{query}') == ['one']
    assert names(member, '?security_service=moon') == []


@pytest.mark.facts('LP1824442.2')
def test_tenants_cannot_filter_by_hidden_fields(member, admin):
    create(member)
    for key in ('network_type', 'segmentation_id'):
        member.request('GET', f'/share-networks?{key}=1', expect=403)
        assert names(admin, f'?all_tenants=1&{key}=1') == []


@pytest.mark.facts('LP1824442.1')
def test_network_details_are_for_administrators(cloud, admin, member):
    network = create(member)
    (subnet,) = subnets(member, network)
    cloud.db.write(
        records.update,
        subnet['id'],
        {'network_type': 'vlan', 'segmentation_id': 7, 'cidr': '10.0.0.0/24'},
    )
    for api, seen in ((admin, ('vlan', 7)), (member, (None, None))):
        (shown,) = subnets(api, network)
        old = api.get(f'/share-networks/{network["id"]}', version='2.20')[
            'share_network'
        ]
        for one in (shown, old):
            assert (one['network_type'], one['segmentation_id']) == seen
            assert one['cidr'] == '10.0.0.0/24'


@pytest.mark.facts('LP1721787', 'LP1861485')
def test_only_administrators_list_other_projects(admin, member, stranger):
    create(stranger, name='theirs')
    create(member, name='ours')
    assert names(admin) == ['ours']
    assert names(admin, '?all_tenants=1') == ['ours', 'theirs']
    assert names(admin, '?project_id=another') == ['theirs']
    for query in ('?all_tenants=1', '?project_id=another'):
        assert names(member, query) == ['ours']


@pytest.mark.facts('LP1777551')
@pytest.mark.parametrize('kind', ['share-networks', 'security-services'])
def test_flag_for_all_projects_may_be_false(admin, member, stranger, kind):
    key = kind.replace('-', '_')
    body = {'type': 'ldap'} if key == 'security_services' else {}
    own, foreign = (
        api.request('POST', f'/{kind}', {key.removesuffix('s'): body}, expect=200).json[
            key.removesuffix('s')
        ]['id']
        for api in (member, stranger)
    )
    for path in (f'/{kind}', f'/{kind}/detail'):
        for word in ('false', 'False', '0', 'no', 'off', 'n', 'f'):
            listed = admin.get(f'{path}?all_tenants={word}')[key]
            assert [one['id'] for one in listed] == [own], word
        for word in ('true', 'True', '1', 'yes', 'on', 'y', 't'):
            listed = admin.get(f'{path}?all_tenants={word}')[key]
            assert {one['id'] for one in listed} == {own, foreign}, word


@pytest.mark.parametrize('count', [3, 30])
def test_statement_count_of_lists_is_constant(cloud, admin, member, count):
    admin.request(
        'PUT', '/quota-sets/project', {'quota_set': {'share_networks': -1}}, expect=200
    )
    for _ in range(count):
        add_subnet(member, create(member, **NEUTRON), metadata={'a': 'b'})
    before = cloud.statements
    assert len(names(member)) == count
    assert cloud.statements - before == 2


@pytest.mark.facts('ip_version_query')
def test_ip_version_filters_networks(cloud, member):
    for name, ip_version in (('four', 4), ('six', 6)):
        (subnet,) = subnets(member, create(member, name=name))
        cloud.db.write(records.update, subnet['id'], {'ip_version': ip_version})
    create(member, name='none')
    assert names(member, '?ip_version=4') == ['four']
    assert names(member, '?ip_version=6') == ['six']
    assert names(member, '?ip_version=5') == []


@pytest.mark.facts('nova_net_id_query', 'remove-nova-network')
def test_nova_networks_are_known_up_to_2_25_only(member):
    network = create(member, name='one')
    query = '?nova_net_id=x'
    assert names(member, query, version='2.25') == []
    assert names(member, query, version='2.26') == ['one']
    for version in ('2.26', '2.99'):
        create(member, expect=400, version=version, nova_net_id='x')
        member.request(
            'PUT',
            f'/share-networks/{network["id"]}',
            {'share_network': {'nova_net_id': 'x'}},
            expect=400,
            version=version,
        )


# Change


def test_ids_of_the_default_subnet_can_be_changed(member):
    network = create(member)
    path = f'/share-networks/{network["id"]}'
    for version in ('2.50', '2.99'):
        member.request(
            'PUT',
            path,
            {'share_network': {**NEUTRON, 'neutron_subnet_id': version}},
            expect=200,
        )
        (shown,) = subnets(member, network)
        assert shown['neutron_subnet_id'] == version
        assert shown['updated_at']
    add_subnet(member, network)
    member.request('PUT', path, {'share_network': NEUTRON}, expect=400)


@pytest.mark.facts('LP1846836')
def test_network_without_a_default_subnet_keeps_its_ids(member):
    network = create(member, availability_zone='nova')
    member.request(
        'PUT',
        f'/share-networks/{network["id"]}',
        {'share_network': NEUTRON},
        expect=400,
    )


@pytest.mark.facts('share-networks.1')
def test_only_the_name_of_a_network_in_use_can_change(cloud, member):
    network = create(member)
    (subnet,) = subnets(member, network)
    insert_server(cloud, network['id'], [subnet['id']])
    path = f'/share-networks/{network["id"]}'
    member.request('PUT', path, {'share_network': NEUTRON}, expect=403)
    one_id = {'neutron_net_id': NEUTRON['neutron_net_id']}
    member.request('PUT', path, {'share_network': one_id}, expect=403)
    shown = member.request(
        'PUT',
        path,
        {'share_network': {'name': 'new', 'description': 'new'}},
        expect=200,
    ).json
    assert shown['share_network']['name'] == 'new'


def test_support_flags_are_those_of_the_least_capable_server(cloud, member):
    network = create(member)
    (subnet,) = subnets(member, network)
    for able, seen in ((True, True), (False, False), (True, False)):
        insert_server(
            cloud,
            network['id'],
            [subnet['id']],
            security_service_update_support=able,
            network_allocation_update_support=able,
        )
        shown = member.get(f'/share-networks/{network["id"]}')['share_network']
        assert shown['security_service_update_support'] is seen
        assert shown['network_allocation_update_support'] is seen


# Subnets


@pytest.mark.facts('add_support_multiple_subnet_per_az.1')
def test_zone_can_have_several_subnets_from_2_70(member):
    network = create(member, **NEUTRON)
    assert 'conflictingRequest' in add_subnet(
        member, network, expect=409, version='2.69'
    )
    add_subnet(member, network, version='2.69', availability_zone='nova')
    add_subnet(member, network, version='2.70')
    # Also with the same Neutron ids, as published.
    add_subnet(member, network, version='2.70', **NEUTRON)
    assert len(subnets(member, network)) == 4


@pytest.mark.parametrize(
    'metadata, code',
    [({'': 'x'}, 400), ({'k': ''}, 400), ({'k' * 256: 'x'}, 400), ({}, 404)],
)
@pytest.mark.parametrize('method', ['POST', 'PUT'])
def test_invalid_metadata_is_refused_before_its_network_is_found(
    member, method, metadata, code
):
    member.request(
        method,
        f'/share-networks/{UNKNOWN}/subnets/{UNKNOWN}/metadata',
        {'metadata': metadata},
        expect=code,
    )


@pytest.mark.facts('add_share_network_subnet_metadata')
def test_metadata_of_subnets_is_accepted_from_2_78(member):
    network = create(member)
    for version, found in (('2.77', {}), ('2.78', {'a': 'b'})):
        created = add_subnet(member, network, version=version, metadata={'a': 'b'})
        shown = member.get(f'/share-networks/{network["id"]}/subnets/{created["id"]}')[
            'share_network_subnet'
        ]
        assert shown['metadata'] == found
        assert shown['share_network_id'] == network['id']


def test_subnet_belongs_to_its_network(member, stranger):
    one, other = create(member), create(member)
    foreign = create(stranger)
    (subnet,) = subnets(member, one)
    for network in (other, foreign):
        for method in ('GET', 'DELETE'):
            member.request(
                method,
                f'/share-networks/{network["id"]}/subnets/{subnet["id"]}',
                expect=404,
            )
        member.request(
            'GET',
            f'/share-networks/{network["id"]}/subnets/{subnet["id"]}/metadata',
            expect=404,
        )


@pytest.mark.facts('share-network-with-multiple-subnets.1')
def test_owner_adds_shows_and_deletes_subnets(member):
    network = create(member)
    made = add_subnet(member, network, availability_zone='nova')
    path = f'/share-networks/{network["id"]}/subnets/{made["id"]}'
    shown = member.get(path)['share_network_subnet']
    assert shown['availability_zone'] == 'nova'
    assert made['id'] in [one['id'] for one in subnets(member, network)]
    member.request('DELETE', path, expect=202)
    member.get(path, expect=404)
    assert [one['availability_zone'] for one in subnets(member, network)] == [None]


@pytest.mark.facts('share_network_az_request')
def test_zone_of_a_subnet_is_named_by_name_or_id(member):
    (zone,) = member.get('/availability-zones')['availability_zones']
    network = create(member, availability_zone=zone['id'])
    for name in (zone['id'], zone['name']):
        add_subnet(member, network, availability_zone=name)
    assert {one['availability_zone'] for one in subnets(member, network)} == {
        zone['name']
    }
    answer = add_subnet(member, network, expect=400, availability_zone=UNKNOWN)
    assert UNKNOWN in answer['badRequest']['message']


@pytest.mark.facts('LP2029366', 'LP2037422')
def test_deleted_network_takes_its_subnet_and_associations(member):
    network = create(member)
    (subnet,) = subnets(member, network)
    service = member.request(
        'POST', '/security-services', {'security_service': {'type': 'ldap'}}, expect=200
    ).json['security_service']['id']
    path = f'/security-services/{service}'
    member.request(
        'POST',
        f'/share-networks/{network["id"]}/action',
        {'add_security_service': {'security_service_id': service}},
        expect=200,
    )
    member.request('DELETE', path, expect=403)
    member.request('DELETE', f'/share-networks/{network["id"]}', expect=202)
    for rest in ('', f'/subnets/{subnet["id"]}', '/subnets'):
        member.get(f'/share-networks/{network["id"]}{rest}', expect=404)
    shown = member.get('/security-services/detail')['security_services']
    assert [one['share_networks'] for one in shown] == [[]]
    member.request('DELETE', path, expect=202)


@pytest.mark.facts('share-networks.2')
def test_network_with_several_subnets_is_not_deleted(member):
    network = create(member)
    second = add_subnet(member, network, availability_zone='nova')
    path = f'/share-networks/{network["id"]}'
    member.request('DELETE', path, expect=409)
    member.request('DELETE', f'{path}/subnets/{second["id"]}', expect=202)
    member.request('DELETE', path, expect=202)


@pytest.mark.facts('share-network-subnets.1')
def test_server_that_is_not_auto_deletable_keeps_its_network(cloud, member):
    network = create(member)
    (subnet,) = subnets(member, network)
    insert_server(cloud, network['id'], [subnet['id']], is_auto_deletable=False)
    path = f'/share-networks/{network["id"]}'
    for what in (path, f'{path}/subnets/{subnet["id"]}'):
        member.request('DELETE', what, expect=409)


@pytest.mark.facts('share-networks.2')
def test_network_with_shares_is_not_deleted(cloud, member):
    network = create(member)
    share = cloud.create_share()
    assign_share_server(cloud, share, None, network['id'])
    member.request('DELETE', f'/share-networks/{network["id"]}', expect=409)


# Status


def test_reset_accepts_the_published_statuses_only(admin, member):
    network = create(member)
    path = f'/share-networks/{network["id"]}/action'
    for word in ('active', 'error', 'network_change'):
        admin.request('POST', path, {'reset_status': {'status': word}}, expect=202)
        assert (
            member.get(f'/share-networks/{network["id"]}')['share_network']['status']
            == word
        )
    admin.request('POST', path, {'reset_status': {'status': 'gone'}}, expect=400)


def test_only_one_service_of_a_type_is_added(cloud, member):
    """Of two services of one type the second is refused."""
    network = create(member)
    ids = [
        member.request(
            'POST',
            '/security-services',
            {'security_service': {'type': 'ldap'}},
            expect=200,
        ).json['security_service']['id']
        for _ in range(2)
    ]
    codes = [
        member.request(
            'POST',
            f'/share-networks/{network["id"]}/action',
            {'add_security_service': {'security_service_id': id}},
        ).status_int
        for id in ids
    ]
    assert codes == [200, 409]


@pytest.mark.facts('LP1918323')
def test_stranger_cannot_use_the_services_of_others(member, stranger):
    network = create(stranger)
    service = member.request(
        'POST', '/security-services', {'security_service': {'type': 'ldap'}}, expect=200
    ).json['security_service']['id']
    for action, body in (
        ('add_security_service', {'security_service_id': service}),
        ('remove_security_service', {'security_service_id': service}),
        ('add_security_service_check', {'security_service_id': service}),
        (
            'update_security_service',
            {'current_service_id': service, 'new_service_id': service},
        ),
    ):
        stranger.request(
            'POST',
            f'/share-networks/{network["id"]}/action',
            {action: body},
            expect=404,
        )


@pytest.mark.facts('LP1918323')
def test_service_of_another_project_is_refused(admin, member, stranger):
    network = create(member)['id']
    foreign, own = (
        api.request(
            'POST',
            '/security-services',
            {'security_service': {'type': 'ldap', 'password': 'secret'}},
            expect=200,
        ).json['security_service']['id']
        for api in (stranger, member)
    )

    def act(action, expect=400, **body):
        admin.request(
            'POST', f'/share-networks/{network}/action', {action: body}, expect=expect
        )

    act('add_security_service_check', security_service_id=foreign)
    act('add_security_service', security_service_id=foreign)
    act('add_security_service', expect=200, security_service_id=own)
    replaced = {'current_service_id': own, 'new_service_id': foreign}
    act('update_security_service_check', **replaced)
    act('update_security_service', **replaced)
    attached = member.get(f'/security-services?share_network_id={network}')
    assert [row['id'] for row in attached['security_services']] == [own]


@pytest.mark.parametrize(
    'action',
    ['add_security_service', 'remove_security_service', 'add_security_service_check'],
)
def test_empty_id_of_a_security_service_is_not_found(member, action):
    network = create(member)
    member.request(
        'POST',
        f'/share-networks/{network["id"]}/action',
        {action: {'security_service_id': ''}},
        expect=404,
    )


def test_late_operation_does_not_find_a_deleted_network(cloud, member):
    network = create(member)
    found = cloud.services.share_networks
    member.request('DELETE', f'/share-networks/{network["id"]}', expect=202)
    ctx = _context(cloud, member)
    with pytest.raises(exception.ShareNetworkNotFound):
        found.update(ctx, network['id'], {'name': 'late'}, {})
    with pytest.raises(exception.ShareNetworkNotFound):
        found.delete(ctx, network['id'])


def _context(cloud, api: ApiClient):
    return RequestContext(
        project_id=api.headers['X-Project'], user_id=api.headers['X-User']
    )


def test_empty_ids_are_not_given(member):
    ids = ('neutron_net_id', 'neutron_subnet_id', 'availability_zone')
    network = member.request(
        'POST', '/share-networks', {'share_network': dict.fromkeys(ids, '')}, expect=200
    ).json['share_network']
    (subnet,) = network['share_network_subnets']
    assert [subnet[name] for name in ids] == [None] * 3
