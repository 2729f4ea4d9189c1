import sys

import pytest

from manila_lite import exception
from manila_lite.context import FencingToken, fenced
from manila_lite.share.drivers.cephfs.users import INTERNAL
from tests.drivers.crashes import interrupted_at, killed_at
from tests.drivers.driver_harness import CTX, DriverHarness
from tests.support import ceph as ceph_support

pytestmark = [ceph_support.limited, ceph_support.on_cluster]

MAKE = """
import os, random, socket
chunk = random.Random(1).randbytes
os.makedirs('deep/' * 40)
open('notes', 'w').write('then')
open('same', 'w').write('same')
open('large', 'wb').write(chunk(9_000_001))
with open('sparse', 'wb') as file:
    file.truncate(30_000_000)
    file.seek(20_000_000)
    file.write(b'end')
open('names', 'w').write('one of two')
os.link('names', 'deep/other')
open('alone', 'w').write('alone')
open('deep/alone', 'w').write('alone')
os.symlink('notes', 'link')
os.symlink('x' * 2000, 'long')
os.mkfifo('pipe')
os.mkdir('was_directory')
open('was_directory/file', 'w').write('in it')
open('was_file', 'w').write('a file')
os.mkdir('closed')
open('tool', 'w').write('run')
os.chown('tool', 1000, 1001)
os.chmod('tool', 0o4755)
os.chmod('closed', 0o500)
os.setxattr('notes', 'user.colour', b'blue')
os.setxattr('deep', 'user.kept', b'dir')
os.utime('same', ns=(1_111_111_111, 1_222_222_222))
open(os.fsencode('gr\\xfc\\xdfe') + b'\\xff', 'w').write('any name')
"""
CHANGE = """
import os, shutil
before = os.stat('large')
with open('large', 'r+b') as file:
    file.seek(5_000_000)
    file.write(b'changed')
os.utime('large', ns=(before.st_atime_ns, before.st_mtime_ns))
open('notes', 'w').write('now')
open('more', 'w').write('new')
shutil.rmtree('was_directory')
open('was_directory', 'w').write('a file')
os.remove('was_file')
os.makedirs('was_file/with/some')
open('was_file/with/some/files', 'w').write('more')
with open('sparse', 'r+b') as file:
    file.write(b'begin')
    file.truncate(40_000_000)
os.remove('names')
os.link('alone', 'names')
os.remove('deep/alone')
os.link('alone', 'deep/alone')
os.remove('link')
os.symlink('elsewhere', 'link')
os.remove('long')
os.remove('pipe')
os.chmod('tool', 0o600)
os.chown('tool', 0, 0)
os.chmod('closed', 0o777)
open('closed/file', 'w').write('in it')
os.setxattr('notes', 'user.colour', b'red')
os.setxattr('notes', 'user.other', b'new')
os.removexattr('deep', 'user.kept')
shutil.rmtree('deep/deep/deep')
"""
SHOW = """
import hashlib, os, stat
names = {}
for folder, folders, files in os.walk(b'.'):
    for path in sorted(os.path.join(folder, name) for name in [b'', *folders, *files]):
        found = os.lstat(path)
        is_file, is_link = stat.S_ISREG(found.st_mode), stat.S_ISLNK(found.st_mode)
        first = names.setdefault(found.st_ino, path)
        content = hashlib.sha256(open(path, 'rb').read()).hexdigest() if is_file else (
            os.readlink(path) if is_link else '')
        xattrs = {} if is_link else {
            name: os.getxattr(path, name)
            for name in os.listxattr(path) if name.startswith('user.')}
        print(path, first, found.st_mode, found.st_uid, found.st_gid,
              found.st_mtime_ns, found.st_nlink, content, xattrs)
"""


class Users:
    """Users of a share, by a mount of the whole file system."""

    def __init__(self, driver, share, client):
        path = driver.backend.get_share(share)['path']
        self._client, self._folder = client, path.lstrip('/')

    def python(self, script: str) -> str:
        command = f'cd {self._folder}; {sys.executable} -I -; sync -f .'
        return self._client.run(command, script.encode()).decode()

    def writing(self, name: str):
        return self._client.writing(f'{self._folder}/{name}', sync=False)

    def changed_at(self, name: str) -> int:
        return int(self.python(f'import os; print(os.stat({name!r}).st_ctime_ns)'))


@pytest.fixture
def users(driver, share, ceph_root):
    return Users(driver, share, ceph_root)


@pytest.fixture
def snapshot(harness, driver, share, users):
    users.python(MAKE)
    snapshot = harness.snapshot(share)
    driver.create_snapshot(CTX, snapshot)
    return snapshot


