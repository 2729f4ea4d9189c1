"""What happens in a pool that is full of data, or of metadata."""

import contextlib
import os
import uuid

import pytest

from manila_lite import exception
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.driver import BtrfsDriver
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers.driver_harness import CTX
from tests.support import storage
from tests.unit.share.drivers.btrfs.driver_site import (
    MIB,
    Site,
    fill,
    path_of,
    refused,
    repeat,
)

STRANGER = '127.0.0.9'


@pytest.fixture
def site():
    storage.require()
    with storage.folder() as folder:
        yield Site(folder)


def fill_with_data(folder):
    """Leave no space for data; there is some for metadata."""

    def write(size):
        path = folder / uuid.uuid4().hex
        with path.open('wb') as file:
            os.posix_fallocate(file.fileno(), 0, size)

    for size in (256 * MIB, 16 * MIB, MIB, MIB >> 4):
        with pytest.raises(OSError, match='space'):
            repeat(lambda size=size: write(size))


def in_mode(site, mode):
    driver = BtrfsDriver(
        configuration=Configuration.from_values(
            site.options | {'btrfs_revert_mode': mode}
        )
    )
    driver.backend.attach()
    return driver


def attempt(pool, call):
    """Call; return whether it has failed, with a message that says why."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(
            pytest.raises(
                exception.StorageUnavailable, match=f'{pool.name}.*No space left'
            )
        )
        call()
        stack.pop_all()
        return False
    return True


@pytest.mark.parametrize('name, fill_up', [('large', fill_with_data), ('small', fill)])
@pytest.mark.parametrize('mode', ['swap', 'rewrite'])
def test_full_pool_loses_nothing_and_admits_no_client(site, name, fill_up, mode):
    share, filled = site.create(name, size=2), site.create(name, size=99)
    client = site.client()
    client.write(path_of(share), 'notes', b'then')
    snapshot = site.harness.snapshot(share)
    site.driver.create_snapshot(CTX, snapshot)
    client.write(path_of(share), 'notes', b'now!')
    pool = site.driver.backend.pools[name]
    kernel.create_subvolume(pool.path('shares', 'old-data'))
    kernel.flush(pool.top)
    fill_up(pool.path('shares', filled.name))

    another = site.harness.snapshot(share)
    has_failed = attempt(pool, lambda: site.driver.create_snapshot(CTX, another))
    assert pool.has('snapshots', another.name) is not has_failed
    has_failed = attempt(pool, lambda: site.driver.extend_share(share, 3))
    assert site.driver.get_share_status(share)['size'] == 3 - has_failed
    managed = site.harness.at('127.0.0.1:/shares/old-data')
    if attempt(pool, lambda: site.driver.manage_existing(managed, {'size': '1'})):
        with pytest.raises(exception.ShareResourceNotFound):
            site.driver.get_share_status(managed)
    assert client.read(path_of(share), 'notes') == b'now!'

    # Rules do not need space in the pool.
    site.driver.update_access(CTX, share, [], [], [], [])
    with refused('NOENT'):
        client.look_up(path_of(share))
    site.allow(share)
    with refused('NOENT'):
        site.client(STRANGER).look_up(path_of(share))

    driver = in_mode(site, mode)
    if attempt(pool, lambda: driver.revert_to_snapshot(CTX, snapshot, [], [])):
        status = site.driver.get_share_status(share)['status']
        if status == 'available':
            assert client.read(path_of(share), 'notes') == b'now!'
        for file in pool.path('shares', filled.name).iterdir():
            file.unlink()
        kernel.flush(pool.top)
        driver.revert_to_snapshot(CTX, snapshot, [], [])
    assert client.read(path_of(share), 'notes') == b'then'
    assert site.driver.get_share_status(share)['status'] == 'available'
    for each in (share, filled):
        site.driver.delete_share(CTX, each)
    for folder in (pool.top / 'records').iterdir():
        assert all(file.suffix == '.json' for file in folder.iterdir())
