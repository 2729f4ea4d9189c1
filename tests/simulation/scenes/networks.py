"""Changes of share networks that are in use."""

import sqlalchemy as sa

from manila_lite.db.models import networks, share_servers
from tests.simulation import crash_images
from tests.simulation.crashing import Scene

NETWORK = networks.ShareNetwork.__table__
ATTACHED = networks.ShareNetworkSecurityService.__table__
SERVER = share_servers.ShareServer.__table__

SUBNET = {'neutron_net_id': 'net', 'neutron_subnet_id': 'subnet'}


def network_action(cloud, found, action, args, expect=None):
    return cloud.api.request(
        'POST', f'/share-networks/{found["used"]}/action', {action: args}, expect=expect
    )


def new_service(cloud):
    return cloud.api.request(
        'POST', '/security-services', {'security_service': {'type': 'ldap'}}, expect=200
    ).json['security_service']['id']


def replacement(found, to='new'):
    return {'current_service_id': found['service'], 'new_service_id': found[to]}


def replace(cloud, found):
    network_action(cloud, found, 'update_security_service', replacement(found), 202)
    cloud.settle()


def fail_to_replace(cloud, found):
    cloud.driver().half_fail_next('update_share_server_security_service')
    replace(cloud, found)


def add_subnet(cloud, found):
    cloud.api.request(
        'POST',
        f'/share-networks/{found["used"]}/subnets',
        {'share-network-subnet': SUBNET},
        expect=200,
    )
    cloud.settle()


def fail_to_add_subnet(cloud, found):
    cloud.driver().half_fail_next('update_share_server_network_allocations')
    add_subnet(cloud, found)


def check(cloud, found):
    network_action(
        cloud,
        found,
        'update_security_service_check',
        {**replacement(found, 'other'), 'reset_operation': True},
        202,
    )
    cloud.settle()


def delete_network(cloud, found):
    cloud.api.request('DELETE', f'/share-networks/{found["idle"]}', expect=202)
    cloud.settle()


VERBS = Scene.named(
    replace, fail_to_replace, add_subnet, fail_to_add_subnet, check, delete_network
)


def prepare(cloud):
    """Create a checked network with a share, and one with an idle server."""
    found = {
        'used': cloud.add_network(),
        'idle': cloud.add_network(),
        'service': new_service(cloud),
        'new': new_service(cloud),
        'other': new_service(cloud),
    }
    network_action(
        cloud,
        found,
        'add_security_service',
        {'security_service_id': found['service']},
        200,
    )
    found['share'] = cloud.create_share_on_network(found['used'])
    cloud.api.delete(cloud.create_share_on_network(found['idle']))
    cloud.settle()
    for to in ('new', 'other'):
        network_action(
            cloud, found, 'update_security_service_check', replacement(found, to), 202
        )
    network_action(cloud, found, 'share_network_subnet_create_check', SUBNET, 202)
    cloud.settle()
    return found


def check_all(cloud):
    cloud.check_invariants()
    servers = cloud.driver().backend.state.servers
    for network in cloud.rows(sa.select(NETWORK)):
        services = {
            row.security_service_id
            for row in cloud.rows(
                sa.select(ATTACHED).where(ATTACHED.c.share_network_id == network.id)
            )
        }
        for server in cloud.rows(
            sa.select(SERVER).where(SERVER.c.share_network_id == network.id)
        ):
            if server.status == network.status == 'active':
                record = servers.find(server.id)
                assert set(record['security_services'].values()) == services


SCENE = Scene(
    name='networks',
    prepare=prepare,
    verbs=VERBS,
    kind=crash_images.CrashableShareServersCloud,
    options={'backends': ['alpha']},
    check=check_all,
    without_driver=['check'],
    seeds=(50, 1),
    least=3,
)
