"""Share servers are listed, deleted, reset, managed and unmanaged."""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import services as service_models, share_servers
from manila_lite.states.share_server import (
    SHARE_SERVER,
    SHARE_SERVER_TASK,
    ServerStatus,
    TaskState,
)
from tests.functional.api.samples.cloud import pending_work_kinds
from tests.support import reference
from tests.support.share_servers import (
    HOST,
    assign_share_server,
    create_network_subnet,
    create_network_with_subnets,
    insert_server,
)

SERVER = share_servers.ShareServer.__table__
SUBNET = share_servers.ShareServerSubnet.__table__
UNKNOWN = '00000000-0000-4000-8000-000000000000'


def listed(api, query='', **options):
    return [
        one['id']
        for one in api.get(f'/share-servers{query}', **options)['share_servers']
    ]


def act(api, server_id, action, args=None, expect=202, version=None):
    return api.request(
        'POST',
        f'/share-servers/{server_id}/action',
        {action: args},
        expect=expect,
        version=version,
    )


def row_of(cloud, server_id):
    return cloud.db.read(
        lambda session: session.first(sa.select(SERVER).where(SERVER.c.id == server_id))
    )


def subnets_of(cloud, server_id):
    return {
        row[0]
        for row in cloud.db.read(
            lambda session: session.rows(
                sa.select(SUBNET.c.share_network_subnet_id).where(
                    SUBNET.c.share_server_id == server_id
                )
            )
        )
    }


def pending_work(cloud):
    """Return the kinds of pending work for servers."""
    return [
        kind
        for kind in cloud.db.read(pending_work_kinds)
        if kind.startswith('share_servers.')
    ]


# Views


@pytest.mark.facts('add_support_multiple_subnet_per_az.2')
def test_server_shows_its_network_subnets_and_details(cloud, admin, member):
    network, subnets = create_network_with_subnets(member, None, 'nova', name='red')
    server = insert_server(cloud, network, subnets, {'ip': '10.0.0.4'})
    shown = admin.get(f'/share-servers/{server}')['share_server']
    assert shown['share_network_id'] == network
    assert shown['share_network_name'] == 'red'
    assert shown['project_id'] == 'project'
    assert shown['share_network_subnet_ids'] == sorted(subnets)
    assert shown['backend_details'] == {'ip': '10.0.0.4'}
    assert admin.get(f'/share-servers/{server}/details') == {
        'details': {'ip': '10.0.0.4'}
    }
    assert admin.get(f'/share-servers/{server}', version='2.69')['share_server'][
        'share_network_subnet_id'
    ] == min(subnets)


def test_network_without_a_name_is_shown_by_its_id(cloud, admin, member):
    for name in (None, ''):
        network, _ = create_network_with_subnets(member, name=name)
        server = insert_server(cloud, network)
        for found in (
            admin.get(f'/share-servers/{server}')['share_server'],
            admin.get('/share-servers')['share_servers'][0],
        ):
            assert found['share_network_name'] == network


def test_newest_server_is_listed_first(cloud, admin):
    servers = [insert_server(cloud) for _ in range(3)]
    assert listed(admin) == servers[::-1]


def test_servers_are_filtered_by_their_columns(cloud, admin, member):
    red, subnets = create_network_with_subnets(member, name='red')
    other, others = create_network_with_subnets(admin, name='blue')
    server = insert_server(
        cloud,
        red,
        subnets,
        identifier='vs1',
        source_share_server_id='s',
        task_state=TaskState.PHASE1_DONE,
        is_auto_deletable=False,
        security_service_update_support=True,
        network_allocation_update_support=True,
        share_replicas_migration_support=True,
    )
    insert_server(cloud, other, others, host='node@beta', status='error')
    for query in (
        f'host={HOST}',
        'status=active',
        f'share_network_id={red}',
        f'share_network={red}',
        'share_network=red',
        f'share_network_subnet_id={subnets[0]}',
        'identifier=vs1',
        'source_share_server_id=s',
        'is_auto_deletable=false',
        'task_state=migration_driver_phase1_done',
        'task_state=server_migrating_phase1_done',
        'security_service_update_support=1',
        'network_allocation_update_support=true',
        'share_replicas_migration_support=True',
        f'status=active&host={HOST}&share_network=red',
    ):
        assert listed(admin, f'?{query}') == [server], query
    assert len(listed(admin, '?project_id=project')) == 2


