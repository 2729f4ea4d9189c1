"""manila-lite-manage storage: set up a machine for the driver btrfs."""

import contextlib
import os
import pathlib
import re
import shutil
import stat
import subprocess
import tempfile

import pytest

from manila_lite.cmd.manage import main
from manila_lite.share.drivers.btrfs import kernel, machine, privileges, trials
from manila_lite.share.drivers.btrfs.servers.servers import ShareServer
from tests.support import command_line, requirements, storage
from tests.support.manage_command import COMMAND, manage
from tests.support.nfs_client import NfsClient
from tests.support.processes import Command, free_port

INSTALLER = pathlib.Path(__file__).parents[3] / ('tools/install-storage-packages')
PACKAGES = {
    'mkfs.btrfs': 'btrfs-progs',
    'dbus-daemon': 'dbus',
    'ganesha.nfsd': 'nfs-ganesha',
    'smbd': 'samba',
    'smbpasswd': 'samba-common-bin',
    'ip': 'iproute2',
    'nsenter': 'util-linux',
    'unshare': 'util-linux',
}
LIBRARIES = {'libfsalvfs.so': 'nfs-ganesha-vfs', 'libnss_wrapper.so': 'libnss-wrapper'}


@pytest.fixture
def folder():
    storage.require()
    with storage.folder() as path:
        yield path


