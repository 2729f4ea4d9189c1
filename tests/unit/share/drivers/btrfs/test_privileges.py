"""What needs root, and a share service that is an ordinary user."""

import ast
import os
import pathlib
import re
import shutil
import stat
import struct
import subprocess
import tempfile
import uuid

import pytest

from manila_lite.share.drivers import btrfs
from manila_lite.share.drivers.btrfs import privileges
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.moves.transfer import transfer
from manila_lite.share.drivers.btrfs.volumes import snapshots
from tests.drivers import content
from tests.support import ordinary_user, sampling, storage, units
from tests.support.nfs_client import NfsClient, NfsError

pytestmark = storage.beside_daemons

ALL = (
    *privileges.CAPABILITIES,
    *privileges.CIFS_CAPABILITIES,
    *privileges.SERVER_CAPABILITIES,
)
NAMES = [capability.name for capability in ALL]

# The systemd unit


@pytest.mark.parametrize('setting', ['AmbientCapabilities', 'CapabilityBoundingSet'])
def test_unit_gives_the_capabilities_that_are_needed_and_no_others(setting):
    assert sorted(units.settings(units.BTRFS, setting)) == sorted(NAMES)
    # systemd would add those of the unit.
    assert f'{setting}=\n' in units.BTRFS.read_text()


def test_units_with_a_directory_in_common_are_of_one_user():
    """systemd gives a directory with all its content to the last of them."""
    users: dict[str, set[str]] = {}
    for unit in units.FOLDER.glob('*.service'):
        found = units.settings(unit, 'User')
        for part in units.FOLDER.glob(f'{unit.name}.d/*.conf'):
            found += units.settings(part, 'User')
        for setting in ('StateDirectory', 'LogsDirectory'):
            for name in units.settings(unit, setting):
                users.setdefault(f'{setting} {name}', set()).update(found)
    assert len(users) > 2
    assert all(len(each) == 1 for each in users.values()), users


def test_units_keep_others_out_of_their_directories():
    """systemd sets the mode at each start, by default to 755."""
    for unit in units.FOLDER.glob('*.service'):
        for setting in ('StateDirectory', 'LogsDirectory'):
            if units.settings(unit, setting):
                found = units.settings(unit, f'{setting}Mode')
                assert found == ['0750'], (unit.name, setting)


@pytest.mark.parametrize('setting', [
    'PrivateTmp', 'PrivateDevices', 'PrivateMounts', 'PrivateNetwork',
    'PrivateUsers', 'ProtectSystem', 'ProtectHome', 'ProtectClock',
    'ProtectControlGroups', 'ProtectHostname', 'ProtectKernelLogs',
    'ProtectKernelModules', 'ProtectKernelTunables', 'ProtectProc',
    'RestrictAddressFamilies', 'RestrictNamespaces', 'RestrictSUIDSGID',
    'SystemCallFilter', 'ReadOnlyPaths', 'InaccessiblePaths', 'ProcSubset',
    'DevicePolicy',
])  # fmt: skip
def test_drop_in_lifts_what_keeps_the_driver_from_its_work(setting):
    """Such as a view of its own of all mounts, or a ban on namespaces."""
    if f'\n{setting}=' in units.SHARE.read_text():
        assert re.search(
            rf'^{setting}=(false|auto|default|all|)$', units.BTRFS.read_text(), re.M
        )


def test_systemd_understands_the_drop_in(tmp_path):
    """The program of the unit need not be installed."""
    if shutil.which('systemd-analyze') is None:
        pytest.skip('systemd is not installed')
    unit = tmp_path / units.SHARE.name
    unit.write_text(re.sub(r'/opt/\w+/bin/', '/usr/bin/env ', units.SHARE.read_text()))
    shutil.copytree(units.BTRFS.parent, tmp_path / units.BTRFS.parent.name)
    ended = subprocess.run(
        ['systemd-analyze', 'verify', '--man=no', unit],
        capture_output=True,
        text=True,
        check=False,
    )
    assert units.BTRFS.name not in ended.stderr
    assert units.SHARE.name not in ended.stderr


# The code

USES = {
    'programs': (
        r'os\.(fork\w*|exec\w+|spawn\w+|posix_spawn\w*|system|popen)'
        r'|(subprocess|pty|multiprocessing)\.\w+',
        {
            'daemons', 'machine', 'server_network',
            'smb_server', 'smb_users', 'supervisor', 'transfer', 'trials',
        },
    ),
    'system calls': (
        r'os\.(setns|unshare|chroot|mknod)|(fcntl\.ioctl|ctypes)\.?\w*',
        {'kernel'},
    ),
    'mounts': (
        r'kernel\.(mount\w*|bind_mount|unmount\w*|share_mounts|\w+_follow'
        r'|loop_device|leave_mount_namespace)',
        {
            'exports', 'mount_table', 'pool',
            'pool_disks', 'server_network', 'servers', 'trials',
        },
    ),
    'users': (r'os\.set(res|re|e|)[ug]id|os\.setgroups', {'privileges'}),
}  # fmt: skip


