"""What a user of a share may do, tried with the key of the rule."""

import dataclasses
import pathlib
import subprocess

import pytest

from manila_lite import exception
from manila_lite.share.drivers.base import normalise_export_locations
from tests.drivers.driver_harness import CTX
from tests.support import ceph as ceph_support
from tests.support.ceph import CALL_SECONDS, PYTHON, ClientError, MountRefused

pytestmark = [ceph_support.limited, ceph_support.on_cluster]

RAW = """
import rados, sys
conf, user, keyring, namespace = sys.argv[1:]
limits = dict.fromkeys(
    ('client_mount_timeout', 'rados_mon_op_timeout', 'rados_osd_op_timeout'), '10'
)
cluster = rados.Rados(
    conffile=conf, rados_id=user, conf={'keyring': keyring, **limits}
)
cluster.connect()
ioctx = cluster.open_ioctx('data')
ioctx.set_namespace(namespace)
for name, act in (
    ('write', lambda: ioctx.write_full('object', b'data')),
    ('read', lambda: ioctx.read('object')),
):
    try:
        act()
        print(name, 'done')
    except rados.Error as error:
        print(name, abs(error.errno))
"""


BY_NUMBER = """
import ctypes, sys
conf, user, keyring, root, inode, snapshot = sys.argv[1:]

class Number(ctypes.Structure):
    _fields_ = [('inode', ctypes.c_uint64), ('snapshot', ctypes.c_uint64)]

library = ctypes.CDLL('libcephfs.so.2')
pointer, size = ctypes.c_void_p, ctypes.c_size_t
client, found, file, other = pointer(), pointer(), pointer(), pointer()
library.ceph_create(ctypes.byref(client), user.encode())
library.ceph_conf_read_file(client, conf.encode())
limits = {'client_mount_timeout': '10', 'rados_osd_op_timeout': '10'}
options = {'keyring': keyring, 'client_permissions': 'false', **limits}
for name, value in options.items():
    library.ceph_conf_set(client, name.encode(), value.encode())
print('mount', library.ceph_mount(client, root.encode()), flush=True)
library.ceph_mount_perms.restype = pointer
user = pointer(library.ceph_mount_perms(client))
look_up = library.ceph_ll_lookup_vino
look_up.argtypes = [pointer, Number, pointer]
buffer, stat = ctypes.create_string_buffer(1000), (0xFFF, 0)
length, start = ctypes.c_uint64(100), ctypes.c_int64(0)

def call(name, *more):
    return getattr(library, 'ceph_ll_' + name)(client, found, *more, user)

def with_file(mode, act):
    code = call('open', mode, ctypes.byref(file))
    if code == 0:
        code = act()
        library.ceph_ll_close(client, file)
    return code

def names():
    code = call('opendir', ctypes.byref(file))
    if code == 0:
        code = library.ceph_readdir_r(client, file, buffer)
        library.ceph_ll_releasedir(client, file)
    return code

def content():
    if call('opendir', ctypes.byref(file)) == 0:  # reading one never returns
        return library.ceph_ll_releasedir(client, file) or -21
    return with_file(
        0, lambda: library.ceph_ll_read(client, file, start, length, buffer)
    )

def with_other(name, *more):
    code = call(name, *more, ctypes.byref(other), buffer, *stat)
    if code == 0:
        library.ceph_ll_put(client, other)
    return code

acts = {
    'attributes': lambda: call('getattr', buffer, *stat),
    'xattr': lambda: call('getxattr', b'user.note', buffer, size(100)),
    'target': lambda: call('readlink', buffer, size(100)),
    'content': content,
    'write': lambda: with_file(1, lambda: 0),
    'names': names,
    'entry': lambda: with_other('lookup', b'notes'),
    'create': lambda: with_other('mkdir', b'new', 0o755),
    'remove': lambda: call('unlink', b'notes'),
}
if not look_up(client, Number(int(inode), int(snapshot)), ctypes.byref(found)):
    for name, act in acts.items():
        print(name, act(), flush=True)
    library.ceph_ll_put(client, found)
library.ceph_unmount(client)
"""
NO_SNAPSHOT, UNUSED = 2**64 - 2, 2**64 - 3


def by_number(cluster, user, key, root, inode, snapshot) -> set[str]:
    """Return what a user gets with made-up numbers, without a path."""
    result = subprocess.run(
        [
            *(PYTHON, '-I', '-c', BY_NUMBER, str(cluster.conf), user),
            *(str(cluster.keyring(user, key)), root, str(inode), str(snapshot)),
        ],
        capture_output=True,
        text=True,
        timeout=CALL_SECONDS,
    )
    found = dict(line.split() for line in result.stdout.splitlines())
    assert found.pop('mount') == '0'
    return {name for name, code in found.items() if int(code) >= 0}


GIVEN_AWAY = {'attributes', 'xattr', 'target'}
"""Also named in cephfs_storage.rst."""


