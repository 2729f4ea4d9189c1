"""A share server migrates while a client writes to a share on it.

The client is in a network namespace. It writes numbered records, each to disk
before the next, and connects again to where the share is exported. The
administrator uses the official command line.
"""

from concurrent import futures
import contextlib
import pathlib
import threading

import pytest

from tests.functional.stories import suites
from tests.functional.stories.conftest import new_installation
from tests.support import storage, tenant_network
from tests.support.cli import Cli
from tests.support.nfs_client import NfsError
from tests.support.processes import wait_until
from tests.support.rest_client import RestClient
from tests.support.tenant_network import TenantClient

pytestmark = suites.clients

ADDRESSES = {'here': '10.30.0.10', 'there': '10.30.0.20'}
CLIENT = '10.30.0.99'
PORT = 2049
RECORD = 16
FIRST_RECORDS = 20
LARGE = 256 << 20
NEWEST = '2.95'  # known to the client for server migration
OPTIONS = (
    '--writable',
    'True',
    '--nondisruptive',
    'False',
    '--preserve-snapshots',
    'True',
)


class Site:
    """A share server with one share, and another back end."""

    def __init__(self, installation, client: TenantClient, roots):
        self.installation = installation
        self.client = client
        self.roots = roots
        self.cli = Cli(
            '--os-auth-type', 'none', '--os-endpoint', installation.url, version=NEWEST
        )
        self.rest: RestClient = installation.rest('admin')
        self.cli('share type create', 'served', 'true',
                 '--snapshot-support', 'true',
                 '--mount-snapshot-support', 'true')  # fmt: skip
        self.cli('share network create', '--name', 'net')
        self.share = self.cli(
            *('share create', 'NFS', 1, '--share-type', 'served'),
            *('--share-network', 'net'),
        )['id']
        self.wait_idle()
        self.cli('share access create', self.share, 'ip', CLIENT)
        self.wait_idle()

    def wait_idle(self) -> None:
        wait_until(lambda: not self.installation.pending_work(), 'no work is pending')

    def location(self) -> tuple[str, str]:
        """Return the address and the path that clients mount."""
        # The writer asks, too, and the command line is for one thread.
        locations = self.rest.get(f'/shares/{self.share}/export_locations')
        (path,) = (one['path'] for one in locations['export_locations'])
        address, _, path = path.partition(':')
        return address, path

    def server(self) -> dict:
        (server,) = self.cli('share server list', '--status', 'active')
        return self.cli('share server show', server['ID'])

    def other_host(self) -> str:
        current = self.server()['host'].rpartition('@')[2]
        (other,) = set(ADDRESSES) - {current}
        return self.installation.service_host(other)

    def start_migration(self) -> str:
        server = self.server()['id']
        host = self.other_host()
        start = ('share server migration start', server, host, *OPTIONS)
        assert self.cli(*start, '--check-only')['compatible'] is True
        self.cli(*start)
        return server

    def wait_for(self, server: str, *states: str) -> None:
        def has_come() -> bool:
            shown = self.cli('share server migration show', server)
            assert shown['task_state'] != 'migration_error'
            return shown['task_state'] in states

        wait_until(has_come, ' or '.join(states))

    def leftovers(self) -> list[pathlib.Path]:
        """Return what migrations have left on the back ends."""
        return [
            path
            for root in self.roots.values()
            for folder in (
                root / 'arriving',
                root / 'leaving',
                root / 'pools' / 'pool' / 'moving',
            )
            if folder.exists()
            for path in folder.iterdir()
        ]


class Writer:
    """A client that writes records until it is stopped."""

    def __init__(self, site: Site):
        self.acknowledged = 0
        self.connections = 0
        self._site = site
        self._stopped = threading.Event()
        self._executor = futures.ThreadPoolExecutor(1)

    def __enter__(self) -> 'Writer':
        self._work = self._executor.submit(self._run)
        return self

    def __exit__(self, *error: object) -> None:
        self._stopped.set()
        self._executor.shutdown()
        self._work.result()

    def _run(self) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(NfsError, OSError):
                self._write_until_interrupted()

    def _write_until_interrupted(self) -> None:
        address, path = self._site.location()
        nfs = self._site.client.nfs(address, PORT)
        with contextlib.closing(nfs):
            file = nfs.open(path, 'records', create=True)
            self.connections += 1
            while not self._stopped.is_set():
                nfs.write_at(
                    file, self.acknowledged * RECORD, record(self.acknowledged)
                )
                self.acknowledged += 1

    def wait_for_more(self) -> None:
        wanted = self.acknowledged + FIRST_RECORDS
        wait_until(
            lambda: self.acknowledged >= wanted or self._work.done(),
            f'{wanted} records are written',
        )


