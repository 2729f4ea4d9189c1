"""manila-lite-manage storage: set up a machine for the driver btrfs."""

import subprocess

import pytest

from manila_lite.cmd.manage import main
import manila_lite.conf
from manila_lite.share.drivers.btrfs import machine
from manila_lite.share.drivers.btrfs.driver import BtrfsDriver
from manila_lite.share.drivers.btrfs.servers import ShareServer
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.support import command_line
from tests.support import storage
from tests.support.manage_command import manage


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
            ),
        )
    )
    assert all(line.endswith(': ok') for line in lines)


def test_package_to_install_is_named(monkeypatch):
    monkeypatch.setenv('PATH', '/nowhere')
    ended = command_line.run(main, ['storage', 'check'], '')
    assert ended.code == 1
    assert (
        'ganesha.nfsd: missing; install the package nfs-ganesha\n' in ended.out
    )


def test_printed_section_is_a_back_end(folder):
    printed = manage(
        'storage', 'prepare', '--pool', 'gold', '--size', '1G',
        '--folder', str(folder),
    )  # fmt: skip
    file = folder / 'manila_lite.conf'
    file.write_text(printed)
    conf = manila_lite.conf.new(files=[file])
    configuration = Configuration(conf, 'gold')
    configuration.override({'btrfs_nfs_port': storage.free_port()})
    assert configuration.share_driver == 'btrfs'
    driver = BtrfsDriver(configuration=configuration)
    driver.check_for_setup_error()
    stats = driver.get_share_stats()
    assert [pool['pool_name'] for pool in stats['pools']] == ['gold']
    manage('storage', 'stop', '--root', str(folder / 'gold'))
    assert not (folder / 'gold' / 'pools' / 'gold' / 'shares').exists()


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


def test_device_with_data_is_not_formatted(folder):
    image = storage.create_pool(folder / 'used.img', 1 << 30)
    device = subprocess.run(
        ['losetup', '--find', '--show', image],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    try:
        refused = manage(
            'storage', 'prepare', '--pool', 'gold', '--device', device, code=1
        )
    finally:
        subprocess.run(['losetup', '--detach', device], check=True)
    assert 'mkfs.btrfs' in refused


def test_only_a_back_end_is_stopped(tmp_path):
    refused = manage('storage', 'stop', '--root', str(tmp_path), code=1)
    assert 'is no btrfs_root' in refused


def test_users_of_cifs_shares_are_added_listed_and_removed(folder):
    refused = manage('storage', 'user', 'list', '--root', str(folder), code=1)
    assert 'is no btrfs_root' in refused
    (folder / 'smb').mkdir()

    def user(*args, **values):
        return manage(
            'storage', 'user', *args, '--root', str(folder), **values
        )

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
        return manage(
            'storage', 'user', *args, '--root', str(folder), **values
        )

    on_one, on_two = (('--share-server', server_id) for server_id in ids)
    refused = user('list', *on_one, code=1)
    assert 'share server one does not exist' in refused
    for server_id in ids:
        ShareServer(folder / 'servers' / server_id).write([], is_ready=True)
    user('add', 'alice', *on_one, stdin='a secret\n')
    user('add', 'bob', *on_two, stdin='a secret\n')
    assert user('list', *on_one).split() == ['name', 'alice']
    assert user('list', *on_two).split() == ['name', 'bob']
    assert 'with --share-server' in user('list', code=1)
    user('remove', 'alice', *on_one)
    assert 'alice' not in user('list', *on_one)
