"""Shares from snapshots in another pool or back end."""

import os

import pytest

from manila_lite import exception
import manila_lite.conf
from manila_lite.share.drivers.base import normalise_export_locations
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.driver import BtrfsDriver
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers import content
from tests.drivers.contract import delete
from tests.drivers.crashes import changes, killed_at_steps
from tests.drivers.driver_harness import CTX, DriverHarness
from tests.support import storage

MIB = 1 << 20


class Site:
    """A back end with two pools, and another one with a pool."""

    def __init__(self, folder):
        self.folder = folder
        pools = {
            name: storage.create_pool(folder / f'{name}.img', size)
            for name, size in (
                ('large', storage.POOL_SIZE),
                ('small', 128 * MIB),
                ('spare', storage.POOL_SIZE),
            )
        }
        sections = {
            'near': f'large:{pools["large"]},small:{pools["small"]}',
            'far': f'spare:{pools["spare"]}',
        }
        self.file = folder / 'sites.conf'
        self.file.write_text(
            ''.join(
                f'[{name}]\n'
                'share_driver = btrfs\n'
                'driver_handles_share_servers = false\n'
                'replication_domain = domain\n'
                f'btrfs_root = {folder / name}\n'
                f'btrfs_pools = {sources}\n'
                f'btrfs_nfs_port = {storage.free_port()}\n'
                for name, sources in sections.items()
            )
        )
        self.harness = DriverHarness('btrfs', lambda: None)
        self.start()

    def start(self):
        self.near = self.driver('near')
        self.far = self.driver('far')

    def driver(self, section, **options):
        conf = manila_lite.conf.new(files=(str(self.file),))
        configuration = Configuration(conf, section)
        configuration.override(options)
        driver = BtrfsDriver(configuration=configuration)
        driver.do_setup(CTX)
        driver.check_for_setup_error()
        return driver

    def share(self, host='host@near#large', **values):
        return self.harness.share(host=host, **values)

    def snapshot(self):
        """Return a snapshot of a share with all kinds of files."""
        share = self.share()
        self.near.create_share(CTX, share)
        path = self.volume(self.near, share)
        content.populate(path)
        snapshot = self.harness.snapshot(share)
        self.near.create_snapshot(CTX, snapshot)
        return snapshot, content.describe(path)

    def volume(self, driver, share):
        pool, record = driver.backend.get_share(share.name)
        return pool.path(Kind.SHARE, record['volume'])

    def copies(self):
        return [
            path
            for driver in (self.near, self.far)
            for pool in driver.backend.pools.values()
            for path in pool.top.glob('copies/*')
        ]


@pytest.fixture(scope='module')
def site():
    storage.require()
    with storage.folder() as folder:
        yield Site(folder)


@pytest.mark.parametrize('to', ['near#small', 'far#spare'])
def test_share_from_a_snapshot_elsewhere_has_its_content_and_a_size(site, to):
    snapshot, before = site.snapshot()
    clone = site.share(f'host@{to}', size=2)
    driver = site.near if 'near' in to else site.far
    for _ in range(2):
        locations = driver.create_share_from_snapshot(CTX, clone, snapshot)
        assert normalise_export_locations(locations)[0]['path']
        assert content.describe(site.volume(driver, clone)) == before
    status = driver.get_share_status(clone)
    assert (status['status'], status['size']) == ('available', 2)
    (site.volume(driver, clone) / 'new').write_text('it can be written to')
    driver.delete_share(CTX, clone)
    site.near.delete_snapshot(CTX, snapshot)


def test_snapshot_that_is_too_large_for_the_pool_is_refused(site):
    snapshot, _ = site.snapshot()
    share = site.share()
    site.near.create_share(CTX, share)
    (site.volume(site.near, share) / 'large').write_bytes(os.urandom(200 * MIB))
    snapshot = site.harness.snapshot(share)
    site.near.create_snapshot(CTX, snapshot)
    clone = site.share('host@near#small')
    with pytest.raises(exception.ShareRefused, match='pool small.*No space'):
        site.near.create_share_from_snapshot(CTX, clone, snapshot)
    with pytest.raises(exception.ShareResourceNotFound):
        site.near.get_share_status(clone)
    small = site.near.backend.pools['small'].top
    assert clone.name not in os.listdir(small / 'shares')
    assert not site.copies()


def test_back_end_of_no_domain_is_out_of_reach(site):
    snapshot, _ = site.snapshot()
    stranger = site.driver('far', replication_domain=None)
    clone = site.share('host@far#spare')
    with pytest.raises(exception.ShareBackendException, match='of reach'):
        stranger.create_share_from_snapshot(CTX, clone, snapshot)


def test_copy_that_is_killed_at_any_step_can_be_repeated(site):
    snapshot, before = site.snapshot()

    def build(step):
        return site.share('host@far#spare')

    def act(clone):
        site.far.create_share_from_snapshot(CTX, clone, snapshot)

    for clone in killed_at_steps(build, act, changes, most=4, least=10):
        site.start()
        act(clone)
        assert content.describe(site.volume(site.far, clone)) == before
        assert not site.copies()
        site.far.delete_share(CTX, clone)


def test_what_a_killed_copy_left_is_removed_at_the_next_start(site):
    snapshot, _ = site.snapshot()
    for clone in killed_at_steps(
        lambda step: site.share('host@far#spare'),
        lambda clone: site.far.create_share_from_snapshot(CTX, clone, snapshot),
        changes,
        most=2,
    ):
        delete(site.far, clone)
        site.start()
        assert not site.copies()
