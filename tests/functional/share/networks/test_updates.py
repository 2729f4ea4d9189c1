"""Changes of share networks that are in use by share servers."""

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import engine, networks
from tests.functional.share.networks.networks_in_use import NEUTRON, NetworkCloud
from tests.support.api_client import ApiClient

ADD, ADD_CHECK = 'add_security_service', 'add_security_service_check'
UPDATE = 'update_security_service'
UPDATE_CHECK = 'update_security_service_check'
SUBNET_CHECK = 'share_network_subnet_create_check'


@pytest.fixture
def cloud(build_cloud):
    return build_cloud(kind=NetworkCloud)


def replacing(cloud):
    return {'current_service_id': cloud.service, 'new_service_id': cloud.new_service()}


# Checks


def test_check_is_pending_until_all_back_ends_have_replied(cloud):
    ask = replacing(cloud)
    (host,) = {row.host for row in cloud.servers()}
    assert cloud.act(UPDATE_CHECK, **ask) == {
        'compatible': None,
        'requested_operation': {
            'operation': 'update_security_service',
            'current_security_service': ask['current_service_id'],
            'new_security_service': ask['new_service_id'],
        },
        'hosts_check_result': {host: None},
    }
    assert cloud.act(UPDATE_CHECK, **ask)['compatible'] is None
    cloud.settle()
    checked = cloud.act(UPDATE_CHECK, **ask)
    assert checked['compatible'] is True
    assert set(checked['hosts_check_result'].values()) == {True}
    cloud.check_invariants()


def test_only_administrators_see_hosts(cloud):
    member = ApiClient(cloud, roles='member,reader')
    answer = cloud.act(UPDATE_CHECK, api=member, **replacing(cloud))
    assert 'hosts_check_result' not in answer


@pytest.mark.parametrize(
    'check',
    ['update_share_server_security_service', 'update_share_server_network_allocations'],
)
def test_failed_check_is_negative_and_reset_repeats_it(cloud, check):
    action, ask = (
        (SUBNET_CHECK, NEUTRON)
        if 'network' in check
        else (UPDATE_CHECK, replacing(cloud))
    )
    cloud.fail_next(f'check_{check}')
    assert cloud.check(action, **ask)['compatible'] is False
    assert cloud.act(action, **ask)['compatible'] is False
    again = cloud.act(action, **ask, reset_operation=True)
    assert again['compatible'] is None
    cloud.settle()
    assert cloud.act(action, **ask)['compatible'] is True
    cloud.check_invariants()


@pytest.mark.facts(
    'add-update-security-service.2', 'add_support_multiple_subnet_per_az.3'
)
def test_incompatible_back_end_leaves_the_network_unchanged(tmp_path):
    cloud = NetworkCloud(tmp_path, backend_conf='dummy_driver_network_updates = false')
    ask = replacing(cloud)
    assert cloud.check(UPDATE_CHECK, **ask)['compatible'] is False
    cloud.act(UPDATE, expect=400, **ask)
    assert cloud.check(SUBNET_CHECK, **NEUTRON)['compatible'] is False
    cloud.add_subnet_like(expect=400, **NEUTRON)
    assert cloud.attached() == {cloud.service}
    assert cloud.status() == 'active'
    cloud.check_invariants()


def test_change_requires_its_own_completed_check(cloud):
    ask = replacing(cloud)
    cloud.act(UPDATE, expect=400, **ask)
    cloud.act(UPDATE_CHECK, **ask)
    cloud.act(UPDATE, expect=400, **ask)
    cloud.settle()
    cloud.act(UPDATE, expect=400, **replacing(cloud))
    cloud.act(UPDATE, expect=202, **ask)
    cloud.settle()
    # The result was about the network before the change.
    cloud.act(UPDATE, expect=409, **ask)
    cloud.check_invariants()


def test_check_with_a_service_down_is_a_conflict(cloud):
    cloud.clock.advance(3600)
    cloud.act(UPDATE_CHECK, expect=409, **replacing(cloud))
    cloud.act(SUBNET_CHECK, expect=409, **NEUTRON)


