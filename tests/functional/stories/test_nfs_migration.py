"""A share that an NFS client writes to moves between btrfs back ends.

Requests use the official command line. The client is in another network
namespace, and writes records until it has lost the share.
"""

import threading

import pytest

from tests.functional.stories.conftest import new_installation
from tests.support import storage
from tests.support import tenant_network
from tests.support.cli import Cli
from tests.support.nfs_client import NfsError
from tests.support.processes import free_port
from tests.support.processes import wait_until

NEWEST = '2.95'  # known to the client for share migration
BACKENDS = ('north', 'south')
HERE, CLIENT = '10.31.0.1', '10.31.0.99'
RECORD = 16
MIB = 1 << 20
MIGRATION_OPTIONS = (
    *('--writable', 'True', '--nondisruptive', 'False'),
    *('--preserve-metadata', 'True', '--preserve-snapshots', 'False'),
)


class Site:
    """A share, and a client in another network namespace."""

    def __init__(self, installation, ports, machine):
        self.installation, self.machine = installation, machine
        self.ports = ports
        self.cli = Cli(
            *('--os-auth-type', 'none', '--os-endpoint', installation.url),
            version=NEWEST,
        )
        self.rest = installation.rest('admin')
        self.cli('share type create', 'nfs', 'false')
        self.id = self.cli('share create', 'NFS', '1', '--name', 'first')['id']
        self.wait_idle()
        self.cli('share access create', 'first', 'ip', CLIENT)
        self.wait_idle()

    def wait_idle(self):
        wait_until(
            lambda: not self.installation.pending_work(), 'no work left'
        )

    def wait_for(self, state):
        def is_there():
            found = self.show()['task_state']
            assert found != 'migration_error'
            return found == state

        wait_until(is_there, state)

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


class Writer:
    """It writes numbered records, each on disk when it is acknowledged."""

    def __init__(self, client, path):
        self.acknowledged = 0
        self.error = None
        self._client = client
        self._file = client.open(path, 'records', create=True)
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def _write(self):
        try:
            while True:
                self._client.write_at(
                    self._file,
                    self.acknowledged * RECORD,
                    b'%0*d' % (RECORD, self.acknowledged),
                )
                self.acknowledged += 1
        except (NfsError, OSError) as error:
            self.error = error

    def wait_for_more(self):
        before = self.acknowledged
        wait_until(
            lambda: self.error or self.acknowledged > before + 100,
            'more records are acknowledged',
        )
        assert self.error is None

    def join(self):
        """Wait until it has lost the share."""
        self._thread.join(60)
        assert not self._thread.is_alive()


@pytest.fixture
def site(tmp_path):
    storage.require_servers()
    with (
        tenant_network.bridge() as bridge,
        tenant_network.client_on(bridge, f'{CLIENT}/24') as machine,
        storage.folder() as folder,
    ):
        tenant_network.add_address(bridge, f'{HERE}/24')
        ports = {name: free_port() for name in BACKENDS}
        backends = {
            name: {
                'share_driver': 'btrfs',
                'btrfs_root': str(folder / name),
                'btrfs_pools': 'pool:'
                + str(storage.create_pool(folder / f'{name}.img')),
                'btrfs_export_addresses': HERE,
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
            yield Site(installation, ports, machine)


def test_no_acknowledged_record_is_lost_when_a_share_moves(site):
    client, path = site.connect()
    client.write(path, 'large', bytes(64 * MIB))
    home = site.host
    writer = site.write_records()

    site.start()
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
        int(data[start : start + RECORD])
        for start in range(0, len(data), RECORD)
    ]
    assert len(records) in (writer.acknowledged, writer.acknowledged + 1)
    assert records == list(range(len(records)))
    assert len(client.read(path, 'large')) == 64 * MIB
    client.write(path, 'notes', b'it can be written to')
    (rule,) = site.cli('share access list', 'first')
    assert (rule['State'], rule['Access To']) == ('active', CLIENT)

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