def test_machine_that_has_everything_is_ok():
    storage.require_cifs()
    storage.require_servers()
    lines = manage('storage', 'check').splitlines()
    assert len(lines) == sum(
        map(
            len,
            (
                machine.REQUIREMENTS,
                machine.CIFS_REQUIREMENTS,
                machine.SERVER_REQUIREMENTS,
                trials.TRIALS,
                trials.SERVER_TRIALS,
            ),
        )
    )
    assert all(line.endswith(': ok') for line in lines)


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A directory that is the whole search path, with all that is needed."""
    storage.require_cifs()
    storage.require_servers()
    for program in (*PACKAGES, 'true'):
        (tmp_path / program).symlink_to(shutil.which(program))
    monkeypatch.setenv('PATH', str(tmp_path))
    return tmp_path


@pytest.mark.parametrize('program', PACKAGES)
def test_package_of_a_missing_program_is_named(programs, program):
    (programs / program).unlink()
    ended = command_line.run(main, ['storage', 'check'], '')
    problems = [line for line in ended.out.splitlines() if not line.endswith(': ok')]
    missing, *not_tried = problems
    assert re.fullmatch(
        f'{program}( for CIFS| for share servers)?: '
        f'missing; install the package {PACKAGES[program]}',
        missing,
    )
    assert all(f': not tried without {program}' in line for line in not_tried)
    assert ended.code == ('for' not in missing)


def test_packages_that_are_named_are_installed_for_run_nfs():
    installed = set(re.findall(r'[a-z][a-z0-9-]+', INSTALLER.read_text()))
    essential = {'util-linux'}
    assert {*PACKAGES.values(), *LIBRARIES.values()} <= installed | essential


def check_through(*command):
    """Run the check by way of another command; return its problems."""
    done = subprocess.run(
        [*command, *COMMAND, 'storage', 'check'],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if not done.stdout:
        requirements.missing(f'{command[0]}: {done.stderr}')
    problems = dict(
        line.split(': ', 1)
        for line in done.stdout.splitlines()
        if not line.endswith(': ok')
    )
    return problems, done.returncode


def test_missing_libraries_and_kernel_features_are_named(tmp_path):
    storage.require_cifs()
    hidden = {
        pathlib.Path(folder, library).resolve()
        for top in pathlib.Path('/usr').glob('lib*')
        for folder, _, files in os.walk(top)
        for library in LIBRARIES.keys() & set(files)
    }
    script = ['mount --make-rprivate /']
    # What is mounted on a directory hides what is mounted below it.
    for number, path in enumerate(sorted(hidden, key=lambda p: len(p.parts))):
        layer = tmp_path / str(number)
        layer.mkdir()
        os.mknod(layer / path.name, stat.S_IFCHR, 0)  # hides the other
        script.append(
            f'mount -t overlay overlay -o lowerdir={layer}:{path.parent} {path.parent}'
        )
    script += [
        'if [ -d /lib/modules ]; then mount -t tmpfs none /lib/modules; fi',
        f'mount --bind {tmp_path} /dev',
        'mknod -m 666 /dev/null c 1 3',
        'mount --bind /dev/null /proc/filesystems',
        'exec "$@"',
    ]
    problems, code = check_through(
        'unshare', '--mount', 'sh', '-euc', '\n'.join(script), 'sh'
    )
    assert code == 1
    assert problems['btrfs'] == 'missing; use a kernel with btrfs'
    assert problems['/dev/loop-control'].startswith('missing; use a kernel')
    assert problems['ganesha/libfsalvfs.so'] == (
        'missing; install the package nfs-ganesha-vfs'
    )
    assert problems['libnss_wrapper.so for CIFS'] == (
        'missing; install the package libnss-wrapper'
    )


def test_container_without_privileges_is_told_what_it_cannot_do():
    storage.require_servers()
    problems, code = check_through('setpriv', '--bounding-set=-sys_admin,-net_admin')
    assert code == 1
    refusals = {
        'mount of a btrfs in a file': 'CAP_SYS_ADMIN and loop devices',
        'new network namespace for share servers': 'CAP_SYS_ADMIN',
        'new veth link for share servers': 'CAP_NET_ADMIN',
        'new bridge for share servers': 'CAP_SYS_ADMIN',
    }
    lacking = {'CAP_SYS_ADMIN', 'CAP_NET_ADMIN for share servers'}
    assert problems.keys() == refusals.keys() | lacking
    for name, need in refusals.items():
        assert 'Operation not permitted; a container needs' in problems[name]
        assert need in problems[name]


def test_other_users_are_told_which_capabilities_they_lack():
    storage.require()
    problems, code = check_through('unshare', '--user')
    assert code == 1
    for capability in privileges.CAPABILITIES:
        assert capability.purpose in problems[capability.name]


def test_nothing_is_left_of_what_was_tried(tmp_path, monkeypatch):
    storage.require_servers()
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
    manage('storage', 'check')
    assert list(tmp_path.iterdir()) == []
    assert str(tmp_path) not in pathlib.Path('/proc/mounts').read_text()
    for file in pathlib.Path('/sys/block').glob('loop*/loop/backing_file'):
        with contextlib.suppress(FileNotFoundError, OSError):
            assert str(tmp_path) not in file.read_text()


@pytest.fixture
def device(folder):
    with loop_device(folder) as path:
        yield path


@contextlib.contextmanager
def loop_device(folder):
    """Provide a block device without content."""
    image = folder / 'disk'
    image.touch()
    os.truncate(image, 1 << 30)
    path = subprocess.run(
        ['losetup', '--find', '--show', image],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    try:
        yield path
    finally:
        subprocess.run(['losetup', '--detach', path], check=True)


def prepare(folder, *args, code=0):
    return manage(
        *('storage', 'prepare', '--pool', 'gold', '--folder', str(folder)),
        *args,
        code=code,
    )


def mounted(pool, folder):
    """Mount a device or an image; return where."""
    target = folder / 'mounted'
    target.mkdir()
    subprocess.run(['mount', pool, target], check=True, capture_output=True)
    return target


@pytest.mark.parametrize('is_device', [False, True], ids=['file', 'device'])
def test_pasted_section_is_a_back_end_that_serves(folder, tmp_path, is_device):
    with contextlib.ExitStack() as stack:
        args = ('--size', '1G')
        if is_device:
            args = '--device', stack.enter_context(loop_device(folder))
        printed = prepare(folder, *args)
        port = free_port()
        file = tmp_path / 'manila_lite.conf'
        file.write_text(
            '[DEFAULT]\nenabled_share_backends = gold\n'
            f'{printed}btrfs_nfs_port = {port}\n'
        )
        service = Command(
            *('manila-lite', 'serve', '--config-file', file),
            *('--state-dir', tmp_path / 'state'),
            *('--port', free_port()),
            log=tmp_path / 'serve.log',
            forked=True,
        )
        stack.callback(service.kill)
        service.wait_for(
            lambda: re.search('Back end .*@gold is up', service.output),
            'the back end is up',
        )
        service.stop()
        assert NfsClient('127.0.0.1', port).names_in('/') is not None
        shares = folder / 'gold/pools/gold/shares'
        kernel.create_subvolume(shares / 'kept')
        assert prepare(folder, *args) == printed
        manage('storage', 'stop', '--root', str(folder / 'gold'))
        assert not shares.exists()
        assert prepare(folder, *args) == printed
        pool = re.search('btrfs_pools = gold:(.*)', printed)[1]
        assert (mounted(pool, folder) / 'shares/kept').is_dir()
        kernel.unmount_below(folder)


def test_pool_that_exists_is_kept(folder):
    command = ('storage', 'prepare', '--pool', 'gold', '--folder', str(folder))
    printed = manage(*command)
    before = (folder / 'gold.img').stat()
    assert manage(*command) == printed
    assert (folder / 'gold.img').stat() == before
    assert before.st_size == 20 << 30


@pytest.mark.parametrize(
    'option, value, code, reason',
    [
        ('--pool', 'a/b', 2, 'is not a name'),
        ('--pool', 'x]\n[y', 2, 'is not a name'),
        ('--size', 'large', 2, 'is not a size'),
        ('--size', '1M', 1, '128 MiB'),
        ('--device', '/dev/null', 1, 'not a block device'),
        ('--folder', '/dev/null', 1, '/dev/null'),
    ],
)
def test_bad_request_is_explained(folder, option, value, code, reason):
    values = {'--pool': 'gold', '--folder': str(folder), option: value}
    command = [part for pair in values.items() for part in pair]
    assert reason in manage('storage', 'prepare', *command, code=code)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    'command, reason',
    [
        (['mkfs.ext4', '-q'], 'existing filesystem (ext4)'),
        (['mkfs.btrfs', '-q'], 'existing filesystem (btrfs)'),
        (['mkfs.btrfs', '-q', '-L', 'manila-lite:other'], '(btrfs)'),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_device_with_data_is_not_formatted(folder, device, command, reason):
    subprocess.run([*command, device], check=True, capture_output=True)
    before = (folder / 'disk').read_bytes()[: 1 << 20]
    refused = prepare(folder, '--device', device, code=1)
    assert f'mkfs.btrfs {device}' in refused
    assert reason in refused
    assert (folder / 'disk').read_bytes()[: 1 << 20] == before


def test_only_a_back_end_is_stopped(tmp_path):
    refused = manage('storage', 'stop', '--root', str(tmp_path), code=1)
    assert 'is no btrfs_root' in refused


def test_users_of_cifs_shares_are_added_listed_and_removed(folder):
    refused = manage('storage', 'user', 'list', '--root', str(folder), code=1)
    assert 'is no btrfs_root' in refused
    (folder / 'smb').mkdir()

    def user(*args, **values):
        return manage('storage', 'user', *args, '--root', str(folder), **values)

    assert user('add', 'alice', stdin='a secret\n') == ''
    assert user('list').split() == ['name', 'alice']
    assert 'a secret' not in user('add', 'Bob', stdin='a secret', code=1)
    user('remove', 'alice')
    assert 'alice' not in user('list')
    assert 'no user' in user('remove', 'alice', code=1)


def test_each_share_server_has_users_of_its_own(folder):
    ids = ('one', 'two')
    (folder / 'servers').mkdir()
    for server_id in ids:
        ShareServer(folder / 'servers' / server_id).write([], is_ready=False)

    def user(*args, **values):
        return manage('storage', 'user', *args, '--root', str(folder), **values)

    on_one, on_two = (('--share-server', server_id) for server_id in ids)
    refused = user('list', *on_one, code=1)
    assert 'share server one does not exist' in refused
    for server_id in ids:
        ShareServer(folder / 'servers' / server_id).write([], is_ready=True)
    user('add', 'alice', *on_one, stdin='a secret\n')
    user('add', 'robert', *on_two, stdin='a secret\n')
    assert user('list', *on_one).split() == ['name', 'alice']
    assert user('list', *on_two).split() == ['name', 'robert']
    assert 'with --share-server' in user('list', code=1)
    user('remove', 'alice', *on_one)
    assert 'alice' not in user('list', *on_one)
