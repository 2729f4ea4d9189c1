"""Shares on share networks: created, filtered, changed and managed."""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import services as service_models, share_servers
from tests.support.cloud import TYPE_ID
from tests.support.share_servers import (
    HOST,
    assign_share_server,
    create_network_subnet,
    create_network_with_subnets,
    insert_server,
)

UNKNOWN = '00000000-0000-4000-8000-000000000000'
SERVERS = 'servers'
SERVER = share_servers.ShareServer.__table__


@pytest.fixture(autouse=True)
def types(make_type):
    make_type(
        SERVERS,
        driver_handles_share_servers='True',
        snapshot_support='True',
        create_share_from_snapshot_support='True',
    )
    make_type(
        'zoned', driver_handles_share_servers='True', availability_zones='nova, moon'
    )


@pytest.fixture
def moon(cloud):
    """Insert a second zone without back ends; return its name."""
    zone = service_models.AvailabilityZone.__table__
    cloud.db.write(
        lambda session: session.run(
            sa.insert(zone), id=UNKNOWN, name='moon', created_at=session.now
        )
    )
    return 'moon'


def refused(api, code=400, version=None, **body):
    (fault,) = api.create(
        expect=code, version=version, **{'share_type': SERVERS, **body}
    ).values()
    return fault['message']


def reset(admin, network, status):
    admin.request(
        'POST',
        f'/share-networks/{network}/action',
        {'reset_status': {'status': status}},
        expect=202,
    )


def instance_of(api, share_id):
    return api.get(f'/shares/{share_id}/instances')['share_instances'][0]


# Create


def test_share_is_created_on_a_network(admin, member):
    network, _ = create_network_with_subnets(member)
    share = member.create(share_type=SERVERS, share_network_id=network)
    assert share['share_network_id'] == network
    assert share['status'] == 'creating'
    instance = instance_of(admin, share['id'])
    assert instance['share_network_id'] == network
    assert instance['share_server_id'] is None


@pytest.mark.facts('LP1944478', 'share_network_id_request')
def test_only_types_with_servers_take_a_network(member):
    network, _ = create_network_with_subnets(member)
    assert 'share_network_id' in refused(member)
    assert 'share_network_id' in refused(
        member, share_type='default', share_network_id=network
    )
    assert member.get('/shares')['shares'] == []


def test_foreign_network_answers_like_an_unknown_one(admin, member, stranger):
    network, _ = create_network_with_subnets(member)
    answers = [
        refused(stranger, code=404, share_network_id=id).replace(id, 'the id')
        for id in (network, UNKNOWN)
    ]
    assert answers[0] == answers[1]
    assert admin.create(share_type=SERVERS, share_network_id=network)


def test_network_must_be_active(admin, member):
    network, _ = create_network_with_subnets(member)
    for status in ('error', 'network_change'):
        reset(admin, network, status)
        assert 'active' in refused(member, share_network_id=network)
    reset(admin, network, 'active')
    assert member.create(share_type=SERVERS, share_network_id=network)


def test_unknown_zone_is_not_found_before_a_network_is_required(member):
    assert 'moon' in refused(member, code=404, availability_zone='moon')


def test_network_must_have_a_subnet_for_the_zone(member, moon):
    here, _ = create_network_with_subnets(member, 'nova')
    anywhere, _ = create_network_with_subnets(member)
    for zone in (moon, UNKNOWN):  # by its name and by its id
        assert 'subnet' in refused(
            member, share_network_id=here, availability_zone=zone
        )
        assert member.create(
            share_type=SERVERS, availability_zone=zone, share_network_id=anywhere
        )
    assert member.create(
        share_type=SERVERS, share_network_id=here, availability_zone='nova'
    )
    there, _ = create_network_with_subnets(member, moon)
    member.create(share_type='zoned', share_network_id=there)


def test_network_without_a_subnet_is_refused(member):
    network, (subnet,) = create_network_with_subnets(member)
    member.request('DELETE', f'/share-networks/{network}/subnets/{subnet}', expect=202)
    assert 'subnet' in refused(member, share_network_id=network)


def test_network_with_a_share_is_not_deleted(member):
    network, _ = create_network_with_subnets(member)
    member.create(share_type=SERVERS, share_network_id=network)
    member.request('DELETE', f'/share-networks/{network}', expect=409)


def test_statement_count_does_not_depend_on_the_network(cloud, member):
    """A network takes three additional statements."""

    def cost(**body):
        before = cloud.statements
        member.create(**body)
        return cloud.statements - before

    small, _ = create_network_with_subnets(member)
    large, _ = create_network_with_subnets(member)
    for _ in range(10):
        create_network_subnet(member, large, 'nova')
    cost()  # counts usage for the first time
    cost(share_type=SERVERS, share_network_id=small)
    assert (
        cost(share_type=SERVERS, share_network_id=small)
        == cost(share_type=SERVERS, share_network_id=large)
        == cost() + 3
    )


# Filters


@pytest.mark.facts('share_server_id_query')
def test_shares_and_instances_are_filtered_by_network_and_server(cloud, admin, member):
    network, _ = create_network_with_subnets(member)
    server = insert_server(cloud, network)
    share = cloud.create_share()
    cloud.create_share()
    assign_share_server(cloud, share, server, network)
    for query in (f'share_network_id={network}', f'share_server_id={server}'):
        found = admin.get(f'/shares/detail?{query}')['shares']
        assert [one['id'] for one in found] == [share]
        assert found[0]['share_server_id'] == server
        found = admin.get(f'/share_instances?{query}')['share_instances']
        assert [one['share_id'] for one in found] == [share]
    assert [
        one['id'] for one in member.get(f'/shares?share_network_id={network}')['shares']
    ] == [share]
    assert 'share_server_id' not in member.show(share)
    member.get(f'/shares?share_server_id={server}', expect=403)


