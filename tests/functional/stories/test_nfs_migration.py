"""A share that an NFS client writes to moves between btrfs back ends.

Requests use the official command line. The client is in another network
namespace, and writes records until it has lost the share.
"""

import pytest

from tests.functional.stories import suites
from tests.functional.stories.conftest import new_installation
from tests.support import storage, tenant_network
from tests.support.cli import Cli
from tests.support.nfs_client import NfsError
from tests.support.processes import free_port, wait_until
from tests.support.record_writer import RECORD, Writer

pytestmark = suites.clients

NEWEST = '2.95'  # known to the client for share migration
BACKENDS = ('north', 'south')
MIB = 1 << 20
MIGRATION_OPTIONS = (
    *('--writable', 'True', '--nondisruptive', 'False'),
    *('--preserve-metadata', 'True', '--preserve-snapshots', 'True'),
)
CANCELLABLE = 'migration_driver_in_progress', 'migration_driver_phase1_done'
SNAPSHOT_FEATURES = (
    *('--snapshot-support', 'true', '--revert-to-snapshot-support', 'true'),
    *('--mount-snapshot-support', 'true'),
)


class Site:
    """A share, and a client in another network namespace."""

    def __init__(self, installation, ports, machine, client):
        self.installation, self.machine = installation, machine
        self.client = client
        self.ports = ports
        self.cli = Cli(
            *('--os-auth-type', 'none', '--os-endpoint', installation.url),
            version=NEWEST,
        )
        self.rest = installation.rest('admin')
        self.cli('share type create', 'nfs', 'false', *SNAPSHOT_FEATURES)
        self.id = self.cli('share create', 'NFS', '1', '--name', 'first')['id']
        self.wait_idle()
        self.cli('share access create', 'first', 'ip', self.client)
        self.wait_idle()

    def wait_idle(self):
        wait_until(lambda: not self.installation.pending_work(), 'no work left')

    def wait_for(self, *states):
        def is_there():
            found = self.show()['task_state']
            assert found != 'migration_error'
            return found in states

        wait_until(is_there, ' or '.join(states))

    def show(self):
        return self.rest.get(f'/shares/{self.id}')['share']

    @property
    def host(self):
        return self.show()['host']

    def connect(self):
        """Return a client of the share, and the path that it mounts."""
        (location,) = self.rest.get(f'/shares/{self.id}/export_locations')[
            'export_locations'
        ]
        address, _, path = location['path'].partition(':')
        backend = self.host.partition('@')[2].partition('#')[0]
        return self.machine.nfs(address, self.ports[backend]), path

    def take(self, name):
        """Take a snapshot that the client has access to; return its id."""
        self.cli('share snapshot create', 'first', '--name', name)
        self.wait_idle()
        self.cli('share snapshot access create', name, 'ip', self.client)
        self.wait_idle()
        return self.cli('share snapshot show', name)['id']

    def connect_to(self, snapshot):
        """Return a client of a snapshot, and the path that it mounts."""
        (location,) = self.rest.get(
            f'/snapshots/{snapshot}/export-locations', version=NEWEST
        )['share_snapshot_export_locations']
        address, _, path = location['path'].partition(':')
        backend = self.host.partition('@')[2].partition('#')[0]
        return self.machine.nfs(address, self.ports[backend]), path

    def move(self):
        """Move the share to the other back end."""
        host = self.start()
        self.wait_for('migration_driver_phase1_done')
        self.cli('share migration complete', 'first')
        self.wait_for('migration_success')
        self.wait_idle()
        assert self.host == host

    def start(self):
        """Begin to move the share to the other back end; return its host."""
        here = self.host.partition('@')[2].partition('#')[0]
        (there,) = set(BACKENDS) - {here}
        host = f'{self.installation.service_host(there)}#pool'
        self.cli('share migration start', 'first', host, *MIGRATION_OPTIONS)
        return host

    def write_records(self):
        """Return a client that writes from now on."""
        client, path = self.connect()
        return Writer(client, path)


