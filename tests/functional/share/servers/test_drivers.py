"""What drivers with share servers are given, and what they report."""

import pytest
import sqlalchemy as sa

from manila_lite import conf
from tests.functional.share.servers.server_calls import delete_idle, details, manage
from tests.support import cloud_snapshots, databases
from tests.support.cloud import Cloud
from tests.support.dhss import INSTANCE, ShareServersCloud

# Arguments of drivers, reports for schedulers


def test_every_driver_method_gets_the_share_server(cloud):
    reported = {}
    driver = cloud.driver()

    def note(name, found):
        def call(*args, **kwargs):
            reported.setdefault(name, []).append(
                kwargs.get('share_server', args[-1] if args else None)
            )
            return found(*args, **kwargs)

        return call

    for name in (
        'create_share',
        'delete_share',
        'extend_share',
        'shrink_share',
        'create_snapshot',
        'delete_snapshot',
        'revert_to_snapshot',
        'create_share_from_snapshot',
        'update_access',
        'snapshot_update_access',
        'unmanage_with_server',
        'manage_existing_with_server',
    ):
        setattr(
            driver._driver if hasattr(driver, '_driver') else driver,
            name,
            note(name, getattr(driver, name)),
        )
    cloud_snapshots.enable_snapshot_features(cloud)
    network = cloud.add_network()
    share = cloud.create_share_on_network(network, size=2)
    rule = {'access_type': 'ip', 'access_to': '10.0.0.1'}
    cloud.api.act(share, 'allow_access', rule | {'access_level': 'rw'}, None)
    cloud.settle()
    snapshot = cloud_snapshots.create_available(cloud, share)
    cloud_snapshots.act(cloud, snapshot, 'allow_access', rule)
    cloud.settle()
    cloud.api.act(share, 'revert', {'snapshot_id': snapshot})
    cloud.settle()
    copy = cloud.create_share_on_network(network, snapshot_id=snapshot, size=2)
    cloud_snapshots.delete(cloud, snapshot)
    cloud.settle()
    for action, size in (('extend', 3), ('shrink', 1)):
        cloud.api.act(share, action, {'new_size': size})
        cloud.settle()
    (server,) = cloud.servers()
    path = cloud.api.get(f'/shares/{copy}/export_locations')['export_locations'][0][
        'path'
    ]
    cloud.api.act(copy, 'unmanage')
    cloud.settle()
    cloud.api.request(
        'POST',
        '/shares/manage',
        {
            'share': {
                'protocol': 'NFS',
                'export_path': path,
                'service_host': 'node@alpha#pool',
                'share_server_id': server.id,
            }
        },
        expect=200,
    )
    cloud.settle()
    cloud.api.delete(share)
    cloud.settle()
    assert len(reported) == 12
    for name, servers in reported.items():
        for one in servers:
            assert one['id'] == server.id, name
            assert one['backend_details']['server_id'] == server.id
            assert [given['ip_address'] for given in one['network_allocations']] == [
                '10.10.0.2'
            ]


def test_reports_contain_servers_and_their_limits(build_cloud):
    cloud = build_cloud(
        backend_conf='max_shares_per_share_server = 7\nmax_share_server_size = 70'
    )
    share = cloud.create_share_on_network(cloud.add_network())
    cloud.share.backends[0].report()
    (pool,) = cloud.api.get('/scheduler-stats/pools/detail')['pools']
    reported = pool['capabilities']
    assert reported['driver_handles_share_servers'] is True
    assert reported['max_shares_per_share_server'] == 7
    assert reported['max_share_server_size'] == 70
    assert reported['share_server_multiple_subnet_support'] is True
    assert reported['security_service_update_support'] is True
    assert reported['network_allocation_update_support'] is True
    assert reported['ipv4_support'] is True
    assert reported['server_pools_mapping'] == {
        cloud.server_of(share): [{'pool_name': 'pool'}]
    }


def test_ip_versions_are_limited_to_those_of_the_network(build_cloud):
    cloud = build_cloud(
        backend_conf="""
network_plugin_ipv4_enabled = false
network_plugin_ipv6_enabled = true
standalone_network_plugin_gateway = fd00::1
standalone_network_plugin_mask = 64
"""
    )
    cloud.settle()
    (pool,) = cloud.api.get('/scheduler-stats/pools/detail')['pools']
    assert pool['capabilities']['ipv4_support'] is False


# Inconsistent configuration


def test_share_on_a_network_requires_a_dhss_driver(tmp_path):
    cloud = Cloud(tmp_path, backends=['alpha'])
    network = cloud.api.request(
        'POST', '/share-networks', {'share_network': {}}, expect=200
    ).json['share_network']['id']
    share = cloud.api.create()['id']
    # As if the back end had been reconfigured since it was chosen.
    cloud.db.write(
        lambda session: session.run(
            sa.update(INSTANCE).values(share_network_id=network)
        )
    )
    cloud.settle()
    assert cloud.api.show(share)['status'] == 'error'
    assert details(cloud) == ['003']
    cloud.db.dispose()


def test_back_end_with_invalid_network_options_does_not_start(tmp_path):
    with pytest.raises(
        conf.BadConfiguration, match=r'section \[alpha\].*mask is not a mask: 99'
    ):
        ShareServersCloud(
            tmp_path,
            backends=['alpha'],
            backend_conf='standalone_network_plugin_mask = 99',
        )


# Every database


@pytest.mark.parametrize('kind', ['mysql', 'postgresql'])
def test_server_lifecycle_on_every_database(tmp_path, kind):
    with databases.temporary_database(kind, tmp_path) as url:
        cloud = ShareServersCloud(tmp_path, backends=['alpha'], url=url)
        network = cloud.add_network()
        shares = [cloud.create_share_on_network(network) for _ in range(2)]
        other = cloud.api.create(share_network_id=cloud.add_network())['id']
        cloud.driver().fail_next('_setup_server')
        cloud.settle()
        cloud.check_invariants()
        assert sorted(server.status for server in cloud.servers()) == [
            'active',
            'error',
        ]
        for share in (*shares, other):
            cloud.api.delete(share)
        cloud.settle()
        delete_idle(cloud)
        cloud.check_invariants()
        assert [server.status for server in cloud.servers()] == ['error']
        cloud.api.request(
            'DELETE', f'/share-servers/{cloud.servers()[0].id}', expect=202
        )
        cloud.settle()
        cloud.driver().add_unmanaged_server('theirs', ['10.10.0.50'])
        server = manage(cloud, network, 'theirs')
        assert cloud.addresses() == {server: {'10.10.0.50'}}
        cloud.check_invariants()
        cloud.db.dispose()
