"""Back ends with several pools, between which shares migrate."""

import manila_lite.conf
from manila_lite.share.drivers.base import normalise_export_locations
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers.driver_harness import CTX, DriverHarness
from tests.support import storage
from tests.support.nfs_client import NfsClient
from tests.support.processes import wait_until

MIB = 1 << 20
WRITER = '127.0.0.2'


class Site:
    """A back end with two pools, and others with a pool each."""

    def __init__(self, folder):
        pools = {
            name: storage.create_pool(folder / f'{name}.img', size)
            for name, size in (
                ('large', storage.POOL_SIZE),
                ('small', 128 * MIB),
                ('spare', storage.POOL_SIZE),
                ('other', storage.POOL_SIZE),
            )
        }
        self.pools = {
            'near': ('large', 'small'),
            'far': ('spare',),
            'served': ('other',),
        }
        self.ports = {name: storage.free_port() for name in self.pools}
        file = folder / 'sites.conf'
        file.write_text(
            ''.join(
                f'[{name}]\n'
                'share_driver = btrfs\n'
                f'driver_handles_share_servers = {name == "served"}\n'
                f'btrfs_root = {folder / name}\n'
                'btrfs_pools = '
                + ','.join(f'{pool}:{pools[pool]}' for pool in names)
                + f'\nbtrfs_nfs_port = {self.ports[name]}\n'
                for name, names in self.pools.items()
            )
        )
        self.made = {
            name: DriverHarness(
                'btrfs',
                lambda name=name: Configuration(
                    manila_lite.conf.new(files=[str(file)]), name
                ),
            )
            for name in ('near', 'far')
        }
        self.start()

    def start(self):
        self.near, self.far = (made.start() for made in self.made.values())

    def share(self, host='host@near#large', **values):
        return self.made['near'].share(host=host, **values)

    def create(self, **values):
        """Create a share that the writer has access to."""
        share = self.share(status='migrating', **values)
        self.near.create_share(CTX, share)
        self.allow(self.near, share)
        return share

    def allow(self, driver, share):
        rule = self.made['near'].rule(share, WRITER)
        driver.update_access(CTX, share, [rule], [], [], [])

    def volume(self, driver, share):
        pool, record = driver.backend.get_share(share.name)
        return pool.path(Kind.SHARE, record['volume'])

    def client(self, name='near'):
        return NfsClient('127.0.0.1', self.ports[name], WRITER)

    def call(self, operation, share, moved, pairs=()):
        """Call the driver; `pairs` are snapshots of both sides."""
        return getattr(self.near, f'migration_{operation}')(
            CTX,
            share,
            moved,
            [one for one, _ in pairs],
            {one.id: copy for one, copy in pairs},
        )

    def copy(self, share, moved, pairs=()):
        self.call('start', share, moved, pairs)
        wait_until(lambda: self.call('continue', share, moved, pairs), 'all is copied')

    def complete(self, share, moved):
        reply = self.call('complete', share, moved)
        return normalise_export_locations(reply['export_locations'])

    # Snapshots

    def take(self, share, moved):
        """Return a new snapshot, and what it will be when it has moved."""
        snapshot = self.made['near'].snapshot(share)
        self.near.create_snapshot(CTX, snapshot)
        return snapshot, self.made['far'].snapshot(moved)

    def snapshot_volume(self, driver, snapshot):
        pool, record = driver.backend.get_snapshot(snapshot)
        return pool.path(Kind.SNAPSHOT, record['volume'])

    def traces(self):
        """Return what migrations have left in all pools."""
        return [
            path
            for driver in (self.near, self.far)
            for pool in driver.backend.pools.values()
            for name in ('copies', 'records/leaving', 'records/arriving')
            for path in pool.top.glob(f'{name}/*')
        ]