@pytest.fixture
def site(tmp_path, request):
    """Provide a site in a network of its own: tests run at the same time."""
    storage.require_servers()
    here, client = f'{request.param}.1', f'{request.param}.99'
    with (
        tenant_network.bridge() as bridge,
        tenant_network.client_on(bridge, f'{client}/24') as machine,
        storage.folder() as folder,
    ):
        tenant_network.add_address(bridge, f'{here}/24')
        ports = {name: free_port() for name in BACKENDS}
        backends = {
            name: {
                'share_driver': 'btrfs',
                'btrfs_root': str(folder / name),
                'btrfs_pools': 'pool:'
                + str(storage.create_pool(folder / f'{name}.img')),
                'btrfs_export_addresses': here,
                'btrfs_nfs_port': ports[name],
            }
            for name in BACKENDS
        }
        with new_installation(
            tmp_path / 'installation',
            options='default_share_type = nfs\n'
            'migration_driver_continue_update_interval = 1\n',
            backends=backends,
        ) as installation:
            installation.start()
            yield Site(installation, ports, machine, client)


@pytest.mark.parametrize('site', ['10.31.0'], indirect=True)
def test_no_acknowledged_record_is_lost_when_a_share_moves(site):
    client, path = site.connect()
    client.write(path, 'large', bytes(64 * MIB))
    home = site.host
    writer = site.write_records()

    site.start()
    site.wait_for(*CANCELLABLE)
    site.cli('share migration cancel', 'first')
    site.wait_for('migration_cancelled')
    site.wait_idle()
    writer.wait_for_more()

    there = site.start()
    site.wait_for('migration_driver_phase1_done')
    assert site.cli('share migration show', 'first')['total_progress'] == 100
    writer.wait_for_more()
    site.cli('share migration cancel', 'first')
    site.wait_for('migration_cancelled')
    site.wait_idle()
    assert site.host == home
    writer.wait_for_more()

    assert site.start() == there
    site.wait_for('migration_driver_phase1_done')
    (process,) = site.installation.kind
    site.installation.kill_and_restart(process)
    site.installation.wait_until_ready()
    writer.wait_for_more()
    site.cli('share migration complete', 'first')
    site.wait_for('migration_success')
    site.wait_idle()
    writer.join()
    assert site.host == there
    with pytest.raises((NfsError, OSError)):
        client.write(path, 'notes', b'lost')

    client, path = site.connect()
    data = client.read(path, 'records')
    records = [
        int(data[start : start + RECORD]) for start in range(0, len(data), RECORD)
    ]
    assert len(records) in (writer.acknowledged, writer.acknowledged + 1)
    assert records == list(range(len(records)))
    assert len(client.read(path, 'large')) == 64 * MIB
    client.write(path, 'notes', b'it can be written to')
    (rule,) = site.cli('share access list', 'first')
    assert (rule['State'], rule['Access To']) == ('active', site.client)

    site.start()
    site.wait_for('migration_driver_phase1_done')
    site.cli('share migration complete', 'first')
    site.wait_for('migration_success')
    site.wait_idle()
    assert site.host == home
    client, path = site.connect()
    assert client.read(path, 'notes') == b'it can be written to'
    site.cli('share delete', 'first')
    site.wait_idle()
    assert site.installation.problems() == []


@pytest.mark.parametrize('site', ['10.31.1'], indirect=True)
def test_snapshots_are_mounted_and_reverted_to_where_the_share_is(site):
    client, path = site.connect()
    taken = {}
    for name in ('one', 'two'):
        client.write(path, 'notes', name.encode())
        taken[name] = site.take(name)
    client.write(path, 'notes', b'three')
    for _ in range(2):  # there and back
        site.move()
        for name, id in taken.items():
            mounted, where = site.connect_to(id)
            assert mounted.read(where, 'notes') == name.encode()
            with pytest.raises(NfsError):
                mounted.write(where, 'notes', b'changed')
        client, path = site.connect()
        assert client.read(path, 'notes') == b'three'
    site.cli('share revert', 'two')
    site.wait_idle()
    client, path = site.connect()
    assert client.read(path, 'notes') == b'two'
    for name in taken:
        site.cli('share snapshot delete', name)
    site.wait_idle()
    site.cli('share delete', 'first')
    site.wait_idle()
    assert site.installation.problems() == []
