"""A back end with several pools and a client, as another process sees it."""

import os
import pathlib
import uuid

import pytest

from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.driver import BtrfsDriver
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers.driver_harness import CTX, DriverHarness
from tests.support import storage
from tests.support.nfs_client import NfsClient, NfsError

MIB = 1 << 20
WRITER = '127.0.0.2'


class Site:
    """A back end with a large pool and two small ones."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        for name in ('small', 'spare'):
            storage.create_pool(folder / f'{name}.img', 128 * MIB)
        self.options = storage.options(
            folder,
            btrfs_pools={
                'large': str(storage.create_pool(folder / 'large.img')),
                'small': str(folder / 'small.img'),
                'spare': str(folder / 'spare.img'),
            },
        )
        self.harness = DriverHarness('btrfs', lambda: None)
        self.driver = self.start()

    def start(self, has_shares=True, **options) -> BtrfsDriver:
        """Start the driver as another process does."""
        driver = BtrfsDriver(
            configuration=Configuration.from_values(self.options | options)
        )
        driver.has_shares = has_shares and hasattr(self, 'driver')
        self.prepare(driver)
        driver.do_setup(CTX)
        driver.check_for_setup_error()
        return driver

    def prepare(self, driver: BtrfsDriver) -> None:
        """Change a driver before it is started."""

    def share(self, pool='large', **values):
        return self.harness.share(host=f'host@backend#{pool}', **values)

    def create(self, pool='large', **values):
        """Create a share that one client may write to."""
        share = self.share(pool, **values)
        self.driver.create_share(CTX, share)
        self.allow(share)
        return share

    def allow(self, share):
        rule = self.harness.rule(share, WRITER)
        self.driver.update_access(CTX, share, [rule], [rule], [], [])

    def client(self, address=WRITER) -> NfsClient:
        return NfsClient('127.0.0.1', self.options['btrfs_nfs_port'], address)

    def reboot(self):
        """Lose everything that is not on disk."""
        root = pathlib.Path(self.options['btrfs_root'])
        storage.stop(root)
        kernel.unmount_below(root)
        (root / 'nfs' / 'bus.sock').unlink(missing_ok=True)

    def volumes(self, pool) -> list[str]:
        top = self.driver.backend.pools[pool].top
        return sorted(os.listdir(top / 'shares'))


def path_of(share):
    return f'/shares/{share.name}'


def refused(status):
    return pytest.raises(NfsError, match=f'NFS4ERR_{status} ')


def fill(folder):
    """Use up all space for data and metadata."""

    def write(size):
        (folder / uuid.uuid4().hex).write_bytes(bytes(size))
        os.sync()

    for size in (16 * MIB, MIB, 2000):
        with pytest.raises(OSError, match='space'):
            repeat(lambda size=size: write(size))


def repeat(act):
    for _ in range(3000):
        act()
