"""Replicas of a CIFS share, on two btrfs back ends that have NFS shares, too.

Requests use the official command line, and the clients are smbclient. Those
of share servers are in the network of the tenant.
"""

import contextlib
import pathlib

import pytest

from tests.functional.stories import suites
from tests.functional.stories.cifs_site import LOST, CifsSite, location_in, refused
from tests.functional.stories.conftest import new_installation
from tests.support import storage, tenant_network
from tests.support.processes import free_port, wait_until
from tests.support.smb_client import PASSWORD, SmbClient, SmbError

pytestmark = suites.clients

SIDES = ('north', 'south')
ADDRESSES = {'north': '10.33.0.10', 'south': '10.33.0.20'}
TENANT_CLIENT = '10.33.0.99'
USERS = ('alice', 'robert')
FEATURES = ('snapshot', 'revert-to-snapshot', 'mount-snapshot')
NO_SHARE = 'BAD_NETWORK_NAME'
READ_ONLY = 'ACCESS_DENIED|MEDIA_WRITE_PROTECTED'


class Site(CifsSite):
    """Two back ends of one domain, and a share on one of them."""

    with_servers = 'false'

    def __init__(self, installation, style, roots, ports):
        super().__init__(installation)
        self.style, self.roots, self.ports = style, roots, ports
        self.create_type(
            self.with_servers,
            *('--extra-specs', f'replication_type={style}'),
            *(word for name in FEATURES for word in (f'--{name}-support', 'true')),
        )
        self.create(*self.network())
        (self.first,) = (one['id'] for one in self.replicas())

    def network(self):
        """Return the options of a new share that name its network."""
        return ()

    def add_users(self):
        """Add the users to all that serve CIFS shares."""
        for server in self.servers():
            for user in USERS:
                self.installation.manage(
                    *('storage', 'user', 'add', '--root', *server, user),
                    stdin=f'{PASSWORD}\n',
                )

    def servers(self):
        return [(root,) for root in self.roots.values()]

    def replicas(self):
        return self.rest.get('/share-replicas')['share_replicas']

    def replica(self, id):
        return self.rest.get(f'/share-replicas/{id}')['share_replica']

    def wait_until(self, id, state):
        def has_come():
            found = self.replica(id)
            return (found['replica_state'], found['status']) == (
                state,
                'available',
            ) and not self.installation.pending_work()

        wait_until(has_come, f'replica {id} is {state}')

    def promote(self, id):
        self.cli('share replica promote', id)
        self.wait_until(id, 'active')

    def smb(self, user, id):
        """Return a user of the back end of a replica."""
        side = self.replica(id)['host'].partition('@')[2].partition('#')[0]
        return SmbClient(user, self.ports[side])

    def name(self, id):
        """Return the name by which clients use a replica."""
        found = self.rest.get(f'/share-replicas/{id}/export-locations')
        return location_in(found['export_locations'])[1]

    def snapshot_name(self, snapshot, id):
        """Return the same for a snapshot on the back end of a replica."""
        found = self.rest.get(f'/snapshot-instances?snapshot_id={snapshot}')
        (instance,) = (
            one['id']
            for one in found['snapshot_instances']
            if self.of_replica(one['id']) == id
        )
        found = self.rest.get(f'/snapshot-instances/{instance}/export-locations')
        return location_in(found['share_snapshot_export_locations'])[1]

    def of_replica(self, instance):
        found = self.rest.get(f'/snapshot-instances/{instance}')
        return found['snapshot_instance']['share_instance_id']

    def sees(self, id, name, data):
        """Return whether a user of a replica reads some data."""
        try:
            return self.smb('alice', id).read(self.name(id), name) == data
        except SmbError:
            return False


class ServedSite(Site):
    """The same with share servers, which are on a bridge with the client."""

    with_servers = 'true'

    def __init__(self, installation, style, roots, machine):
        self.machine = machine
        super().__init__(installation, style, roots, {})

    def network(self):
        self.cli('share network create', '--name', 'net')
        return '--share-network', 'net'

    def servers(self):
        return [
            (
                self.roots[server['Host'].partition('@')[2]],
                '--share-server',
                server['ID'],
            )
            for server in self.cli('share server list')
        ]

    def smb(self, user, id):
        side = self.replica(id)['host'].partition('@')[2].partition('#')[0]
        return self.machine.smb(user, ADDRESSES[side], 445)


