"""Share servers in the networks of two tenants, from request to bytes.

The networks are bridges of this machine with the same addresses. Operators and
tenants use the official command line; the clients are in network namespaces.
"""

import contextlib
import json
import os
import pathlib
import signal
import time
import typing

import pytest

from tests.functional.stories import suites
from tests.functional.stories.conftest import new_installation
from tests.support import storage, tenant_network
from tests.support.cli import Cli
from tests.support.installation import Installation
from tests.support.nfs_client import NfsClient, NfsError
from tests.support.processes import wait_until
from tests.support.rest_client import RestClient
from tests.support.tenant_network import TenantClient

pytestmark = suites.clients

SEGMENTS = {'red': 201, 'blue': 202}
ADDRESS, CLIENT, STRANGER = '10.30.0.10', '10.30.0.99', '10.30.0.98'
PORT = 2049
DEVICES = pathlib.Path('/sys/class/net')


class Tenant:
    """A project with a network, a client in it, and a back end for it."""

    def __init__(
        self,
        name: str,
        installation: Installation,
        root: pathlib.Path,
        client: TenantClient,
        stranger: TenantClient,
    ):
        self.name = name
        self.rest: RestClient = installation.rest(name)
        self.cli = Cli(
            *('--os-auth-type', 'admin_token', '--os-token', f'user:{name}'),
            *('--os-endpoint', installation.url),
        )
        self.root = root
        self.client = client
        self.stranger = stranger
        self.pending_work = installation.pending_work
        self.network = self.cli('share network create', '--name', name)['id']

    def create(self) -> str:
        """Create a share with a rule for the client; return its id."""
        share = self.cli(
            *('share create', 'NFS', 1, '--share-type', self.name),
            *('--share-network', self.network),
        )['id']
        self.wait()
        assert self.rest.show(share)['project_id'] == self.name
        self.allow(share, CLIENT)
        return share

    def allow(self, share: str, to: str) -> None:
        self.cli('share access create', share, 'ip', to)
        self.wait()

    def wait(self) -> None:
        wait_until(lambda: not self.pending_work(), 'no work is pending')

    def location(self, share: str) -> tuple[str, str]:
        """Return the address and the path that clients mount."""
        (location,) = self.cli('share export location list', share)
        address, _, path = location['Path'].partition(':')
        return address, path

    def nfs(self) -> NfsClient:
        return self.client.nfs(ADDRESS, PORT)

    def server(self) -> pathlib.Path:
        """Return the folder of the only share server."""
        (folder,) = (self.root / 'servers').iterdir()
        return folder

    def pid(self, daemon: str) -> int:
        record = self.server() / 'nfs' / f'{daemon}.json'
        return json.loads(record.read_text())['pid']

    def traces(self) -> list[pathlib.Path]:
        """Return the paths of all that there is of the share server."""
        folder = self.server()
        record = json.loads((folder / 'server.json').read_text())
        return [
            folder,
            *(DEVICES / link[0] for link in record['links']),
            *(
                pathlib.Path('/proc', str(self.pid(daemon)), 'exe')
                for daemon in ('server', 'bus')
            ),
        ]


class Deployment(typing.NamedTuple):
    installation: Installation
    cli: Cli
    red: Tenant
    blue: Tenant


@pytest.fixture(scope='module')
def deployment(tmp_path_factory):
    storage.require_servers()
    prefix = tenant_network.new_name()
    with contextlib.ExitStack() as stack:
        bridges = {
            name: stack.enter_context(tenant_network.bridge(f'{prefix}{segment}'))
            for name, segment in SEGMENTS.items()
        }
        folder = stack.enter_context(storage.folder())
        backends = {}
        for name, segment in SEGMENTS.items():
            (folder / name).mkdir()
            options = storage.options(folder / name)
            backends[name] = {
                **options,
                'share_driver': 'btrfs',
                'share_backend_name': name,
                'driver_handles_share_servers': 'true',
                'btrfs_pools': f'pool:{options["btrfs_pools"]["pool"]}',
                'btrfs_export_addresses': '',
                'btrfs_bridge': f'{prefix}{{segmentation_id}}',
                'btrfs_nfs_port': PORT,
                'standalone_network_plugin_gateway': '10.30.0.1',
                'standalone_network_plugin_mask': '24',
                'standalone_network_plugin_network_type': 'vlan',
                'standalone_network_plugin_segmentation_id': segment,
                'standalone_network_plugin_allowed_ip_ranges': ADDRESS,
            }
        installation = stack.enter_context(
            new_installation(
                tmp_path_factory.mktemp('servers') / 'installation', backends=backends
            )
        )
        installation.start()
        cli = Cli('--os-auth-type', 'none', '--os-endpoint', installation.url)
        tenants = []
        for name, bridge in bridges.items():
            cli(
                'share type create', name, 'true',
                '--snapshot-support', 'true',
                '--revert-to-snapshot-support', 'true',
                '--mount-snapshot-support', 'true',
                '--extra-specs', f'share_backend_name={name}',
            )  # fmt: skip
            clients = [
                stack.enter_context(tenant_network.client_on(bridge, f'{address}/24'))
                for address in (CLIENT, STRANGER)
            ]
            tenants.append(
                Tenant(
                    name,
                    installation,
                    pathlib.Path(backends[name]['btrfs_root']),
                    *clients,
                )
            )
        yield Deployment(installation, cli, *tenants)


