"""The folder of the mounts of exports is unmounted under a running server."""

import pathlib
import subprocess

import pytest

from manila_lite import exception
from manila_lite.share.drivers.btrfs import kernel
from tests.drivers.driver_harness import CTX
from tests.support import storage
from tests.unit.share.drivers.btrfs.driver_site import Site, path_of


@pytest.fixture(scope='module')
def site():
    storage.require()
    with storage.folder() as folder:
        site = Site(folder)
        yield site
        storage.stop(pathlib.Path(site.options['btrfs_root']))


@pytest.fixture
def mounts(site):
    """Return the folder; unmount it, with all that is mounted in it."""
    folder = pathlib.Path(site.options['btrfs_root'], 'exports', 'mounts')
    yield folder
    site.driver.check_health()


def below(mounts):
    """Return what is on the disk of the system below the mounts."""
    return [path for path in mounts.rglob('*') if not path.is_dir()]


def unmount(mounts):
    subprocess.run(['umount', '--recursive', '--lazy', mounts], check=True)


def test_clients_of_new_shares_write_to_them_only(site, mounts):
    old = site.create()
    unmount(mounts)
    new = site.create()
    for share in (old, new):
        site.client().write(path_of(share), 'notes', b'hello')
        top = site.driver.backend.pools['large'].top
        assert (top / path_of(share)[1:] / 'notes').read_bytes() == b'hello'
    unmount(mounts)
    assert below(mounts) == []


def test_report_mounts_exports_again(site, mounts):
    share = site.create()
    site.client().write(path_of(share), 'notes', b'hello')
    unmount(mounts)
    site.driver.check_health()
    assert site.client().read(path_of(share), 'notes') == b'hello'


def test_nothing_is_published_where_no_server_sees_it(site, mounts):
    share = site.create()
    exports = site.driver.backend._exporters.nfs
    source = site.driver.backend.pools['large'].path('shares', share.name)
    exports.withdraw('shares', share.name)
    unmount(mounts)
    rule = site.harness.rule(share, '127.0.0.2')
    record = {'volume': share.name, 'share_proto': 'NFS'}
    with pytest.raises(exception.StorageUnavailable, match='was unmounted'):
        site.driver.backend.exports.publish('shares', record, source, [rule])
    assert not (mounts / f'shares.{share.name}').is_mount()
    site.driver.delete_share(CTX, share)


def test_directory_below_a_mount_cannot_be_written_by_clients(site, mounts):
    share = site.create()
    target = mounts / f'shares.{share.name}'
    kernel.unmount(target)
    found = target.stat()
    assert (found.st_mode & 0o777, found.st_uid) == (0, 65534)