# Access


def test_rules_change_on_an_active_network_only(cloud, admin, member):
    network, _ = create_network_with_subnets(member)
    share = cloud.create_share()
    assign_share_server(cloud, share, insert_server(cloud, network), network)
    rule = member.act(
        share,
        'allow_access',
        {'access_type': 'ip', 'access_to': '10.0.0.1'},
        expect=200,
    ).json['access']['id']
    before = member.show(share)['access_rules_status']
    for status in ('error', 'network_change'):
        reset(admin, network, status)
        for answer in (
            member.act(
                share,
                'allow_access',
                {'access_type': 'ip', 'access_to': '10.0.0.2'},
                expect=400,
            ),
            member.act(share, 'deny_access', {'access_id': rule}, expect=400),
            member.request(
                'PUT',
                f'/share-access-rules/{rule}',
                {'update_access': {'access_level': 'ro'}},
                expect=400,
            ),
        ):
            assert 'network' in answer.json['badRequest']['message']
    assert member.show(share)['access_rules_status'] == before
    reset(admin, network, 'active')
    member.act(share, 'deny_access', {'access_id': rule})


# Manage


def manage(api, server, expect=200, version=None, **body):
    return api.request(
        'POST',
        '/shares/manage',
        {
            'share': {
                'protocol': 'NFS',
                'export_path': '10.0.0.1:/there',
                'service_host': f'{HOST}#pool',
                'share_type': SERVERS,
                'share_server_id': server,
                **body,
            }
        },
        expect=expect,
        version=version,
    )


@pytest.mark.facts('manage-unmanage-share-servers.4')
def test_share_is_managed_on_a_server(cloud, admin, member):
    network, subnets = create_network_with_subnets(member)
    server = insert_server(cloud, network, subnets, idle_since=cloud.db.utcnow())
    share = manage(admin, server).json['share']
    assert share['share_server_id'] == server
    assert share['share_network_id'] == network
    row = cloud.db.read(
        lambda session: session.first(sa.select(SERVER).where(SERVER.c.id == server))
    )
    assert row.idle_since is None
    admin.request('DELETE', f'/share-servers/{server}', expect=409)


def test_server_of_managed_share_must_be_active(cloud, admin, member):
    network, subnets = create_network_with_subnets(member)
    manage(admin, UNKNOWN, expect=400)
    for status in ('error', 'inactive', 'creating', 'network_change'):
        server = insert_server(cloud, network, subnets, status=status)
        manage(admin, server, expect=409)
    server = insert_server(cloud, network, subnets, host='node@beta')
    assert 'share_server_id' in manage(admin, server, expect=400).text
    server = insert_server(cloud, network, subnets)
    assert (
        'share_server_id'
        in manage(admin, server, expect=400, share_type='default').text
    )
    assert 'share_server_id' in manage(admin, None, expect=400).text
    manage(admin, server, expect=400, version='2.48')
    reset(admin, network, 'error')
    assert 'active' in manage(admin, server, expect=400).text
    assert admin.get('/shares')['shares'] == []


# From snapshots


def take_snapshot(admin, cloud, network, **server):
    """Create a snapshot of a share on a server; return its id."""
    share = cloud.create_share()
    assign_share_server(cloud, share, insert_server(cloud, network, **server), network)
    snapshot = admin.request(
        'POST', '/snapshots', {'snapshot': {'share_id': share}}, expect=202
    ).json['snapshot']['id']
    cloud.settle()
    return snapshot


def test_copy_is_on_the_network_of_its_source(cloud, admin, member):
    network, subnets = create_network_with_subnets(member)
    other, _ = create_network_with_subnets(member)
    snapshot = take_snapshot(admin, cloud, network, subnet_ids=subnets)
    admin.request(
        'POST',
        f'/types/{TYPE_ID}/extra_specs',
        {'extra_specs': {'driver_handles_share_servers': 'True'}},
        expect=200,
    )
    for named in ({}, {'share_network_id': network}):
        copy = member.create(snapshot_id=snapshot, version='2.23', **named)
        assert copy['share_network_id'] == network
    assert 'share_network_id' in refused(
        member,
        share_type='default',
        snapshot_id=snapshot,
        share_network_id=other,
        version='2.23',
    )
    reset(admin, network, 'error')
    assert 'active' in refused(
        member, share_type='default', snapshot_id=snapshot, version='2.23'
    )


# Placement


@pytest.mark.facts('add_support_multiple_subnet_per_az.4')
def test_several_subnets_of_a_zone_require_support_by_the_back_end(
    cloud, admin, member
):
    """No back end here has servers, which decides what users read."""
    network, _ = create_network_with_subnets(member, None, 'nova')
    create_network_subnet(member, network, 'nova')
    share = member.create(share_type=SERVERS, share_network_id=network)
    cloud.settle()
    assert member.show(share['id'])['status'] == 'error'
    message = admin.get('/messages')['messages'][0]
    assert message['detail_id'] == '008'
    assert 'share_server_multiple_subnet_support' in message['user_message']
    plain, _ = create_network_with_subnets(member)
    share = member.create(share_type=SERVERS, share_network_id=plain)
    cloud.settle()
    message = admin.get('/messages')['messages'][0]
    assert message['resource_id'] == share['id']
    assert message['detail_id'] == '008'
    assert 'multiple_subnet' not in message['user_message']