def test_busy_share_blocks_checks_of_its_network(cloud):
    cloud.api.act(cloud.used_by, 'extend', {'new_size': 2})
    cloud.act(UPDATE_CHECK, expect=400, **replacing(cloud))
    cloud.settle()
    cloud.act(UPDATE_CHECK, expect=202, **replacing(cloud))


# Security services


@pytest.mark.facts('add-update-security-service.2')
def test_service_is_replaced_on_server_and_network(cloud):
    ask = replacing(cloud)
    cloud.check(UPDATE_CHECK, **ask)
    answer = cloud.act(UPDATE, expect=202, **ask)['share_network']
    assert answer['status'] == 'network_change'
    assert cloud.server_status() == 'network_change'
    assert cloud.remembered()['security_services'] == {'ldap': cloud.service}
    cloud.settle()
    assert cloud.status() == cloud.server_status() == 'active'
    assert cloud.attached() == {ask['new_service_id']}
    assert cloud.remembered()['security_services'] == {'ldap': ask['new_service_id']}
    assert cloud.api.show(cloud.used_by)['status'] == 'available'
    cloud.check_invariants()


@pytest.mark.facts('add-update-security-service.4')
def test_service_is_replaced_by_one_of_its_type_only(cloud):
    ask = {
        'current_service_id': cloud.service,
        'new_service_id': cloud.new_service('kerberos'),
    }
    for action in (UPDATE_CHECK, UPDATE):
        cloud.act(action, expect=409, **ask)
    assert cloud.attached() == {cloud.service}
    assert cloud.status() == 'active'


def test_service_can_be_added_to_a_network_in_use_since_2_63(cloud):
    ask = {'security_service_id': cloud.new_service('kerberos')}
    cloud.act(ADD, expect=403, version='2.62', **ask)
    cloud.act(ADD, expect=400, **ask)
    assert cloud.check(ADD_CHECK, **ask)['compatible'] is True
    cloud.act(ADD, expect=200, **ask)
    cloud.settle()
    assert set(cloud.remembered()['security_services']) == {'ldap', 'kerberos'}
    assert cloud.attached() == {cloud.service, ask['security_service_id']}
    cloud.act('remove_security_service', expect=403, **ask)
    cloud.check_invariants()


def test_old_service_stays_until_no_server_uses_it(cloud):
    ask = replacing(cloud)
    cloud.check(UPDATE_CHECK, **ask)
    cloud.act(UPDATE, expect=202, **ask)
    path = f'/security-services/{cloud.service}'
    cloud.api.request('DELETE', path, expect=403)
    cloud.api.request('PUT', path, {'security_service': {'user': 'x'}}, expect=403)
    cloud.settle()
    cloud.api.request('DELETE', path, expect=202)
    cloud.check_invariants()


def test_failed_change_puts_server_shares_and_network_into_error(cloud):
    ask = replacing(cloud)
    cloud.check(UPDATE_CHECK, **ask)
    cloud.fail_next('update_share_server_security_service')
    cloud.act(UPDATE, expect=202, **ask)
    cloud.settle()
    assert cloud.status() == cloud.server_status() == 'error'
    assert cloud.api.show(cloud.used_by)['status'] == 'error'
    (message,) = cloud.api.get('/messages')['messages']
    assert (message['action_id'], message['detail_id']) == ('011', '022')
    assert message['resource_id'] == ask['new_service_id']
    said = message['user_message']
    assert 'update_share_server_security_service of back end' in said
    assert 'Next: ' in said
    cloud.act(SUBNET_CHECK, expect=400, **NEUTRON)
    cloud.check_invariants()


