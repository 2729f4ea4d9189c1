import pytest

from manila_lite.share.drivers.btrfs import backend
from manila_lite.share.drivers.btrfs.volumes import pool as pools
from manila_lite.share.drivers.btrfs.volumes.pool import Pool, mounted_pool
from tests.support import storage
from tests.support.flushes import Flushes
from tests.unit.share.drivers.btrfs.nfs_site import NfsSite


@pytest.fixture(scope='module')
def pool():
    """Provide a mounted pool."""
    storage.require()
    with storage.folder() as folder:
        image = storage.create_pool(folder / 'pool.img', 1 << 30)
        pool = Pool('pool', mounted_pool(image, folder / 'top'))
        pool.prepare()
        yield pool


@pytest.fixture(scope='module')
def nfs(pool):
    """Start a server that can export the volumes of the pool."""
    with storage.folder() as folder:
        site = NfsSite(pool, folder)
        site.daemons.start()
        yield site
        storage.stop(site.root)


@pytest.fixture
def flushes(monkeypatch):
    return Flushes(monkeypatch)


@pytest.fixture
def space_is_freed_in_time(monkeypatch):
    """Wait longer: the kernel frees removed volumes late on a busy machine."""
    for module in (pools, backend):
        monkeypatch.setattr(module, 'FREED_WITHIN', 60.0)