def test_list_is_empty_when_nothing_matches(cloud, admin, member):
    """And when the key is not a filter."""
    network, subnets = create_network_with_subnets(member)
    insert_server(cloud, network, subnets)
    for query in (
        'host=node@gamma',
        'status=moon',
        'share_network=moon',
        'project_id=moon',
        'task_state=migration_success',
        'task_state=moon',
        'task_state=none',
        'identifier=',
        'name=vs1',
        'limit=1',
        'all_tenants=1',
        f'share_network_subnet_id={UNKNOWN}',
    ):
        assert listed(admin, f'?{query}') == [], query


def test_flag_in_the_query_must_be_a_boolean(admin):
    for key in ('is_auto_deletable', 'security_service_update_support'):
        message = admin.get(f'/share-servers?{key}=maybe', expect=400)['badRequest'][
            'message'
        ]
        assert key in message


def test_task_state_is_shown_with_its_published_name(cloud, admin):
    """It differs from the internal name; both work as a filter."""
    published = {
        row['value']
        for row in reference.table('statuses.csv')
        if (row['resource'], row['field']) == ('share server', 'task_state')
    }
    for state in SHARE_SERVER_TASK.statuses - {TaskState.NONE}:
        server = insert_server(cloud, task_state=state)
        word = admin.get(f'/share-servers/{server}')['share_server']['task_state']
        assert word in published
        for name in (word, state):
            assert listed(admin, f'?task_state={name}') == [server]


def test_statement_count_of_lists_is_constant(cloud, admin, member):
    network, subnets = create_network_with_subnets(member, None, 'nova')

    def cost(path):
        before = cloud.statements
        admin.get(path)
        return cloud.statements - before

    server = insert_server(cloud, network, subnets, {'ip': '10.0.0.4'})
    one = cost('/share-servers')
    for _ in range(20):
        insert_server(cloud, network, subnets)
    assert cost('/share-servers') == one == 2
    assert cost(f'/share-servers/{server}') == 3


def test_tenants_do_not_learn_about_servers(cloud, member):
    server = insert_server(cloud)
    for method, path, body in (
        ('GET', '', None),
        ('GET', '/details', None),
        ('DELETE', '', None),
        ('POST', '/action', {'unmanage': None}),
        ('POST', '/action', {'reset_status': {'status': 'error'}}),
    ):
        known, unknown = (
            member.request(method, f'/share-servers/{id}{path}', body, expect=403).text
            for id in (server, UNKNOWN)
        )
        assert known == unknown, (method, path)
    assert member.get('/share-servers', expect=403)


@pytest.mark.facts('LP2025649')
def test_errors_name_the_server(cloud, admin):
    share = cloud.create_share()
    server = insert_server(cloud, status='creating')
    used = insert_server(cloud)
    assign_share_server(cloud, share, used)
    for method, id, path, body in (
        ('GET', UNKNOWN, '', None),
        ('GET', UNKNOWN, '/details', None),
        ('DELETE', UNKNOWN, '', None),
        ('POST', UNKNOWN, '/action', {'reset_status': {'status': 'error'}}),
        ('POST', UNKNOWN, '/action', {'unmanage': None}),
        ('DELETE', server, '', None),
        ('DELETE', used, '', None),
        ('POST', server, '/action', {'unmanage': None}),
        ('POST', used, '/action', {'unmanage': None}),
    ):
        answer = admin.request(method, f'/share-servers/{id}{path}', body)
        assert answer.status_int in (400, 403, 404, 409)
        (fault,) = answer.json.values()
        assert id in fault['message'], (method, path, fault)


# Delete


def test_only_servers_active_or_in_error_are_deleted(cloud, admin):
    for status in SHARE_SERVER.statuses:
        server = insert_server(cloud, status=status)
        known = status in (ServerStatus.ACTIVE, ServerStatus.ERROR)
        admin.request(
            'DELETE', f'/share-servers/{server}', expect=202 if known else 403
        )
        assert row_of(cloud, server).status == (
            ServerStatus.DELETING if known else status
        )
    assert pending_work(cloud) == ['share_servers.delete_share_server'] * 2


