"""Pools whose disks are not where they belong, with the real record."""

import pathlib
import re

import pytest

from manila_lite import exception
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.manager.disks import DatabaseDisks
from tests.drivers.driver_harness import CTX
from tests.support import storage
from tests.unit.share.drivers.btrfs.driver_site import Site, path_of, refused

pytestmark = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)

HOST = 'host@backend'


class RecordedSite(Site):
    """A back end whose service keeps a record of its disks."""

    def __init__(self, folder, db):
        self.db = db
        super().__init__(folder)

    def prepare(self, driver):
        driver.disks = DatabaseDisks(self.db, HOST, 'process', 60.0, 'share-%s')


@pytest.fixture
def site(db):
    storage.require()
    with storage.folder() as folder:
        site = RecordedSite(folder, db)
        yield site
        storage.stop(pathlib.Path(site.options['btrfs_root']))


def swapped(site):
    """Return the pools as they are after two disks have changed places."""
    pools = dict(site.options['btrfs_pools'])
    pools['small'], pools['spare'] = pools['spare'], pools['small']
    return pools


def test_pools_that_change_places_are_named_and_serve_nothing(site):
    small, large = site.create('small'), site.create('large')
    site.client().write(path_of(large), 'notes', b'hello')
    site.reboot()
    with pytest.raises(exception.StorageUnavailable) as error:
        site.start(btrfs_pools=swapped(site))
    for pool, other in (('small', 'spare'), ('spare', 'small')):
        problem = f'{HOST}#{pool}: the disk at .* belongs to {HOST}#{other};'
        assert re.search(problem, str(error.value))
    root = pathlib.Path(site.options['btrfs_root'])
    for pool in ('small', 'spare'):
        assert not (root / 'pools' / pool).is_mount()
    assert site.client().read(path_of(large), 'notes') == b'hello'
    with refused('NOENT'):
        site.client().read(path_of(small), 'notes')
    site.driver = site.start()
    site.driver.update_access(CTX, small, [], [], [], [])


def test_disk_that_is_mounted_in_place_of_another_is_noticed(site):
    share = site.create('small')
    root = pathlib.Path(site.options['btrfs_root'])
    tops = [root / 'pools' / name for name in ('small', 'spare')]
    kernel.unmount(tops[0])
    kernel.bind_mount(tops[1], tops[0])
    for call in (
        lambda: site.driver.delete_share(CTX, share),
        lambda: site.driver.create_share(CTX, site.share('small')),
        lambda: site.driver.update_access(CTX, share, [], [], [], []),
    ):
        with pytest.raises(exception.StorageUnavailable):
            call()
    with pytest.raises(exception.StorageUnavailable, match='belongs to'):
        site.driver.check_health()
    assert not tops[0].is_mount()
    site.driver.check_health()
    assert site.driver.get_share_status(share)['status'] == 'available'