def test_passwords_are_not_stored_in_journal_message_or_work(cloud):
    secret = 'open sesame'
    ask = {
        'current_service_id': cloud.service,
        'new_service_id': cloud.new_service(password=secret),
    }
    cloud.check(UPDATE_CHECK, **ask)
    cloud.fail_next('update_share_server_security_service')
    cloud.act(UPDATE, expect=202, **ask)
    tables = [
        table
        for table in networks.base.Base.metadata.sorted_tables
        if table.name != 'security_services'
    ]

    def kept(session):
        return [row for table in tables for row in session.rows(sa.select(table))]

    assert secret not in str(cloud.db.read(kept))
    cloud.settle()
    assert secret not in str(cloud.db.read(kept))


# Subnets


@pytest.mark.facts('LP2017501')
def test_subnet_in_a_used_zone_gives_servers_new_addresses(cloud):
    before = cloud.addresses()[cloud.server]
    cloud.add_subnet_like(expect=400, **NEUTRON)
    assert cloud.check(SUBNET_CHECK, **NEUTRON)['compatible'] is True
    made = cloud.add_subnet_like(**NEUTRON)['share_network_subnet']
    assert cloud.status() == cloud.server_status() == 'network_change'
    cloud.settle()
    assert cloud.status() == cloud.server_status() == 'active'
    after = cloud.addresses()[cloud.server]
    assert after > before
    assert made['id'] in cloud.remembered()['subnets']
    shown = cloud.api.get(f'/share-servers/{cloud.server}')['share_server']
    assert made['id'] in shown['share_network_subnet_ids']
    paths = {
        one['path']
        for one in cloud.api.get(f'/shares/{cloud.used_by}/export_locations')[
            'export_locations'
        ]
    }
    assert all(any(address in path for path in paths) for address in after - before)
    cloud.check_invariants()


def test_subnet_in_another_zone_changes_no_server(cloud):
    cloud.add_subnet_like(availability_zone='nova', **NEUTRON)
    assert cloud.status() == cloud.server_status() == 'active'
    cloud.check_invariants()


@pytest.mark.parametrize(
    'error', [None, exception.NoFreeAddress(segment='s', wanted=1, free=0, size=1)]
)
def test_failed_allocation_puts_all_into_error_and_releases_addresses(cloud, error):
    picture = cloud.api.request(
        'POST', '/snapshots', {'snapshot': {'share_id': cloud.used_by}}, expect=202
    ).json['snapshot']['id']
    cloud.settle()
    cloud.check(SUBNET_CHECK, **NEUTRON)
    cloud.fail_next('update_share_server_network_allocations', error=error)
    subnet = cloud.add_subnet_like(**NEUTRON)['share_network_subnet']['id']
    cloud.settle()
    assert cloud.status() == cloud.server_status() == 'error'
    assert cloud.api.show(cloud.used_by)['status'] == 'error'
    assert cloud.api.get(f'/snapshots/{picture}')['snapshot']['status'] == 'error'
    message = cloud.api.get('/messages')['messages'][0]
    assert message['resource_id'] == subnet
    assert (message['detail_id'] == '033') == (error is not None)
    assert 'Next: ' in message['user_message']
    cloud.api.request(
        'DELETE', f'/share-networks/{cloud.network}/subnets/{subnet}', expect=409
    )
    cloud.api.request('DELETE', f'/snapshots/{picture}', expect=202)
    cloud.settle()
    cloud.api.delete(cloud.used_by)
    cloud.settle()
    cloud.api.request('DELETE', f'/share-servers/{cloud.server}', expect=202)
    cloud.settle()
    assert cloud.addresses() == {}
    cloud.api.request(
        'DELETE', f'/share-networks/{cloud.network}/subnets/{subnet}', expect=202
    )
    cloud.check_invariants()