@pytest.mark.facts('share-servers.1')
def test_server_with_a_share_is_not_deleted(cloud, admin):
    server = insert_server(cloud)
    assign_share_server(cloud, cloud.create_share(), server)
    admin.request('DELETE', f'/share-servers/{server}', expect=409)
    act(admin, server, 'unmanage', expect=400)
    assert row_of(cloud, server).status == ServerStatus.ACTIVE
    assert pending_work(cloud) == []


def test_second_deletion_is_refused(cloud, admin):
    server = insert_server(cloud)
    admin.request('DELETE', f'/share-servers/{server}', expect=202)
    admin.request('DELETE', f'/share-servers/{server}', expect=403)
    assert len(pending_work(cloud)) == 1


# Reset status


def test_published_statuses_can_be_set(cloud, admin):
    for row in reference.table('statuses.csv'):
        if (row['resource'], row['field'], row['admin_reset']) == (
            'share server',
            'status',
            'yes',
        ):
            server = insert_server(cloud, status='creating', build_key='x')
            act(admin, server, 'reset_status', {'status': row['value']})
            assert row_of(cloud, server).status == row['value']
            assert row_of(cloud, server).build_key is None


def test_other_statuses_are_refused(cloud, admin):
    server = insert_server(cloud)
    for args in (
        {'status': 'moon'},
        {'status': ''},
        {'status': None},
        {},
        None,
        {'status': 'available'},
        {'status': ['active']},
    ):
        message = act(admin, server, 'reset_status', args, expect=400).json[
            'badRequest'
        ]['message']
        assert 'status' in message
    assert row_of(cloud, server).status == ServerStatus.ACTIVE


# Unmanage


@pytest.mark.facts('share-servers.2', 'share_server_unmanage')
def test_server_at_rest_can_be_unmanaged(cloud, admin):
    for status in SHARE_SERVER.statuses:
        for args in (None, {}, {'force': 'true'}):
            server = insert_server(cloud, status=status)
            known = status in (
                ServerStatus.ACTIVE,
                ServerStatus.ERROR,
                ServerStatus.MANAGE_ERROR,
                ServerStatus.UNMANAGE_ERROR,
            )
            act(admin, server, 'unmanage', args, expect=202 if known else 400)
            assert row_of(cloud, server).status == (
                ServerStatus.UNMANAGE_STARTING if known else status
            )
    assert pending_work(cloud) == ['share_servers.unmanage_share_server'] * 12


def test_force_must_be_a_boolean(cloud, admin):
    server = insert_server(cloud)
    assert (
        'force'
        in act(admin, server, 'unmanage', {'force': 'maybe'}, expect=400).json[
            'badRequest'
        ]['message']
    )


# Manage


def manage(api, network_id, expect=202, version=None, **body):
    return api.request(
        'POST',
        '/share-servers/manage',
        {
            'share_server': {
                'host': HOST,
                'share_network_id': network_id,
                'identifier': 'vs1',
                **body,
            }
        },
        expect=expect,
        version=version,
    ).json


def test_server_is_managed(cloud, admin, member):
    network, subnets = create_network_with_subnets(member)
    shown = manage(admin, network, driver_options={'key': 'value'})['share_server']
    assert shown['status'] == 'manage_starting'
    assert shown['updated_at'] == shown['created_at']
    assert shown['is_auto_deletable'] is False
    assert shown['identifier'] == 'vs1'
    assert shown['share_network_subnet_ids'] == subnets
    assert shown['project_id'] == 'project'
    assert pending_work(cloud) == ['share_servers.manage_share_server']


def refused_manage(api, network_id, **body):
    return manage(api, network_id, expect=400, **body)['badRequest']['message']


@pytest.mark.facts('LP1982429')
@pytest.mark.parametrize(
    'similar, code',
    [
        ('their-vs-1', 400),
        ('x_their-vs_1', 400),
        ('vs_1', 400),
        ('1', 400),
        ('their_vs', 202),
        ('their_vs_10', 202),
        ('xtheir_vs_1', 202),
        ('heir_vs_1', 202),
        ('their_vs_2', 202),
    ],
)
def test_identifier_similar_to_a_known_one_is_refused(admin, member, similar, code):
    network, _ = create_network_with_subnets(member)
    manage(admin, network, identifier='their_vs_1')
    manage(admin, network, identifier=similar, expect=code)