def _used(path: pathlib.Path) -> list[str]:
    """Return the names with a dot that a module uses, and its imports."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.append(f'{node.value.id}.{node.attr}')
        elif isinstance(node, ast.ImportFrom):
            found += [f'{node.module}.{each.name}' for each in node.names]
    return found


@pytest.mark.parametrize('use', USES)
def test_only_the_listed_modules_use_privileges(use):
    pattern, listed = USES[use]
    modules = list(pathlib.Path(btrfs.__file__).parent.rglob('*.py'))
    assert len(modules) > 30
    found = {
        path.stem
        for path in modules
        if any(re.fullmatch(pattern, name) for name in _used(path))
    }
    assert found == listed
    for name in listed:
        assert re.search(rf'\b{name}\b', str(privileges.__doc__))


# What a process lacks

CHECK = "from manila_lite.cmd.manage import main; main(['storage', 'check'])"
START = """
import pathlib, sys
from tests.drivers.driver_harness import DriverHarness
from tests.support import storage
from manila_lite.share.drivers.contract.configuration import Configuration
options = storage.options(pathlib.Path(sys.argv[1]))
DriverHarness('btrfs', lambda: Configuration.from_values(options)).start()
"""


def _purpose(name: str) -> str:
    return next(each.purpose for each in ALL if each.name == name)


@pytest.mark.parametrize('name', ['CAP_SYS_ADMIN', 'CAP_NET_ADMIN'])
def test_check_names_the_capability_that_is_missing(name, tmp_path):
    storage.require_cifs()
    storage.require_servers()
    ordinary_user.require()
    ended = ordinary_user.run(['-c', CHECK], tmp_path, without=name)
    (missing,) = (line for line in ended.stdout.splitlines() if line.startswith(name))
    assert missing.endswith(_purpose(name))


@pytest.mark.parametrize('name', ['CAP_SYS_CHROOT', 'CAP_KILL'])
def test_back_end_without_a_capability_does_not_start(name, tmp_path):
    storage.require()
    ordinary_user.require()
    ended = ordinary_user.run(['-c', START, tmp_path], tmp_path, without=name)
    *_, error = ended.stderr.splitlines()
    assert 'BadConfiguration' in error
    assert f'lacks {name} (to {_purpose(name)});' in error
    assert not (tmp_path / 'root').exists()


# What users find, whichever user the share service is

OWNER, OTHER = 4711, 4712
_CAPABILITY = struct.pack('<5I', 0x02000001, 1 << 10, 0, 0, 0)  # net_bind


@pytest.fixture
def volume(pool):
    """Create a volume whose files have all that only root may give."""
    volume = f'share-{uuid.uuid4()}'
    pool.create(volume, 1)
    top = pool.path(Kind.SHARE, volume)
    content.populate(top)
    os.chown(top / 'one', OWNER, OTHER)
    (top / 'one').chmod(0o2770)
    secret = top / 'one' / 'secret'
    secret.write_text('of its owner')
    os.chown(secret, OWNER, OTHER)
    secret.chmod(0o6711)  # without CAP_FSETID it would have fewer bits
    os.setxattr(secret, 'security.capability', _CAPABILITY)
    os.setxattr(secret, 'trusted.note', b'of root')
    os.mknod(top / 'device', 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    os.chown(top / 'device', OWNER, OTHER)
    assert stat.S_IMODE(secret.stat().st_mode) == 0o6711
    return volume


def describe(top: pathlib.Path) -> tuple:
    secret = top / 'one' / 'secret'
    return (
        content.describe(top),
        {name: os.getxattr(secret, name) for name in os.listxattr(secret)},
        (top / 'device').lstat().st_rdev,
    )


def test_new_share_is_of_root(pool):
    volume = f'share-{uuid.uuid4()}'
    pool.create(volume, 1)
    found = pool.path(Kind.SHARE, volume).stat()
    assert (found.st_uid, found.st_gid) == (0, 0)
    assert stat.S_IMODE(found.st_mode) == 0o777


def test_copy_has_all_that_only_root_may_give(pool, volume):
    pool.take_snapshot(volume, volume)
    copy = transfer(pool.path(Kind.SNAPSHOT, volume), None, pool.top, lambda: None)
    assert copy is not None
    assert describe(copy) == describe(pool.path(Kind.SHARE, volume))


def test_rewritten_share_has_all_that_only_root_may_give(pool, volume):
    top = pool.path(Kind.SHARE, volume)
    before = describe(top)
    pool.take_snapshot(volume, volume)
    content.damage(top)
    limit = pool.limit_bytes(Kind.SHARE, volume)
    snapshots.rewrite(pool, volume, volume, limit)
    assert describe(top) == before


def test_nfs_client_cannot_use_the_files_of_another_user(nfs):
    volume = nfs.create(('127.0.0.0/8', 'rw'))
    path = f'shares/{volume}'
    owner, other, root = (
        NfsClient('127.0.0.1', nfs.port, '127.0.0.2', uid=uid)
        for uid in (OWNER, OTHER, 0)
    )
    owner.write(path, 'notes', b'mine')
    file = nfs.pool.path(Kind.SHARE, volume) / 'notes'
    assert file.stat().st_uid == OWNER
    file.chmod(0o600)
    assert owner.read(path, 'notes') == b'mine'
    assert root.read(path, 'notes') == b'mine'
    with pytest.raises(NfsError, match='ACCESS'):
        other.read(path, 'notes')
    folder = nfs.pool.path(Kind.SHARE, volume) / 'folder'
    folder.mkdir()
    folder.chmod(0o755)
    os.chown(folder, OWNER, OWNER)
    owner.write(f'{path}/folder', 'notes', b'mine')
    with pytest.raises(NfsError, match='ACCESS'):
        other.write(f'{path}/folder', 'new', b'of another')
    with pytest.raises(NfsError, match='ACCESS'):
        other.remove(f'{path}/folder', 'notes')
    assert os.listdir(folder) == ['notes']
    for client in (owner, other, root):
        client.close()


# All of it as an ordinary user

STORIES = ordinary_user.ROOT / 'tests/functional/stories'
SUITE = (
    # What users find, above
    'test_privileges.py::test_new_share_is_of_root',
    'test_privileges.py::test_copy_has_all',
    'test_privileges.py::test_rewritten_share_has_all',
    'test_privileges.py::test_nfs_client_cannot',
    'daemons/test_root_directory.py',
    # NFS: clients and their rules, statistics, revert, restart
    'test_driver.py::test_everything_is_back_after_a_start',
    'test_driver.py::test_share_is_not_shrunk',
    'test_driver.py::test_clients_stay_mounted',
    'exports/nfs/test_exports.py',
    # CIFS
    'exports/smb/test_smb_exports.py::test_clients_have_the_access_of_their_rules',
    'exports/smb/test_smb_exports.py::test_session_ends_when_a_rule_is_revoked',
    'exports/smb/test_smb_exports.py::test_size_is_a_limit',
    'exports/smb/test_smb_exports.py::test_removed_user_is_disconnected',
    # Share servers, with clients in other namespaces
    'servers/test_servers.py::test_tenants_with_the_same_address',
    'servers/test_servers.py::test_snapshot_is_mounted_cloned_and_reverted_to',
    'servers/test_servers.py::test_lost_namespace_is_replaced',
    'servers/test_servers.py::test_everything_is_back_after_a_restart',
    'servers/test_servers.py::test_nothing_is_left_of_a_deleted_server',
    'servers/test_servers_cifs.py::test_clients_have_the_access_of_their_rules',
    'servers/test_servers_cifs.py::test_storage_stop',
    # Copies in other pools
    'moves/test_clones.py::test_share_from_a_snapshot_elsewhere',
    'moves/test_replication.py::test_all_kinds_of_files',
    'moves/test_migration.py::test_moved_share',
    'moves/test_server_migration.py::test_cifs_share_moves_with_its_users',
    # The whole service, from the request to the bytes
    f'{STORIES / "test_nfs.py"}::test_another_machine_mounts',
)


@pytest.fixture
def short_path():
    """Provide a folder whose path leaves room for those of sockets."""
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name)
        path.chmod(0o755)
        yield path


@sampling.enumeration
def test_share_service_can_be_an_ordinary_user(short_path):
    """It has the capabilities of its unit, and so have its servers."""
    storage.require_cifs()
    storage.require_servers()
    ordinary_user.require()
    here = pathlib.Path(__file__).parent
    tests = sampling.sample(SUITE, 4)
    names = ' or '.join(
        each.partition('::')[2] or pathlib.Path(each).stem for each in tests
    )
    files = sorted({each.partition('::')[0] for each in tests})
    ended = ordinary_user.run(
        [
            *('-m', 'pytest', '-q', '-p', 'no:cacheprovider', '-rs'),
            f'--basetemp={short_path / "tmp" / "pytest"}',
            *('-k', names, *(here / file for file in files)),
        ],
        short_path,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ' skipped' not in ended.stdout