@pytest.fixture(params=['readable', 'dr-on-servers'])
def site(request, tmp_path):
    style, _, with_servers = request.param.partition('-')
    storage.require_cifs()
    with contextlib.ExitStack() as stack:
        bridge = ''
        if with_servers:
            storage.require_servers()
            bridge = stack.enter_context(tenant_network.bridge())
            machine = stack.enter_context(
                tenant_network.client_on(bridge, f'{TENANT_CLIENT}/24')
            )
        folder = stack.enter_context(storage.folder())
        ports = {side: free_port() for side in SIDES}
        backends = {
            side: {
                'share_driver': 'btrfs',
                'driver_handles_share_servers': bool(with_servers),
                'replication_domain': 'domain',
                'backend_availability_zone': side,
                'btrfs_replication_type': style,
                'btrfs_root': str(folder / side),
                'btrfs_pools': 'pool:'
                + str(storage.create_pool(folder / f'{side}.img')),
                'btrfs_nfs_port': free_port(),
                'btrfs_cifs': True,
                **(
                    _on_bridge(bridge, ADDRESSES[side])
                    if with_servers
                    else {'btrfs_smb_port': ports[side]}
                ),
            }
            for side in SIDES
        }
        installation = stack.enter_context(
            new_installation(
                tmp_path / 'installation',
                options='default_share_type = cifs\nreplica_state_update_interval = 1',
                backends=backends,
            )
        )
        installation.start()
        roots = {
            side: pathlib.Path(options['btrfs_root'])
            for side, options in backends.items()
        }
        yield (
            ServedSite(installation, style, roots, machine)
            if with_servers
            else Site(installation, style, roots, ports)
        )


def _on_bridge(bridge, address):
    """Return the options of share servers with an address."""
    return {
        'btrfs_bridge': bridge,
        'standalone_network_plugin_gateway': '10.33.0.1',
        'standalone_network_plugin_mask': '24',
        'standalone_network_plugin_network_type': 'flat',
        'standalone_network_plugin_allowed_ip_ranges': address,
    }


def test_cifs_share_is_promoted_there_and_back(site):
    first = site.first
    second = site.cli('share replica create', site.id)['id']
    site.wait_until(second, 'in_sync')
    site.add_users()
    site.allow('alice')
    site.allow('robert', 'ro')
    here, there = site.name(first), site.name(second)
    alice = site.smb('alice', first)
    alice.write(here, 'notes', b'one')
    snapshot = site.cli('share snapshot create', site.id)['id']
    wait_until(
        lambda: (
            site.rest.get(f'/snapshots/{snapshot}')['snapshot']['status'] == 'available'
        ),
        'the snapshot is on both sides',
    )
    alice.write(here, 'notes', b'two')
    site.cli('share replica resync', second)
    if site.style == 'readable':
        wait_until(lambda: site.sees(second, 'notes', b'two'), 'it is read')
        with refused(READ_ONLY):
            site.smb('alice', second).write(there, 'notes', b'no')
    else:
        with refused(NO_SHARE):
            site.smb('alice', second)(there, 'ls')

    with alice.session(here) as session:
        session('put /etc/hostname last')
        site.promote(second)
        with refused(LOST):
            session('put /etc/hostname lost')
    assert site.smb('alice', second).names(there) == {'notes', 'last'}
    site.smb('alice', second).write(there, 'notes', b'three')
    assert site.smb('robert', second).read(there, 'notes') == b'three'
    with refused(READ_ONLY):
        site.smb('robert', second).write(there, 'notes', b'no')
    with refused(READ_ONLY if site.style == 'readable' else NO_SHARE):
        alice.write(here, 'notes', b'no')

    site.cli('share snapshot access create', snapshot, 'user', 'robert')
    site.wait()
    mounted = site.smb('robert', second)
    old = site.snapshot_name(snapshot, second)
    assert mounted.read(old, 'notes') == b'one'
    with refused(READ_ONLY):
        mounted.write(old, 'notes', b'no')

    site.cli('share replica resync', first)
    site.wait_until(first, 'in_sync')
    site.promote(first)
    assert alice.read(here, 'notes') == b'three'
    alice.write(here, 'notes', b'four')
    site.cli('share revert', snapshot)
    site.rest.wait_at_rest(site.id)
    wait_until(lambda: site.sees(first, 'notes', b'one'), 'it is reverted')
    site.cli('share replica delete', second)
    wait_until(lambda: len(site.replicas()) == 1, 'the replica is gone')
    assert alice.read(here, 'notes') == b'one'


def test_nfs_and_cifs_shares_of_a_back_end_have_replicas(site):
    second = site.cli('share replica create', site.id)['id']
    other = site.cli('share create', 'NFS', '1', *_same_network(site))['id']
    site.wait()
    third = site.cli('share replica create', other)['id']
    for replica in (second, third):
        site.wait_until(replica, 'in_sync')
        site.promote(replica)
    locations = {
        site.rest.get(f'/share-replicas/{one}/export-locations')['export_locations'][0][
            'path'
        ][:2]
        for one in (second, third)
    }
    assert '\\\\' in locations
    assert len(locations) == 2


def _same_network(site):
    return ('--share-network', 'net') if site.with_servers == 'true' else ()