def refused(status):
    return pytest.raises(NfsError, match=f'NFS4ERR_{status} ')


def serves(tenant, path):
    with contextlib.suppress(OSError, NfsError):
        return tenant.nfs().read(path, 'notes') == b'hello'
    return False


def test_tenants_with_equal_addresses_see_only_their_shares(deployment):
    tenants = deployment.red, deployment.blue
    paths = []
    for tenant in tenants:
        address, path = tenant.location(tenant.create())
        assert address == ADDRESS
        tenant.nfs().write(path, 'notes', tenant.name.encode())
        with refused('NOENT'):
            tenant.stranger.nfs(ADDRESS, PORT).look_up(path)
        paths.append(path)
    for tenant, own, other in zip(tenants, paths, paths[::-1], strict=True):
        assert tenant.nfs().read(own, 'notes') == tenant.name.encode()
        with refused('NOENT'):
            tenant.nfs().look_up(other)
        names = tenant.nfs().names_in('/shares')
        assert own.rpartition('/')[2] in names
        assert other.rpartition('/')[2] not in names


def test_snapshot_is_mounted_from_its_server_and_reverted_to(deployment):
    tenant, cli = deployment.red, deployment.red.cli
    share = tenant.create()
    _, path = tenant.location(share)
    tenant.nfs().write(path, 'notes', b'then')
    snapshot = tenant.cli('share snapshot create', share)['id']
    tenant.wait()
    tenant.nfs().write(path, 'notes', b'now!')
    cli('share snapshot access create', snapshot, 'ip', CLIENT)
    tenant.wait()
    locations = tenant.rest.get(f'/snapshots/{snapshot}/export-locations')
    (location,) = locations['share_snapshot_export_locations']
    address, _, mounted = location['path'].partition(':')
    assert address == ADDRESS
    assert tenant.nfs().read(mounted, 'notes') == b'then'
    with refused('ROFS'):
        tenant.nfs().write(mounted, 'notes', b'')
    cli('share revert', snapshot)
    tenant.wait()
    assert tenant.nfs().read(path, 'notes') == b'then'
    assert tenant.rest.show(share)['status'] == 'available'
    cli('share snapshot delete', snapshot)
    tenant.wait()
    cli('share delete', share)
    tenant.rest.wait_gone(share)


def test_killed_server_is_back_while_the_service_is_stopped(deployment):
    tenant = deployment.blue
    share = tenant.create()
    _, path = tenant.location(share)
    tenant.nfs().write(path, 'notes', b'hello')
    deployment.installation.kill('serve')
    assert serves(tenant, path)
    began = time.monotonic()
    os.kill(tenant.pid('server'), signal.SIGKILL)
    wait_until(lambda: serves(tenant, path), 'the server is back')
    assert time.monotonic() - began < 5
    pid = tenant.pid('server')
    deployment.installation.start()
    assert tenant.pid('server') == pid
    tenant.cli('share resize', share, 2)
    assert tenant.rest.wait_at_rest(share)['size'] == 2


def test_nothing_is_left_of_a_deleted_server(deployment):
    tenant = deployment.red
    tenant.create()
    traces = tenant.traces()
    assert all(path.exists() for path in traces)
    (server,) = deployment.cli('share server list', '--share-network', tenant.network)
    shown = deployment.cli('share server show', server['ID'])
    assert shown['details:addresses'] == ADDRESS
    for share in deployment.cli(
        'share list', '--all-projects', '--share-server', server['ID']
    ):
        deployment.cli('share delete', share['ID'])
        tenant.rest.wait_gone(share['ID'])
    deployment.cli('share server delete', server['ID'])
    wait_until(
        lambda: (
            not deployment.cli('share server list', '--share-network', tenant.network)
        ),
        'the server is deleted',
    )
    assert not [path for path in traces if path.exists()]
    mounts = pathlib.Path('/proc/self/mounts').read_text()
    assert server['ID'] not in mounts
