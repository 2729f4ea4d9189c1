"""Crashes at every point of a change of a share network in use.

As in `test_share_server_crashes`. In the end the network and its servers
are at rest together; active servers have the security services of their
network and addresses in each of its subnets.
"""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import networks
from manila_lite.db.models import share_servers
from tests.simulation import crash_images
from tests.simulation import crashing
from tests.simulation import pausing
from tests.support import sampling

NETWORK = networks.ShareNetwork.__table__
ATTACHED = networks.ShareNetworkSecurityService.__table__
SERVER = share_servers.ShareServer.__table__

SUBNET = {'neutron_net_id': 'net', 'neutron_subnet_id': 'subnet'}


def network_action(cloud, found, action, args, expect=None):
    return cloud.api.request(
        'POST',
        f'/share-networks/{found["used"]}/action',
        {action: args},
        expect=expect,
    )


def new_service(cloud):
    return cloud.api.request(
        'POST',
        '/security-services',
        {'security_service': {'type': 'ldap'}},
        expect=200,
    ).json['security_service']['id']


def replacement(found, to='new'):
    return {
        'current_service_id': found['service'],
        'new_service_id': found[to],
    }


def replace(cloud, found):
    network_action(
        cloud, found, 'update_security_service', replacement(found), 202
    )
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


VERBS = {
    verb.__name__: verb
    for verb in (
        replace,
        fail_to_replace,
        add_subnet,
        fail_to_add_subnet,
        check,
        delete_network,
    )
}


@pytest.fixture(scope='module')
def prepared(tmp_path_factory):
    """A network with a share, all checks done, and one with an idle server."""
    cloud = crash_images.CrashableShareServersCloud(
        tmp_path_factory.mktemp('networks'), seed=10_000, backends=['alpha']
    )
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
            cloud,
            found,
            'update_security_service_check',
            replacement(found, to),
            202,
        )
    network_action(
        cloud, found, 'share_network_subnet_create_check', SUBNET, 202
    )
    cloud.settle()
    cloud.db.dispose()
    return cloud.folder, crash_images.capture(cloud), found


def begin(prepared, seed, image=None, backend_conf=''):
    folder, initial, _ = prepared
    return crash_images.start_on(
        image or initial,
        folder,
        seed,
        crash_images.CrashableShareServersCloud,
        backends=['alpha'],
        backend_conf=backend_conf,
    )


def check_all(cloud):
    cloud.check_invariants()
    servers = cloud.driver().backend.state.servers
    for network in cloud.rows(sa.select(NETWORK)):
        services = {
            row.security_service_id
            for row in cloud.rows(
                sa.select(ATTACHED).where(
                    ATTACHED.c.share_network_id == network.id
                )
            )
        }
        for server in cloud.rows(
            sa.select(SERVER).where(SERVER.c.share_network_id == network.id)
        ):
            if server.status == network.status == 'active':
                record = servers.find(server.id)
                assert set(record['security_services'].values()) == services


@sampling.enumeration
@pytest.mark.parametrize('name', VERBS)
def test_a_crash_anywhere_leaves_all_at_rest(prepared, name):
    cloud = begin(prepared, 1)
    points = crash_images.images_at_crash_points(
        cloud, lambda: VERBS[name](cloud, prepared[2])
    )
    check_all(cloud)
    cloud.db.dispose()

    def recover(number, image):
        cloud = begin(prepared, 100 + number, image)
        cloud.settle()
        check_all(cloud)
        cloud.db.dispose()

    crashing.recover_from_each(points, recover, name, least=3)


@sampling.enumeration
@pytest.mark.parametrize('seed', sampling.seeds(80, 5))
def test_concurrent_changes_are_done_in_some_order(prepared, seed):
    """Of two changes of one network one is made and the other refused."""
    cloud = begin(prepared, seed)
    found = prepared[2]
    cloud.loss_rate, cloud.duplicate_rate = 0.3, 0.3
    competing_runners = cloud.competing_runners()
    codes = []
    actions = [
        lambda: codes.append(
            network_action(
                cloud, found, 'update_security_service', replacement(found)
            ).status_int
        ),
        lambda: codes.append(
            network_action(
                cloud,
                found,
                'update_security_service',
                replacement(found, 'other'),
            ).status_int
        ),
        lambda: codes.append(
            cloud.api.request(
                'POST',
                f'/share-networks/{found["used"]}/subnets',
                {'share-network-subnet': SUBNET},
            ).status_int
        ),
        lambda: cloud.api.create(share_network_id=found['used'], expect=None),
        lambda: cloud.api.delete(found['share'], expect=None),
        lambda: cloud.api.request(
            'DELETE', f'/share-networks/{found["idle"]}'
        ),
        lambda: cloud.api.create(share_network_id=found['idle'], expect=None),
    ]
    cloud.rng.shuffle(actions)

    def run_competitors():
        for _ in range(cloud.rng.randrange(6)):
            cloud.rng.choice(competing_runners).step()

    for action in actions:
        cloud.pause_at(
            cloud.rng.choice(
                [
                    'committed',
                    'before update_share_server_security_service',
                    'before update_share_server_network_allocations',
                    'before create_share',
                ]
            ),
            run_competitors,
        )
        action()
        for _ in range(cloud.rng.randrange(4)):
            cloud.step()
    cloud.clear_pauses()
    assert sum(code < 300 for code in codes) <= 1
    assert all(code < 500 for code in codes)
    cloud.settle()
    check_all(cloud)
    cloud.db.dispose()


@sampling.combinations('fencing', 'name')
@pausing.FENCING
@pytest.mark.parametrize('name', [name for name in VERBS if name != 'check'])
def test_a_pause_in_any_driver_call_leaves_all_at_rest(
    prepared, name, fencing, shared_database
):
    def start():
        cloud = begin(prepared, 1, backend_conf=fencing)
        return (
            cloud,
            lambda: VERBS[name](cloud, prepared[2]),
            lambda: check_all(cloud),
        )

    pausing.pause_everywhere(start, name, shared_database)
