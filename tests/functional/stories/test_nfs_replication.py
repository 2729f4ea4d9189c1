"""Replicas of a share that NFS clients mount, on two btrfs back ends.

Requests use the official command line; the clients are real ones. Those of
share servers are in the network of the tenant.
"""

import contextlib

import pytest

from manila_lite.share.drivers.btrfs import kernel
from tests.functional.stories import suites
from tests.functional.stories.conftest import new_installation
from tests.support import storage, tenant_network
from tests.support.cli import Cli
from tests.support.nfs_client import NfsClient, NfsError
from tests.support.processes import free_port, wait_until

pytestmark = suites.clients

WRITER = '127.0.0.2'
SIDES = ('north', 'south')
ADDRESSES = {'north': '10.32.0.10', 'south': '10.32.0.20'}
TENANT_CLIENT = '10.32.0.99'
PORT = 2049


class Site:
    """Two back ends of one domain, and a client at an address."""

    client = WRITER
    has_servers = 'false'

    def __init__(self, installation, style, ports, folder):
        self.installation, self.ports = installation, ports
        self.folder = folder
        self.cli = Cli('--os-auth-type', 'none', '--os-endpoint', installation.url)
        self.rest = installation.rest('admin')
        self.cli(
            *('share type create', 'mirrored', self.has_servers),
            *('--extra-specs', f'replication_type={style}'),
            *('--snapshot-support', 'true'),
            *('--revert-to-snapshot-support', 'true'),
        )

    def create(self):
        """Create a share that the client has access to; return its id."""
        share = self.cli('share create', 'NFS', 1, *self.network())['id']
        self.rest.wait_at_rest(share)
        self.cli('share access create', share, 'ip', self.client)
        return share

    def network(self):
        """Return the options of a new share that name its network."""
        return ()

    def replica(self, id):
        return self.rest.get(f'/share-replicas/{id}')['share_replica']

    def wait(self, id, state):
        return wait_until(
            lambda: (
                (found := self.replica(id))['replica_state'] == state
                and found['status'] == 'available'
                and self.installation.pending_work() == 0
                and found
            ),
            f'replica {id} is {state}',
        )

    def mount(self, id):
        """Return a client of a replica, and the path that it mounts."""
        locations = self.rest.get(f'/share-replicas/{id}/export-locations')
        (path,) = (one['path'] for one in locations['export_locations'])
        address, _, path = path.partition(':')
        return self.connect(self.side(id), address), path

    def side(self, id):
        """Return the back end of a replica."""
        return self.replica(id)['host'].partition('@')[2].partition('#')[0]

    def connect(self, side, address):
        return NfsClient(address, self.ports[side], self.client)

    def sees(self, id, name, text):
        """Return whether clients of a replica read a text."""
        client, path = self.mount(id)
        try:
            return client.read(path, name) == text
        except NfsError:
            return False

    def promote(self, id):
        self.cli('share replica promote', id)
        self.wait(id, 'active')

    @contextlib.contextmanager
    def without_disk(self, side):
        """Take the pool of a back end away from this machine."""
        image = self.folder / f'{side}.img'
        away = image.rename(self.folder / 'away.img')
        kernel.unmount(self.folder / side / 'pools' / 'pool')
        self.wait_for_backend(side, 'down')
        try:
            yield
        finally:
            away.rename(image)
        self.wait_for_backend(side, 'up')

    def wait_for_backend(self, side, state):
        host = self.installation.service_host(side)
        wait_until(
            lambda: (
                self.rest.get(f'/services?host={host}')['services'][0]['state'] == state
            ),
            f'{side} is {state}',
        )


class ServedSite(Site):
    """The same with share servers, which are on a bridge with the client."""

    client = TENANT_CLIENT
    has_servers = 'true'

    def __init__(self, installation, style, machine, folder):
        super().__init__(installation, style, {}, folder)
        self.machine = machine

    def network(self):
        self.cli('share network create', '--name', 'net')
        return '--share-network', 'net'

    def connect(self, side, address):
        assert address == ADDRESSES[side]
        return self.machine.nfs(address, PORT)


@pytest.fixture(
    params=[
        (style, servers) for style in ('readable', 'dr') for servers in (False, True)
    ],
    ids=lambda param: '-on-servers'.join([param[0], ''][: 1 + param[1]]),
)
def site(request, tmp_path):
    style, with_servers = request.param
    with contextlib.ExitStack() as stack:
        if with_servers:
            storage.require_servers()
            bridge = stack.enter_context(tenant_network.bridge())
            machine = stack.enter_context(
                tenant_network.client_on(bridge, f'{TENANT_CLIENT}/24')
            )
        storage.require()
        folder = stack.enter_context(storage.folder())
        ports = {side: free_port() for side in SIDES}
        backends = {
            side: {
                'share_driver': 'btrfs',
                'driver_handles_share_servers': with_servers,
                'replication_domain': 'domain',
                'backend_availability_zone': side,
                'btrfs_replication_type': style,
                'btrfs_root': str(folder / side),
                'btrfs_pools': 'pool:'
                + str(storage.create_pool(folder / f'{side}.img')),
                **(
                    _on_bridge(bridge, ADDRESSES[side])
                    if with_servers
                    else {
                        'btrfs_export_addresses': '127.0.0.1',
                        'btrfs_nfs_port': ports[side],
                    }
                ),
            }
            for side in SIDES
        }
        installation = stack.enter_context(
            new_installation(
                tmp_path / 'installation',
                options='default_share_type = mirrored\n'
                'replica_state_update_interval = 1',
                backends=backends,
            )
        )
        installation.start()
        yield (
            ServedSite(installation, style, machine, folder)
            if with_servers
            else Site(installation, style, ports, folder)
        )


