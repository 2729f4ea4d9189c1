"""A CIFS share on a share server, which moves to another network.

Requests use the official command line. The networks are bridges of this
machine with the same addresses; a client is in each of them.
"""

import contextlib
import pathlib

import pytest

from tests.functional.stories import suites
from tests.functional.stories.cifs_site import LOST, CifsSite, refused
from tests.functional.stories.conftest import new_installation
from tests.support import storage, tenant_network
from tests.support.smb_client import PASSWORD, SmbClient, SmbError

pytestmark = suites.clients

SEGMENTS = {'red': 201, 'blue': 202}
ADDRESS, CLIENT = '10.30.0.10', '10.30.0.99'
PORT = 445
USERS = ('alice', 'robert')


class Site(CifsSite):
    """A back end for each network, and a share in one of these."""

    def __init__(self, installation, roots, clients):
        super().__init__(installation)
        self.roots, self.clients = roots, clients
        self.create_type('true')
        for name in SEGMENTS:
            self.cli('share network create', '--name', name)
        self.create('--share-type', 'cifs', '--share-network', 'red')
        self.add_users()

    def add_users(self):
        """Add the users to all share servers."""
        for server in self.cli('share server list'):
            backend = server['Host'].partition('@')[2]
            for user in USERS:
                self.installation.manage(
                    *('storage', 'user', 'add', '--root', self.roots[backend]),
                    *('--share-server', server['ID'], user),
                    stdin=f'{PASSWORD}\n',
                )

    def client(self, user) -> SmbClient:
        """Return a user in the network that the share is in."""
        address, _ = self.location()
        assert address == ADDRESS
        return self.clients[self.backend].smb(user, address, PORT)


@pytest.fixture
def site(tmp_path):
    storage.require_cifs()
    storage.require_servers()
    prefix = tenant_network.new_name()
    with contextlib.ExitStack() as stack:
        clients = {}
        for name, segment in SEGMENTS.items():
            bridge = stack.enter_context(tenant_network.bridge(f'{prefix}{segment}'))
            clients[name] = stack.enter_context(
                tenant_network.client_on(bridge, f'{CLIENT}/24')
            )
        folder = stack.enter_context(storage.folder())
        backends = {}
        for name, segment in SEGMENTS.items():
            (folder / name).mkdir()
            options = storage.options(folder / name)
            backends[name] = {
                **options,
                'share_driver': 'btrfs',
                'driver_handles_share_servers': 'true',
                'btrfs_pools': f'pool:{options["btrfs_pools"]["pool"]}',
                'btrfs_export_addresses': '',
                'btrfs_bridge': f'{prefix}{{segmentation_id}}',
                'btrfs_nfs_port': 2049,
                'btrfs_cifs': 'true',
                'btrfs_smb_port': PORT,
                'standalone_network_plugin_gateway': '10.30.0.1',
                'standalone_network_plugin_mask': '24',
                'standalone_network_plugin_network_type': 'vlan',
                'standalone_network_plugin_segmentation_id': segment,
                'standalone_network_plugin_allowed_ip_ranges': ADDRESS,
            }
        installation = stack.enter_context(
            new_installation(
                tmp_path / 'installation',
                options='migration_driver_continue_update_interval = 1\n',
                backends=backends,
            )
        )
        installation.start()
        yield Site(
            installation,
            {
                name: pathlib.Path(options['btrfs_root'])
                for name, options in backends.items()
            },
            clients,
        )


def test_users_have_the_access_of_their_rules_in_every_network(site):
    alice, robert = site.client('alice'), site.client('robert')
    _, name = site.location()
    with refused('BAD_NETWORK_NAME'):
        alice(name, 'ls')
    site.allow('alice')
    alice.write(name, 'notes', b'one')
    assert alice.read(name, 'notes') == b'one'
    with refused('ACCESS_DENIED'):
        robert(name, 'ls')
    with refused('LOGON_FAILURE|ACCESS_DENIED'):
        site.client('carol')(name, 'ls')
    rule = site.allow('robert')
    with robert.session(name) as session:
        session('put /etc/hostname early')
        site.deny(rule)
        with refused(LOST):
            session('put /etc/hostname late')

    here = site.backend
    (there,) = set(SEGMENTS) - {here}
    site.start_migration(there, '--new-share-network', 'blue')
    site.add_users()
    alice.write(name, 'notes', b'two')
    with alice.session(name) as session:
        session('put /etc/hostname meanwhile')
        site.complete_migration()
        with refused(f'{LOST}|CONNECTION_'):
            session('put /etc/hostname late')
    site.wait()
    assert site.backend == there
    with pytest.raises(SmbError):
        alice(name, 'ls')

    alice, robert = site.client('alice'), site.client('robert')
    _, name = site.location()
    assert alice.names(name) == {'notes', 'early', 'meanwhile'}
    assert alice.read(name, 'notes') == b'two'
    alice.write(name, 'notes', b'three')
    with refused('ACCESS_DENIED'):
        robert(name, 'ls')
    site.cli('share delete', site.id)
    site.wait()
    assert site.installation.problems() == []