def raw(cluster, user, key, namespace):
    """Use the objects of a namespace with a key, without the file system."""
    result = subprocess.run(
        [
            *(PYTHON, '-I', '-c', RAW, str(cluster.conf), user),
            *(str(cluster.keyring(user, key)), namespace),
        ],
        capture_output=True,
        text=True,
        timeout=CALL_SECONDS,
        check=True,
    )
    return dict(line.split() for line in result.stdout.splitlines())


def allow(harness, driver, share, name='10.0.0.1', **values):
    """Allow a user; return the rule and its key."""
    rule = harness.rule(share, name, **values)
    reply = driver.apply_access(CTX, share, [rule], [rule])[rule.id]
    assert reply['state'] == 'active'
    return rule, reply['access_key']


def location(driver, share):
    return normalise_export_locations(driver.create_share(CTX, share))[0]['path']


def test_key_opens_the_objects_of_its_share_only(harness, driver, share, ceph):
    other = harness.share()
    driver.create_share(CTX, other)
    rule, key = allow(harness, driver, share)
    own, foreign = (f'fsvolumens_{one.name}' for one in (share, other))
    user = rule['access_to']
    assert raw(ceph, user, key, own) == {'write': 'done', 'read': 'done'}
    denied = {'write': '1', 'read': '1'}
    for namespace in (foreign, '', 'manila_lite'):
        assert raw(ceph, user, key, namespace) == denied


def test_numbers_of_files_of_other_shares_lead_to_no_content(
    harness, driver, share, ceph, ceph_root
):
    """Ceph 16 gives attributes away if a number of a snapshot is made up."""
    rule, key = allow(harness, driver, share)
    root = driver.backend.get_share(share)['path']
    other = harness.share(project_id='stranger')
    driver.create_share(CTX, other)
    path = driver.backend.get_share(other)['path'].lstrip('/')
    ceph_root.write(f'{path}/notes', b'secret')
    ceph_root.run(f'mkdir {path}/below; ln -s target {path}/link; sync -f {path}')
    driver.create_snapshot(CTX, harness.snapshot(other))
    listed = ceph_root.run(f'stat -c %i {path} {path}/notes {path}/below {path}/link')
    above = ceph_root.run(f'stat -c %i . {path}/.. {path}/../..')
    user = rule['access_to']
    own = root.lstrip('/')
    ceph_root.write(f'{own}/notes', b'own')
    listed_own = ceph_root.run(f'stat -c %i {own}/notes {own}')
    found = [
        by_number(ceph, user, key, root, inode, NO_SNAPSHOT)
        for inode in map(int, listed_own.split())
    ]
    assert found[0] >= {'attributes', 'content', 'write'}
    assert found[1] >= {'attributes', 'names', 'entry', 'create', 'remove'}
    for inode in map(int, (listed + above).split()):
        assert not by_number(ceph, user, key, root, inode, NO_SNAPSHOT)
        for snapshot in (UNUSED, *range(1, 6)):
            found = by_number(ceph, user, key, root, inode, snapshot)
            assert found <= GIVEN_AWAY
    assert ceph_root.read(f'{path}/notes') == b'secret'


@pytest.mark.parametrize('below', ['', '/..', '/../..', '/.snap', '/../.snap'])
def test_user_mounts_no_directory_of_another_share(harness, driver, share, ceph, below):
    rule, key = allow(harness, driver, share)
    other = harness.share()
    driver.create_share(CTX, other)
    driver.create_snapshot(CTX, harness.snapshot(other))
    path = pathlib.PurePosixPath(driver.backend.get_share(other)['path'])
    for _ in range(below.count('..')):
        path = path.parent
    if below.endswith('.snap'):
        path /= '.snap'
    with pytest.raises(MountRefused), ceph.mounted(f':{path}', rule['access_to'], key):
        pass


def test_key_of_a_reader_opens_no_object_for_writing(harness, driver, share, ceph):
    rule, key = allow(harness, driver, share, access_level='ro')
    found = raw(ceph, rule['access_to'], key, f'fsvolumens_{share.name}')
    assert found['write'] == '1'


def test_denied_client_is_cut_off_with_its_open_file(harness, driver, share, ceph):
    rule, key = allow(harness, driver, share)
    with ceph.mounted(location(driver, share), rule['access_to'], key) as client:
        client.write('notes', b'hello')
        with client.writing('log') as log:
            assert log.write(b'one')
            driver.apply_access(CTX, share, [], [], [rule])
            assert not log.write(b'two')
        with pytest.raises(ClientError):
            client.read('notes')
    with (
        pytest.raises(ClientError),
        ceph.mounted(location(driver, share), rule['access_to'], key),
    ):
        pass


def test_eviction_that_was_missed_is_made_when_the_denial_is_repeated(
    harness, driver, share, ceph
):
    """The worker ended after the user had lost the path."""
    rule, key = allow(harness, driver, share)
    with ceph.mounted(location(driver, share), rule['access_to'], key) as client:
        client.write('notes', b'hello')
        driver.backend.run(
            'subvolume deauthorize', sub_name=share.name, auth_id=rule['access_to']
        )
        driver.apply_access(CTX, share, [], [], [rule])
        with pytest.raises(ClientError):
            client.write('notes', b'late')