def _on_bridge(bridge, address):
    """Return the options of share servers with an address."""
    return {
        'btrfs_bridge': bridge,
        'btrfs_nfs_port': PORT,
        'standalone_network_plugin_gateway': '10.32.0.1',
        'standalone_network_plugin_mask': '24',
        'standalone_network_plugin_network_type': 'flat',
        'standalone_network_plugin_allowed_ip_ranges': address,
    }


def test_share_is_promoted_there_and_back(site, request):
    style, _ = request.node.callspec.params['site']
    share = site.create()
    (first,) = (one['id'] for one in site.rest.get('/share-replicas')['share_replicas'])
    client, path = site.mount(first)
    wait_until(lambda: _looks_up(client, path), 'the client has access')
    client.write(path, 'notes', b'one')

    second = site.cli('share replica create', share)['id']
    site.wait(second, 'in_sync')
    snapshot = site.cli('share snapshot create', share)['id']
    wait_until(
        lambda: (
            site.rest.get(f'/snapshots/{snapshot}')['snapshot']['status'] == 'available'
        ),
        'the snapshot is on both sides',
    )
    client.write(path, 'notes', b'two')
    site.cli('share replica resync', second)
    there, there_path = site.mount(second)
    if style == 'readable':
        wait_until(lambda: site.sees(second, 'notes', b'two'), 'it is read')
        with pytest.raises(NfsError, match='NFS4ERR_ROFS'):
            there.write(there_path, 'notes', b'no!')
    else:
        with pytest.raises(NfsError, match='NFS4ERR_NOENT'):
            there.look_up(there_path)

    client.write(path, 'notes', b'last')
    site.promote(second)
    wait_until(lambda: site.sees(second, 'notes', b'last'), 'it is read')
    with pytest.raises(NfsError):
        client.write(path, 'notes', b'lost')
    there, there_path = site.mount(second)
    there.write(there_path, 'more', b'three')

    site.cli('share replica resync', first)
    site.wait(first, 'in_sync')
    site.promote(first)
    wait_until(lambda: site.sees(first, 'more', b'three'), 'it is read')
    client, path = site.mount(first)
    client.write(path, 'more', b'four!')
    assert client.read(path, 'notes') == b'last'

    site.cli('share revert', snapshot)
    site.rest.wait_at_rest(share)
    wait_until(lambda: site.sees(first, 'notes', b'one'), 'it is reverted')
    site.cli('share replica delete', second)
    wait_until(
        lambda: len(site.rest.get('/share-replicas')['share_replicas']) == 1,
        'the replica is gone',
    )
    assert site.sees(first, 'notes', b'one')


def _looks_up(client, path):
    try:
        return client.look_up(path)
    except NfsError:
        return False


@pytest.mark.parametrize('site', [('readable', False), ('dr', True)], indirect=True)
def test_share_fails_over_without_the_disk_of_its_source(site):
    share = site.create()
    (first,) = (one['id'] for one in site.rest.get('/share-replicas')['share_replicas'])
    client, path = site.mount(first)
    wait_until(lambda: _looks_up(client, path), 'the client has access')
    second = site.cli('share replica create', share)['id']
    client.write(path, 'notes', b'one')
    site.cli('share replica resync', second)
    site.wait(second, 'in_sync')

    with site.without_disk(site.side(first)):
        site.promote(second)
        wait_until(lambda: site.sees(second, 'notes', b'one'), 'it is read')
        there, there_path = site.mount(second)
        there.write(there_path, 'notes', b'two')
        with pytest.raises((NfsError, OSError)):
            client.write(path, 'notes', b'lost')
        assert site.replica(first)['replica_state'] != 'in_sync'
        there.write(there_path, 'more', b'three')

    assert not site.sees(first, 'notes', b'one')
    site.cli('share replica resync', first)
    site.wait(first, 'in_sync')
    site.promote(first)
    wait_until(lambda: site.sees(first, 'notes', b'two'), 'it is read')
    client, path = site.mount(first)
    assert client.read(path, 'more') == b'three'
    client.write(path, 'notes', b'four')
    assert client.read(path, 'notes') == b'four'
