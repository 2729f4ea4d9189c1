"""The guard of file handles: where it is, and what it needs to work."""

import errno
import shutil
import subprocess
import sys

import pytest

from manila_lite import exception
from manila_lite.cmd.manage import main
from manila_lite.share.drivers import handle_guard
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.exports.nfs.handle_guard import GUARD
from tests.support import command_line, storage
from tests.support.nfs_client import NfsError
from tests.unit.share.drivers.btrfs.driver_site import Site
from tests.unit.share.drivers.btrfs.nfs_site import WRITER, NfsSite, eventually

# Opens the handle of a file with another directory as the mount, through the
# guard; prints the error.
OPEN = """
import ctypes, errno, os, sys
guard = ctypes.CDLL(
    sys.argv[1], mode=os.RTLD_NOW | os.RTLD_DEEPBIND, use_errno=True
)
class Handle(ctypes.Structure):
    _fields_ = [('bytes', ctypes.c_uint), ('type', ctypes.c_int),
                ('data', ctypes.c_ubyte * 128)]
handle, number = Handle(128), ctypes.c_int()
assert not ctypes.CDLL(None).name_to_handle_at(
    -100, sys.argv[3].encode(), ctypes.byref(handle), ctypes.byref(number), 0
)
mount = os.open(sys.argv[2], os.O_RDONLY)
found = guard.open_by_handle_at(
    mount, ctypes.byref(handle), int(sys.argv[4])
)
print(0 if found >= 0 else ctypes.get_errno())
"""
READ, TRUNCATE = 0, 0o1001


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Look for guards in two directories that are empty at first."""
    storage.require()
    found = tmp_path / 'local', tmp_path / 'package'
    monkeypatch.setattr(handle_guard, 'FOLDERS', found)
    return found


def open_through_guard(mount, file, flags=READ):
    """Return the error of an open, or 0."""
    done = subprocess.run(
        [sys.executable, '-c', OPEN]
        + [str(each) for each in (GUARD.find(), mount, file, flags)],
        check=True,
        capture_output=True,
        text=True,
    )
    return int(done.stdout)


@pytest.fixture
def volumes(pool):
    """Provide two subvolumes with a directory and a file each."""
    found = [pool.top / name for name in ('volume-one', 'volume-two')]
    for volume in found:
        kernel.create_subvolume(volume)
        (volume / 'folder').mkdir()
        (volume / 'file').write_bytes(b'content')
    yield found
    for volume in found:
        kernel.destroy(volume)


def test_only_files_of_the_mounted_subvolume_are_opened(volumes):
    one, two = volumes
    assert open_through_guard(one, one / 'file') == 0
    assert open_through_guard(one, two / 'file') == errno.ESTALE
    assert open_through_guard(one, two.parent) == errno.ESTALE


def test_file_of_another_subvolume_is_not_truncated(volumes):
    one, two = volumes
    assert open_through_guard(one, two / 'file', TRUNCATE) == errno.ESTALE
    assert (two / 'file').read_bytes() == b'content'
    assert open_through_guard(two, two / 'file', TRUNCATE) == 0
    assert (two / 'file').read_bytes() == b''


def test_mount_that_is_no_subvolume_opens_nothing(volumes, tmp_path):
    """Such as the directory below a mount that is missing."""
    one, _ = volumes
    for mount in (one / 'folder', tmp_path):
        assert open_through_guard(mount, mount) == errno.ESTALE


def test_plugin_that_would_open_handles_past_the_guard_is_not_used():
    storage.require()
    load = 'import ctypes, sys; ctypes.CDLL(sys.argv[1], mode=2)'
    done = subprocess.run(
        [sys.executable, '-c', load, str(GUARD.find())], capture_output=True, text=True
    )
    assert done.returncode < 0
    assert 'opens handles without their guard' in done.stderr


def test_guard_is_found_where_it_was_built_and_where_a_package_has_it(folders):
    local, package = folders
    assert GUARD.find() is None
    path = GUARD.build(package)
    assert GUARD.find() == path
    before = path.stat()
    assert GUARD.build(package) == path
    assert path.stat() == before
    assert GUARD.find() == path
    other = GUARD.build(local)
    assert GUARD.find() == other != path


def test_guard_that_others_can_replace_is_not_used(folders):
    path = GUARD.build(folders[0])
    for each in (path, path.parent):
        each.chmod(0o777)
        assert GUARD.find() is None
        each.chmod(0o755)
        assert GUARD.find() == path


def test_library_that_is_not_the_guard_is_not_used(folders):
    path = GUARD.build(folders[0])
    shutil.copy(GUARD.find_plugin(), path)
    assert GUARD.find() is None


def test_command_builds_what_the_check_misses(folders):
    ended = command_line.run(main, ['storage', 'check'], '')
    assert f'guard of NFS file handles: missing; {GUARD.remedy}' in (ended.out)
    assert 'in libfsalvfs.so: there is no guard; build it' in ended.out
    assert ended.code == 1
    command = ['storage', 'build-guard', '--folder', str(folders[0])]
    printed = command_line.run(main, command, '').out
    assert printed == f'{GUARD.find()}\n'


def test_without_a_compiler_the_packages_are_named(folders, monkeypatch):
    monkeypatch.setenv('PATH', str(folders[0]))
    with pytest.raises(exception.InvalidInput, match='gcc and libc6-dev'):
        GUARD.build(folders[0])


def test_back_end_without_the_guard_does_not_start(folders):
    with storage.folder() as folder:
        with pytest.raises(exception.StorageUnavailable, match='storage build-guard'):
            Site(folder)
        assert not list(folder.glob('root/nfs'))


def test_back_end_whose_guard_is_removed_is_out_of_use(folders):
    guard = GUARD.build(folders[0])
    with storage.folder() as folder:
        driver = Site(folder).driver
        driver.backend.check_health()
        guard.unlink()
        with pytest.raises(exception.StorageUnavailable, match='storage build-guard'):
            driver.backend.check_health()


def test_server_that_is_restarted_without_the_guard_exports_nothing(folders, pool):
    guard = GUARD.build(folders[0])
    with storage.folder() as folder:
        site = NfsSite(pool, folder)
        site.daemons.start()
        volume = site.create((WRITER, 'rw'))
        guard.unlink()
        pid = site.pid('server')
        site.kill('server')
        eventually(
            lambda: site.pid('server') != pid and site.daemons.server.is_answering()
        )
        with site.client(WRITER) as client, pytest.raises(NfsError):
            client.names_in(f'/shares/{volume}')


def test_server_that_has_not_loaded_the_guard_is_replaced(nfs):
    nfs.create((WRITER, 'rw'))
    nfs.daemons.require_guarded()
    pid = nfs.pid('server')
    (nfs.root / 'nfs' / handle_guard.RECORD).write_text(f'other {pid}\n')
    with pytest.raises(exception.StorageUnavailable, match='was ended'):
        nfs.daemons.require_guarded()
    eventually(lambda: nfs.pid('server') != pid and nfs.daemons.server.is_answering())
    eventually(nfs.daemons.server.numbers)
    nfs.daemons.require_guarded()


def test_server_without_exports_needs_not_have_loaded_the_guard(pool):
    with storage.folder() as folder:
        site = NfsSite(pool, folder)
        site.daemons.start()
        assert not (site.root / 'nfs' / handle_guard.RECORD).exists()
        site.daemons.require_guarded()