def test_client_that_may_only_read_from_now_on_writes_no_more(
    harness, driver, share, ceph
):
    rule, key = allow(harness, driver, share)
    reader = harness.rule(share, '10.0.0.1', id=rule.id, access_level='ro')
    with ceph.mounted(location(driver, share), rule['access_to'], key) as client:
        client.write('notes', b'hello')
        driver.apply_access(CTX, share, [reader], [], [], [reader])
        with pytest.raises(ClientError):
            client.write('notes', b'late')
    with ceph.mounted(location(driver, share), rule['access_to'], key) as client:
        assert client.read('notes') == b'hello'
        with pytest.raises(ClientError):
            client.write('notes', b'late')


def test_client_sees_the_size_of_its_share(harness, driver, share, ceph):
    rule, key = allow(harness, driver, share)
    with ceph.mounted(location(driver, share), rule['access_to'], key) as client:
        assert client.size() == 1
        with pytest.raises(ClientError, match='quota'):
            client.run('truncate -s 1100M big')


def test_client_that_dies_keeps_nobody_waiting(harness, driver, share, ceph):
    """Its key is for the share only, so that it holds no directory above that.

    One that does delays what changes there until its session ends, a minute later;
    calls of the driver take less than that here, or fail.
    """
    rule, key = allow(harness, driver, share)
    with ceph.mounted(location(driver, share), rule['access_to'], key) as client:
        client.write('notes', b'hello')
        client.end()
        driver.create_share(CTX, harness.share())
        driver.extend_share(share, 2)
        driver.create_snapshot(CTX, harness.snapshot(share))


@pytest.mark.parametrize('project', ['project', 'another'])
def test_user_of_another_project_is_refused(harness, driver, share, project):
    rule, key = allow(harness, driver, share, '10.0.0.2')
    other = harness.share(project_id=project)
    driver.create_share(CTX, other)
    again = harness.rule(other, '10.0.0.2')
    reply = driver.apply_access(CTX, other, [again], [again])[again.id]
    if project == 'project':
        assert reply == {'state': 'active', 'access_key': key}
    else:
        assert reply['state'] == 'error'
        assert 'already in use' in reply['reason']


@pytest.mark.parametrize('kind', ['administrator', 'other service'])
def test_user_with_another_purpose_is_refused(harness, driver, share, ceph, kind):
    """Its capabilities stay what they are."""
    with ceph.user(mon='allow r') as service:
        user = 'admin' if kind == 'administrator' else service.name
        before = ceph.admin.mon('auth get', entity=f'client.{user}')
        rule = dataclasses.replace(harness.rule(share, 'any'), access_to=user)
        other = harness.rule(share, '10.0.0.3')
        replies = driver.apply_access(CTX, share, [rule, other], [rule, other])
        assert replies[rule.id]['state'] == 'error'
        assert replies[rule.id]['reason']
        assert replies[other.id]['state'] == 'active'
        assert ceph.admin.mon('auth get', entity=f'client.{user}') == before


@pytest.mark.parametrize(
    'values', [{'access_type': 'ip'}, {'access_level': 'unheard-of'}]
)
def test_rule_that_can_never_apply_says_why(harness, driver, share, values):
    rule = harness.rule(share, '10.0.0.4', **values)
    (reply,) = driver.apply_access(CTX, share, [rule], [rule]).values()
    assert reply['state'] == 'error'
    assert reply['reason']


def test_rotated_key_is_in_the_next_reply(harness, driver, share, ceph):
    rule, key = allow(harness, driver, share)
    entity = f'client.{rule["access_to"]}'
    (found,) = ceph.admin.mon('auth get', entity=entity)
    driver.backend.run(
        'subvolume deauthorize', sub_name=share.name, auth_id=rule['access_to']
    )
    assert found['key'] == key
    (reply,) = driver.apply_access(CTX, share, [rule]).values()
    assert reply['access_key'] != key


def test_rules_of_a_subvolume_that_was_removed_are_not_found(harness, driver, share):
    driver.backend.run('subvolume rm', sub_name=share.name)
    rule = harness.rule(share, '10.0.0.5')
    with pytest.raises(exception.ShareResourceNotFound):
        driver.apply_access(CTX, share, [rule], [rule])


def test_users_of_a_deleted_share_are_cut_off(harness, driver, share, ceph):
    rule, key = allow(harness, driver, share)
    with ceph.mounted(location(driver, share), rule['access_to'], key) as client:
        client.write('notes', b'hello')
        driver.delete_share(CTX, share)
        with pytest.raises(ClientError):
            client.write('notes', b'late')
    users = {one['entity'] for one in ceph.admin.mon('auth ls')['auth_dump']}
    assert f'client.{rule["access_to"]}' not in users