def test_identifier_is_managed_once(admin, member):
    network, _ = create_network_with_subnets(member)
    manage(admin, network)
    assert 'vs1' in refused_manage(admin, network)
    manage(admin, network, host='node@beta')


@pytest.mark.parametrize('right', ['vs-1', 'vs_1', 'vs_10'])
def test_failed_manage_blocks_no_identifier(cloud, admin, member, right):
    network, _ = create_network_with_subnets(member)
    insert_server(cloud, status=ServerStatus.MANAGE_ERROR, identifier='vs_1', host=HOST)
    manage(admin, network, identifier=right)
    assert 'similar' in refused_manage(admin, network, identifier=right)


def test_network_of_managed_server_must_be_active(admin, member):
    network, _ = create_network_with_subnets(member)
    admin.request(
        'POST',
        f'/share-networks/{network}/action',
        {'reset_status': {'status': 'error'}},
        expect=202,
    )
    assert 'active' in refused_manage(admin, network)


def test_invalid_manage_arguments_are_refused(cloud, admin, member):
    network, _ = create_network_with_subnets(member)
    for what in (
        {'share_network_id': UNKNOWN},
        {'share_network_id': 'x'},
        {'host': 'node@gamma'},
        {'host': f'{HOST}#pool'},
        {'host': ''},
        {'identifier': ''},
        {'identifier': 'x' * 256},
        {'identifier': None},
        {'driver_options': 'x'},
        {'share_network_subnet_id': UNKNOWN},
    ):
        assert refused_manage(admin, network, **what)
    assert listed(admin) == []
    assert pending_work(cloud) == []


def test_manage_arguments_are_required(admin):
    whole = {'host': HOST, 'share_network_id': UNKNOWN, 'identifier': 'vs1'}
    for key in whole:
        body = {name: whole[name] for name in whole if name != key}
        message = admin.request(
            'POST', '/share-servers/manage', {'share_server': body}, expect=400
        ).json['badRequest']['message']
        assert key in message


def test_service_of_managed_server_must_be_up(cloud, admin, member):
    network, _ = create_network_with_subnets(member)
    cloud.clock.advance(3600)
    assert 'down' in refused_manage(admin, network)


@pytest.mark.facts('share-network-with-multiple-subnets.2')
def test_server_gets_the_subnets_of_the_zone_of_the_given_one(cloud, admin, member):
    network, (default, mine) = create_network_with_subnets(member, None, 'nova')
    twin = create_network_subnet(member, network, 'nova')
    for number, (named, expected) in enumerate(
        ((None, {default}), (default, {default}), (mine, {mine, twin}))
    ):
        server = manage(
            admin, network, identifier=f'vs{number}', share_network_subnet_id=named
        )['share_server']['id']
        assert subnets_of(cloud, server) == expected


def test_subnet_of_the_zone_is_used_without_a_default(cloud, admin, member):
    network, subnets = create_network_with_subnets(member, 'nova')
    server = manage(admin, network)['share_server']['id']
    assert subnets_of(cloud, server) == set(subnets)


def test_subnet_must_be_for_the_zone_of_the_back_end(cloud, admin, member):
    zone = service_models.AvailabilityZone.__table__
    cloud.db.write(
        lambda session: session.run(
            sa.insert(zone), id=UNKNOWN, name='moon', created_at=session.now
        )
    )
    network, (far,) = create_network_with_subnets(member, 'moon')
    assert 'zone' in refused_manage(admin, network)
    assert 'zone' in refused_manage(admin, network, share_network_subnet_id=far)


def test_subnet_is_ignored_below_its_version(cloud, admin, member):
    network, (default, mine) = create_network_with_subnets(member, None, 'nova')
    server = manage(admin, network, share_network_subnet_id=mine, version='2.50')[
        'share_server'
    ]['id']
    assert subnets_of(cloud, server) == {default}
