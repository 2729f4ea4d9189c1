"""Back ends of one driver that replicate each other's shares.

For third-party drivers their sections are in one file.
"""

import dataclasses
import itertools
import os
import pathlib
import typing
import uuid

import pytest

from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.driver import BtrfsDriver
from manila_lite.share.drivers.cephfs.driver import CephfsDriver
from manila_lite.share.drivers.local.driver import LocalDriver
from tests.drivers.driver_harness import DirectoryUsers, DummyUsers
from tests.support import storage

_serial = itertools.count()
STYLES = ('writable', 'readable', 'dr')
NAMES = ('here', 'there', 'beyond')

COMMON_OPTIONS = """
[{name}]
share_driver = {driver}
driver_handles_share_servers = {servers}
replication_domain = domain
"""
BACKEND_OPTIONS = {
    'dummy': """
dummy_driver_replication_type = {style}
dummy_driver_state_path = {folder}/{name}
dummy_driver_default_driver_method_delay = 0
dummy_driver_driver_methods_delays =
{more}
""",
    'local': """
local_replication_type = {style}
local_replication_recovery_point = 0
local_root = {folder}/{name}
{more}
""",
    'btrfs': """
btrfs_replication_type = {style}
btrfs_root = {folder}/{name}
btrfs_pools = pool:{folder}/{name}.img
btrfs_nfs_port = {port}
btrfs_cifs = {cifs}
btrfs_smb_port = {smb_port}
{more}
""",
    'cephfs': """
cephfs_replication_type = {style}
cephfs_conf_path = {folder}/{name}.conf
cephfs_auth_id = admin
cephfs_volume_group = {group}
{more}
""",
}


class Backends(typing.NamedTuple):
    """A replicating driver of the package, and what it replicates."""

    driver: str
    style: str | None = None
    servers: str = ''
    share_proto: str = ''

    @property
    def id(self):
        return '-'.join(word for word in self if word)


def _backends():
    for style in STYLES:
        yield Backends('dummy', style)
        yield Backends('dummy', style, 'servers')
        if style != 'writable':
            yield Backends('local', style)
            yield Backends('btrfs', style)
            yield Backends('btrfs', style, 'servers')
            yield Backends('cephfs', style, share_proto='CEPHFS')


BACKENDS = list(_backends())
CIFS_BACKENDS = [
    Backends('btrfs', style, servers, 'CIFS')
    for style in ('readable', 'dr')
    for servers in ('', 'servers')
]


class _BtrfsUsers(DirectoryUsers):
    """Users of a volume, wherever it is mounted now."""

    def __init__(self, driver, replica):
        pool, record = driver.backend.get_share(replica.name)
        super().__init__(pool.path(Kind.SHARE, record['volume']))


def new_ports(driver):
    """Return the ports of a back end, if the driver serves shares itself."""
    names = ('port', 'smb_port') if driver == 'btrfs' else ()
    return {name: storage.free_port() for name in names}


def _new_address():
    """Return an address that no other server of a test has."""
    return f'10.20.0.{5 + next(_serial) % 200}'


class Site:
    """A back end and the replica that it may hold."""

    def __init__(self, name, harness, servers, backend):
        self.name = name
        self.harness = harness
        self.servers = servers
        self.server = None
        self.is_unreachable = False
        self.state = None
        self.status = 'creating'
        self.locations = []
        self.synced_at = None
        self.restart()
        if servers:
            self.server = dataclasses.replace(
                harness.set_up_server(self.driver, _new_address()),
                host=f'host@{backend}',
            )
            harness.served_by = self.server
        pools = self.driver.get_share_stats(refresh=True)['pools']
        self.host = f'host@{backend}' + (f'#{pools[0]["pool_name"]}' if pools else '')
        self.id = str(uuid.uuid4())

    def restart(self):
        """Restart the driver as a new process would."""
        self.driver = self.harness.start()

    def make_unreachable(self):
        """Make the back end unreachable."""
        self.is_unreachable = True
        if hasattr(self.driver, 'make_unreachable'):
            self.driver.make_unreachable()
        elif isinstance(self.driver, BtrfsDriver):
            root = self.driver.backend.root
            storage.stop(root)
            kernel.unmount_below(root)
            root.rename(root.with_name(root.name + '.away'))
        elif isinstance(self.driver, CephfsDriver):
            self._ceph_conf.rename(self._ceph_conf.with_suffix('.away'))
            self.driver.backend.cluster.close()
        elif hasattr(self.driver.configuration, 'local_root'):
            root = pathlib.Path(self.driver.configuration.local_root)
            root.rename(root.with_name(root.name + '.away'))
        else:
            pytest.skip('tests cannot make the back end unreachable')

    def make_reachable(self):
        """Make the back end reachable again and restart its driver."""
        self.is_unreachable = False
        if hasattr(self.driver, 'make_reachable'):
            self.driver.make_reachable()
        elif isinstance(self.driver, CephfsDriver):
            self._ceph_conf.with_suffix('.away').rename(self._ceph_conf)
        else:
            root = pathlib.Path(
                self.driver.backend.root
                if isinstance(self.driver, BtrfsDriver)
                else self.driver.configuration.local_root
            )
            root.with_name(root.name + '.away').rename(root)
        self.restart()

    @property
    def _ceph_conf(self):
        return pathlib.Path(self.driver.configuration.cephfs_conf_path)

    def users(self, replica):
        """Return users of the replica who need no access rules."""
        if isinstance(self.driver, CephfsDriver):
            return self.harness.users_of(self.driver, replica)
        if isinstance(self.driver, LocalDriver):
            path = base.normalise_export_locations(self.locations)[0]['path']
            if os.path.isdir(path):
                return DirectoryUsers(path)
        if isinstance(self.driver, BtrfsDriver):
            return _BtrfsUsers(self.driver, replica)
        if hasattr(self.driver, 'write'):
            return DummyUsers(self.driver, replica)
        return pytest.skip('tests cannot access the content of its shares')