def record(number: int) -> bytes:
    return b'%0*d\n' % (RECORD - 1, number)


@pytest.fixture
def site(tmp_path):
    storage.require_servers()
    with contextlib.ExitStack() as stack:
        bridge = stack.enter_context(tenant_network.bridge())
        client = stack.enter_context(tenant_network.client_on(bridge, f'{CLIENT}/24'))
        folder = stack.enter_context(storage.folder())
        backends = {}
        for name, address in ADDRESSES.items():
            (folder / name).mkdir()
            options = storage.options(folder / name)
            backends[name] = {
                **options,
                'share_driver': 'btrfs',
                'driver_handles_share_servers': 'true',
                'btrfs_pools': f'pool:{options["btrfs_pools"]["pool"]}',
                'btrfs_export_addresses': '',
                'btrfs_bridge': bridge,
                'btrfs_nfs_port': PORT,
                'standalone_network_plugin_gateway': '10.30.0.1',
                'standalone_network_plugin_mask': '24',
                'standalone_network_plugin_network_type': 'flat',
                'standalone_network_plugin_allowed_ip_ranges': address,
            }
        installation = stack.enter_context(
            new_installation(
                tmp_path / 'installation',
                backends=backends,
                options='server_migration_driver_continue_update_interval = 1\n',
            )
        )
        installation.start()
        yield Site(
            installation,
            client,
            {
                name: pathlib.Path(options['btrfs_root'])
                for name, options in backends.items()
            },
        )


def test_no_acknowledged_write_is_lost(site):
    snapshot = site.cli('share snapshot create', site.share)['id']
    site.wait_idle()
    site.cli('share snapshot access create', snapshot, 'ip', CLIENT)
    site.wait_idle()
    address, path = site.location()
    with Writer(site) as writer:
        writer.wait_for_more()
        server = site.start_migration()
        site.wait_for(server, 'migration_driver_phase1_done')
        writer.wait_for_more()
        assert writer.connections == 1
        site.cli('share server migration complete', server)
        site.wait_for(server, 'migration_success')
        site.wait_idle()
        writer.wait_for_more()
    there, path = site.location()
    assert {address, there} == set(ADDRESSES.values())
    nfs = site.client.nfs(there, PORT)
    written = nfs.read(path, 'records')
    lost = [
        number
        for number in range(writer.acknowledged)
        if written[number * RECORD : (number + 1) * RECORD] != record(number)
    ]
    assert not lost
    assert not [
        root for root in site.roots.values() if (root / 'servers' / server).exists()
    ]
    locations = site.rest.get(f'/snapshots/{snapshot}/export-locations')
    (location,) = locations['share_snapshot_export_locations']
    mounted = location['path'].partition(':')
    assert mounted[0] == there
    assert nfs.names_in(mounted[2]) == set()
    assert len(site.cli('share server list')) == 1
    assert not site.leftovers()


def test_cancelled_migration_does_not_interrupt_the_client(site):
    address, path = site.location()
    site.client.nfs(address, PORT).write(path, 'large', bytes(LARGE))
    with Writer(site) as writer:
        writer.wait_for_more()
        for states in (
            ('migration_driver_in_progress', 'migration_driver_phase1_done'),
            ('migration_driver_phase1_done',),
        ):
            server = site.start_migration()
            site.wait_for(server, *states)
            site.cli('share server migration cancel', server)
            site.wait_for(server, 'migration_cancelled')
            site.wait_idle()
            writer.wait_for_more()
    assert writer.connections == 1
    assert site.location() == (address, path)
    assert site.rest.show(site.share)['status'] == 'available'
    assert len(site.cli('share server list')) == 1
    assert not site.leftovers()