@pytest.mark.facts('driver_updatable_subnet_metadata')
def test_configured_subnet_metadata_is_passed_to_drivers(tmp_path):
    cloud = NetworkCloud(
        tmp_path, extra_conf='driver_updatable_subnet_metadata = color'
    )
    path = f'/share-networks/{cloud.network}/subnets'
    subnet = cloud.api.get(path)['share_network_subnets'][0]['id']
    path = f'{path}/{subnet}/metadata'
    cloud.api.request(
        'PUT', path, {'metadata': {'color': 'red'}}, version='2.88', expect=200
    )
    cloud.settle()
    assert 'metadata' not in cloud.remembered()
    cloud.api.request(
        'POST', path, {'metadata': {'color': 'blue', 'shape': 'round'}}, expect=200
    )
    cloud.settle()
    assert cloud.remembered()['metadata'] == {'color': 'blue'}
    cloud.fail_next('update_share_network_subnet_from_metadata')
    cloud.api.request('POST', path, {'metadata': {'color': 'green'}}, expect=200)
    cloud.settle()
    assert [one['detail_id'] for one in cloud.api.get('/messages')['messages']] == [
        '030',
        '029',
    ]
    cloud.check_invariants()


# Lost work and `reset_status`


def test_network_being_changed_refuses_shares_and_other_changes(cloud):
    ask = replacing(cloud)
    cloud.check(UPDATE_CHECK, **ask)
    cloud.act(UPDATE, expect=202, **ask)
    cloud.api.create(share_network_id=cloud.network, expect=400)
    cloud.act(SUBNET_CHECK, expect=400, **NEUTRON)
    subnet = cloud.api.get(f'/share-networks/{cloud.network}/subnets')[
        'share_network_subnets'
    ][0]['id']
    cloud.api.request(
        'DELETE', f'/share-networks/{cloud.network}/subnets/{subnet}', expect=409
    )
    cloud.settle()
    cloud.check_invariants()


def test_server_reset_during_a_change_does_not_block_its_network(cloud):
    ask = replacing(cloud)
    cloud.check(UPDATE_CHECK, **ask)
    cloud.act(UPDATE, expect=202, **ask)
    cloud.api.request(
        'POST',
        f'/share-servers/{cloud.server}/action',
        {'reset_status': {'status': 'active'}},
        expect=202,
    )
    cloud.settle()
    assert cloud.status() == 'active'
    cloud.check_invariants()


def test_network_reset_to_changing_is_given_up(cloud):
    cloud.act('reset_status', status='network_change')
    cloud.settle()
    assert cloud.status() == 'error'
    cloud.act('reset_status', status='active')
    cloud.check_invariants()


def test_lost_server_change_fails_server_and_network(cloud):
    ask = replacing(cloud)
    cloud.check(UPDATE_CHECK, **ask)
    cloud.act(UPDATE, expect=202, **ask)
    work = engine.Work.__table__
    cloud.db.write(lambda session: session.run(sa.delete(work)))
    cloud.settle()
    assert cloud.status() == cloud.server_status() == 'error'
    cloud.check_invariants()


# Removal of idle servers


def test_network_deletion_removes_idle_servers_and_addresses(cloud):
    cloud.api.request('DELETE', f'/share-networks/{cloud.network}', expect=409)
    cloud.api.delete(cloud.used_by)
    cloud.settle()
    assert cloud.server_status() == 'active'
    cloud.api.request('DELETE', f'/share-networks/{cloud.network}', expect=202)
    cloud.api.get(f'/share-networks/{cloud.network}', expect=404)
    cloud.settle()
    assert not cloud.servers()
    assert cloud.addresses() == {}
    assert cloud.usage('share_networks') == (0, 0)
    cloud.check_invariants()


@pytest.mark.facts('share-network-subnets.1')
def test_subnet_deletion_removes_its_idle_servers(cloud):
    path = f'/share-networks/{cloud.network}/subnets'
    subnet = cloud.api.get(path)['share_network_subnets'][0]['id']
    cloud.api.request('DELETE', f'{path}/{subnet}', expect=409)
    cloud.api.delete(cloud.used_by)
    cloud.settle()
    cloud.api.request('DELETE', f'{path}/{subnet}', expect=202)
    cloud.settle()
    assert not cloud.servers()
    assert cloud.api.get(path)['share_network_subnets'] == []
    cloud.check_invariants()
