"""CIFS shares, from the request to the bytes, and from pool to pool.

Requests use the official command line, and the clients are smbclient.
"""

import pytest

from tests.functional.stories.conftest import new_installation
from tests.support import storage
from tests.support.cli import Cli
from tests.support.processes import free_port
from tests.support.processes import wait_until
from tests.support.smb_client import PASSWORD
from tests.support.smb_client import SmbClient
from tests.support.smb_client import SmbError

NEWEST = '2.95'  # known to the client for share migration
BACKENDS = ('north', 'south')
USERS = ('alice', 'robert')
FEATURES = ('snapshot', 'revert-to-snapshot', 'mount-snapshot')
MIGRATION_OPTIONS = (
    *('--writable', 'True', '--nondisruptive', 'False'),
    *('--preserve-metadata', 'True', '--preserve-snapshots', 'False'),
)


class Site:
    """Two back ends with the same users, and a share."""

    def __init__(self, installation, ports):
        self.installation, self.ports = installation, ports
        self.rest = installation.rest('admin')
        self.cli = Cli(
            *('--os-auth-type', 'none', '--os-endpoint', installation.url),
            version=NEWEST,
        )
        supported = [(f'--{name}-support', 'true') for name in FEATURES]
        self.cli('share type create', 'cifs', 'false', *sum(supported, ()))
        self.id = self.cli('share create', 'CIFS', '1')['id']
        self.wait()

    def wait(self):
        wait_until(
            lambda: not self.installation.pending_work(), 'no work left'
        )

    def allow(self, user, level='rw'):
        rule = self.cli(
            *('share access create', self.id, 'user', user),
            *('--access-level', level),
        )
        self.wait()
        return rule['id']

    def show(self):
        return self.rest.get(f'/shares/{self.id}')['share']

    @property
    def backend(self):
        return self.show()['host'].partition('@')[2].partition('#')[0]

    def name(self):
        """Return the name by which clients use the share."""
        locations = self.rest.get(f'/shares/{self.id}/export_locations')
        return _name_in(locations['export_locations'])

    def snapshot_name(self, snapshot):
        locations = self.rest.get(f'/snapshots/{snapshot}/export-locations')
        return _name_in(locations['share_snapshot_export_locations'])

    def client(self, user):
        return SmbClient(user, self.ports[self.backend])


@pytest.fixture
def site(tmp_path):
    storage.require_cifs()
    with storage.folder() as folder:
        ports = {name: free_port() for name in BACKENDS}
        backends = {
            name: {
                'share_driver': 'btrfs',
                'btrfs_root': str(folder / name),
                'btrfs_pools': 'pool:'
                + str(storage.create_pool(folder / f'{name}.img')),
                'btrfs_nfs_port': free_port(),
                'btrfs_cifs': True,
                'btrfs_smb_port': ports[name],
            }
            for name in BACKENDS
        }
        with new_installation(
            tmp_path / 'installation',
            options='default_share_type = cifs\n'
            'migration_driver_continue_update_interval = 1\n',
            backends=backends,
        ) as installation:
            installation.start()
            for name in BACKENDS:
                for user in USERS:
                    installation.manage(
                        *('storage', 'user', 'add', '--root', folder / name),
                        user,
                        stdin=f'{PASSWORD}\n',
                    )
            yield Site(installation, ports)


def _name_in(locations):
    (location,) = locations
    host, name = location['path'].removeprefix('\\\\').split('\\')
    assert host == '127.0.0.1'
    return name


def refused(status):
    return pytest.raises(SmbError, match=f'NT_STATUS_{status}')


def test_users_have_the_access_of_their_rules_wherever_the_share_is(site):
    alice, robert, name = (
        site.client('alice'),
        site.client('robert'),
        site.name(),
    )
    with refused('BAD_NETWORK_NAME'):
        alice(name, 'ls')
    site.allow('alice')
    reading = site.allow('robert', 'ro')
    alice.write(name, 'notes', b'one')
    assert robert.read(name, 'notes') == b'one'
    with refused('ACCESS_DENIED'):
        robert.write(name, 'notes', b'no!')
    with robert.session(name) as session:
        site.cli('share access delete', site.id, reading)
        site.wait()
        with refused('NETWORK_NAME_DELETED|FILE_CLOSED|USER_SESSION_DELETED'):
            session('get notes /dev/null')

    snapshot = site.cli('share snapshot create', site.id)['id']
    site.wait()
    site.cli('share snapshot access create', snapshot, 'user', 'robert')
    site.wait()
    alice.write(name, 'notes', b'two')
    old = site.snapshot_name(snapshot)
    assert robert.read(old, 'notes') == b'one'
    with refused('MEDIA_WRITE_PROTECTED|ACCESS_DENIED'):
        robert.write(old, 'notes', b'no!')
    site.cli('share revert', snapshot)
    site.rest.wait_at_rest(site.id)
    site.wait()
    assert alice.read(name, 'notes') == b'one'
    site.cli('share snapshot delete', snapshot)
    site.wait()

    (there,) = set(BACKENDS) - {site.backend}
    host = f'{site.installation.service_host(there)}#pool'
    site.cli('share migration start', site.id, host, *MIGRATION_OPTIONS)
    wait_until(
        lambda: site.show()['task_state'] == 'migration_driver_phase1_done',
        'all is copied',
    )
    site.wait()
    with alice.session(name) as session:
        session('put /etc/hostname meanwhile')
        site.cli('share migration complete', site.id)
        wait_until(
            lambda: site.show()['task_state'] == 'migration_success',
            'it has moved',
        )
        with refused('NETWORK_NAME_DELETED|FILE_CLOSED|USER_SESSION_DELETED'):
            session('put /etc/hostname late')
    site.wait()
    assert site.backend == there
    with refused('BAD_NETWORK_NAME'):
        alice(name, 'ls')
    alice, robert, name = (
        site.client('alice'),
        site.client('robert'),
        site.name(),
    )
    assert alice.names(name) == {'notes', 'meanwhile'}
    alice.write(name, 'notes', b'three')
    assert alice.read(name, 'notes') == b'three'
    with refused('ACCESS_DENIED'):
        robert(name, 'ls')
    site.cli('share delete', site.id)
    site.wait()
    assert site.installation.problems() == []