def revert(driver, snapshot):
    return driver.revert_to_snapshot(CTX, snapshot, [], [])


def internal_users(driver, share):
    found = driver.backend.ask('subvolume authorized_list', sub_name=share.name)
    return [name for one in found for name in one if name.startswith(INTERNAL)]


def test_everything_is_as_it_was(driver, share, users, snapshot):
    then = users.python(SHOW)
    unchanged = users.changed_at('same')
    users.python(CHANGE)
    assert users.python(SHOW) != then
    revert(driver, snapshot)
    assert users.python(SHOW) == then
    assert users.changed_at('same') == unchanged
    assert internal_users(driver, share) == []


def test_clients_keep_their_mounts_and_open_files(
    ceph, harness, driver, share, users, snapshot
):
    rule = harness.rule(share, '10.0.0.1')
    (reply,) = driver.apply_access(CTX, share, [rule], [rule]).values()
    path = driver.backend.get_share(share)['path']
    with (
        ceph.mounted(f':{path}', rule['access_to'], reply['access_key']) as client,
        client.writing('same') as file,
    ):
        assert file.write(b'now')
        client.write('notes', b'now')
        revert(driver, snapshot)
        assert client.read('notes') == b'then'
        assert client.read('same') == b'same'
        assert file.write(b'again')
        assert users.python("print(open('same').read())").endswith('again\n\n')


def test_what_a_client_has_not_sent_yet_is_reverted(driver, users, snapshot):
    """It is the only client so far, and the metadata server has not been told."""
    with users.writing('same') as file:
        assert file.write(b'longer than before')
        revert(driver, snapshot)
        assert users.python("print(open('same').read())") == 'same\n'


def test_share_whose_revert_was_killed_is_in_error_until_it_is_completed(
    harness, driver, share, users, snapshot
):
    then = users.python(SHOW)
    users.python(CHANGE)
    driver.copies.step_seconds = 0
    assert killed_at(60, lambda: revert(driver, snapshot), lambda event, _: _is(event))
    assert users.python(SHOW) != then
    driver = harness.start()
    assert driver.get_share_status(share)['status'] == 'error'
    assert driver.ensure_shares(CTX, [share])[share.id]['status'] == 'error'
    with pytest.raises(exception.ShareBackendException, match='not reverted'):
        driver.create_snapshot(CTX, harness.snapshot(share))
    with pytest.raises(exception.ShareBackendException, match='not reverted'):
        driver.unmanage(share)
    revert(driver, snapshot)
    assert driver.get_share_status(share)['status'] == 'available'
    assert users.python(SHOW) == then
    assert internal_users(driver, share) == []


def _is(event: str) -> bool:
    return event == 'manila_lite.ceph'


@pytest.mark.parametrize('step, seconds', [(1, 9), (5, 0), (40, 0)])
def test_late_call_changes_nothing_after_its_successor(
    step, seconds, driver, share, users, snapshot
):
    """It is paused where it is past all checks: the cluster cuts it off."""
    users.python(CHANGE)
    driver.copies.step_seconds = seconds

    def act():
        with fenced(FencingToken('share', 1)), pytest.raises(exception.DriverError):
            revert(driver, snapshot)

    def succeed():
        driver.copies.step_seconds = 1
        # One that takes over is killed before it has cut off the late one.
        with fenced(FencingToken('share', 2)):
            assert killed_at(
                1,
                lambda: revert(driver, snapshot),
                lambda _, args: args == ('fs subvolume evict',),
            )
        with fenced(FencingToken('share', 3)):
            revert(driver, snapshot)
        users.python("open('notes', 'w').write('later'); open('more', 'w').write('1')")

    assert interrupted_at(step, act, succeed, lambda _, args: args == ('copy',))
    assert users.python("print(open('notes').read(), open('more').read())") == (
        'later 1\n'
    )
    assert driver.get_share_status(share)['status'] == 'available'
    assert internal_users(driver, share) == []


def test_snapshot_of_another_share_is_refused(harness, driver, share, users, snapshot):
    other = harness.share()
    driver.create_share(CTX, other)
    mixed = harness.snapshot(other, name=snapshot['name'])
    with pytest.raises(exception.ShareBackendException, match='cannot be reverted'):
        revert(driver, mixed)
    assert driver.get_share_status(other)['status'] == 'available'


def test_rules_for_names_of_the_driver_are_refused(harness, driver, share):
    rule = DriverHarness.rule(
        harness, share, f'{INTERNAL}revert-1', access_type='cephx'
    )
    (reply,) = driver.apply_access(CTX, share, [rule], [rule]).values()
    assert reply['state'] == 'error'
    assert internal_users(driver, share) == []
