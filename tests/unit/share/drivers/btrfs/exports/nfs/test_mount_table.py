"""Mounts as a real NFS server sees them."""

import contextlib
import functools
import os
import pathlib
import subprocess

import pytest

from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.exports.nfs import mount_table
from manila_lite.share.drivers.btrfs.volumes.pool import mounted_pool
from tests.support import storage
from tests.support.nfs_client import NfsError
from tests.unit.share.drivers.btrfs.nfs_site import WRITER, NfsSite, eventually


def mounts_of(pid):
    lines = pathlib.Path(f'/proc/{pid}/mounts').read_text().splitlines()
    return {line.split(' ')[1] for line in lines}


def table_of(pid):
    """Return the mounts that a process finds in the table it reads."""
    lines = pathlib.Path(f'/proc/{pid}/root/etc/mtab').read_text().splitlines()
    return [line.split(' ')[1] for line in lines]


def mount_point(nfs, volume):
    return str(nfs.root / 'exports' / 'mounts' / f'shares.{volume}')


def is_served(nfs, volume):
    with contextlib.suppress(ConnectionError, NfsError):
        with nfs.client(WRITER) as client:
            client.write(f'/shares/{volume}', 'notes', b'hello')
        return True
    return False


def test_server_that_ends_is_not_taken_for_one_that_sees_no_mounts(tmp_path):
    """Until its parent waits for it, /proc has its entry, but not its mounts."""
    with subprocess.Popen(['true']) as server:
        os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(ProcessLookupError):
            kernel.is_mount_seen(tmp_path, server.pid)
    with pytest.raises(ProcessLookupError):
        kernel.is_mount_seen(tmp_path, server.pid)


def test_server_finds_its_exports_and_nothing_else(nfs):
    volumes = [nfs.create((WRITER, 'rw')) for _ in range(2)]
    nfs.kill('server')
    for volume in volumes:
        eventually(functools.partial(is_served, nfs, volume))
    found = table_of(nfs.pid('server'))
    assert {mount_point(nfs, volume) for volume in volumes}.issubset(found)
    exports = str(nfs.root / 'exports' / 'mounts')
    assert all(path == '/' or path.startswith(exports) for path in found)


def test_table_remains_short_and_a_new_server_has_all_exports(nfs):
    count = 2 * mount_table.RECENT
    volumes = [nfs.create((WRITER, 'rw')) for _ in range(count)]
    assert len(table_of(nfs.pid('server'))) <= mount_table.RECENT
    assert all(is_served(nfs, volume) for volume in volumes)
    nfs.kill('server')
    for volume in volumes:
        eventually(functools.partial(is_served, nfs, volume))
    assert len(table_of(nfs.pid('server'))) > count
    for volume in volumes:
        nfs.exports.withdraw(Kind.SHARE, volume)


def test_export_is_added_while_the_server_starts(nfs):
    volumes = [nfs.create((WRITER, 'rw')) for _ in range(5)]
    nfs.kill('server')
    volumes += [nfs.create((WRITER, 'rw')) for _ in range(5)]
    for volume in volumes:
        eventually(functools.partial(is_served, nfs, volume))


def test_server_has_no_mount_that_has_ended(nfs):
    """It would keep a share that is deleted."""
    volume = nfs.create((WRITER, 'rw'))
    pid = nfs.pid('server')
    assert mount_point(nfs, volume) in mounts_of(pid)
    nfs.exports.withdraw(Kind.SHARE, volume)
    assert mount_point(nfs, volume) not in mounts_of(pid)


def test_pools_can_be_unmounted_while_the_server_runs(nfs):
    assert str(nfs.pool.top) in mounts_of('self')
    assert str(nfs.pool.top) not in mounts_of(nfs.pid('server'))


@pytest.mark.parametrize('is_there', [True, False])
def test_server_starts_though_a_mount_of_others_ends_meanwhile(pool, is_there):
    """Here it ends with the pool that it is mounted in."""
    with storage.folder() as others, storage.folder() as folder:
        top, volume = others / 'top', pool.top / f'others-{is_there}'
        if is_there:
            (top / 'inner').mkdir(parents=True)
        mounted_pool(storage.create_pool(others / 'pool.img', 1 << 30), top)
        (top / 'inner').mkdir()
        kernel.create_subvolume(volume)
        kernel.bind_mount(volume, top / 'inner')
        site = NfsSite(pool, folder)
        site.daemons.start()
        assert is_served(site, site.create((WRITER, 'rw')))
        assert not [
            path
            for path in mounts_of(site.pid('server'))
            if path.startswith(str(others))
        ]
        kernel.unmount(top / 'inner')
        kernel.destroy(volume)


def test_server_sees_all_mounts_if_none_can_follow(pool):
    """So it is if an earlier version has mounted the first ones."""
    with storage.folder() as folder:
        site = NfsSite(pool, folder)
        mounts = site.root / 'exports' / 'mounts'
        kernel.bind_mount(mounts, mounts)
        subprocess.run(['mount', '--make-private', mounts], check=True)
        (mounts.parent / 'mount.json').unlink()  # it recorded none
        site.daemons.start()
        volume = site.create((WRITER, 'rw'))
        assert is_served(site, volume)
        assert str(pool.top) in mounts_of(site.pid('server'))
        site.exports.withdraw(Kind.SHARE, volume)


@pytest.fixture
def mounted(tmp_path):
    """Provide a folder with a mount in it."""
    storage.require()
    source, folder = tmp_path / 'source', tmp_path / 'folder'
    target = folder / 'target'
    source.mkdir()
    target.mkdir(parents=True)
    (source / 'file').touch()
    kernel.bind_mount(source, target)
    yield folder
    kernel.unmount_below(folder)


def test_folder_that_has_mounts_already_keeps_them(mounted):
    """Those below a mount of the folder could never be removed."""
    kernel.share_mounts(mounted)
    # Other tests mount and unmount at the same time.
    found = {path for path in mounts_of('self') if path.startswith(str(mounted))}
    assert found == {str(mounted / 'target')}
    kernel.unmount(mounted / 'target')
    assert list((mounted / 'target').iterdir()) == []
