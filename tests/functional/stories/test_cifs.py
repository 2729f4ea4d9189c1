"""CIFS shares, from the request to the bytes, and from pool to pool.

Requests use the official command line, and the clients are smbclient.
"""

import pytest

from tests.functional.stories import suites
from tests.functional.stories.cifs_site import LOST, CifsSite, location_in, refused
from tests.functional.stories.conftest import new_installation
from tests.support import storage
from tests.support.processes import free_port
from tests.support.smb_client import PASSWORD, SmbClient

pytestmark = suites.clients

BACKENDS = ('north', 'south')
USERS = ('alice', 'robert')
FEATURES = ('snapshot', 'revert-to-snapshot', 'mount-snapshot')


class Site(CifsSite):
    """Two back ends with the same users, and a share."""

    def __init__(self, installation, ports):
        super().__init__(installation)
        self.ports = ports
        supported = [(f'--{name}-support', 'true') for name in FEATURES]
        self.create_type('false', *sum(supported, ()))
        self.create()

    def name(self):
        """Return the name by which clients use the share."""
        address, name = self.location()
        assert address == '127.0.0.1'
        return name

    def snapshot_name(self, snapshot):
        locations = self.rest.get(f'/snapshots/{snapshot}/export-locations')
        _, name = location_in(locations['share_snapshot_export_locations'])
        return name

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


def test_users_have_the_access_of_their_rules_wherever_the_share_is(site):
    alice, robert, name = (site.client('alice'), site.client('robert'), site.name())
    with refused('BAD_NETWORK_NAME'):
        alice(name, 'ls')
    site.allow('alice')
    reading = site.allow('robert', 'ro')
    alice.write(name, 'notes', b'one')
    assert robert.read(name, 'notes') == b'one'
    with refused('ACCESS_DENIED'):
        robert.write(name, 'notes', b'no!')
    with robert.session(name) as session:
        site.deny(reading)
        with refused(LOST):
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
    site.start_migration(there)
    with alice.session(name) as session:
        session('put /etc/hostname meanwhile')
        site.complete_migration()
        with refused(LOST):
            session('put /etc/hostname late')
    site.wait()
    assert site.backend == there
    with refused('BAD_NETWORK_NAME'):
        alice(name, 'ls')
    alice, robert, name = (site.client('alice'), site.client('robert'), site.name())
    assert alice.names(name) == {'notes', 'meanwhile'}
    alice.write(name, 'notes', b'three')
    assert alice.read(name, 'notes') == b'three'
    with refused('ACCESS_DENIED'):
        robert(name, 'ls')
    site.cli('share delete', site.id)
    site.wait()
    assert site.installation.problems() == []
