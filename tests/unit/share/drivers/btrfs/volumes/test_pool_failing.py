"""What happens when the disk of a pool fails, and when it is back."""

import pathlib
import subprocess

import pytest

from manila_lite import exception
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.driver import BtrfsDriver
from manila_lite.share.drivers.btrfs.exports.smb.smb_users import SmbUsers
from manila_lite.share.drivers.btrfs.volumes.pool import mounted_pool
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers.driver_harness import CTX
from tests.support import storage
from tests.support.failing_disk import FailingDisk
from tests.support.smb_client import PASSWORD, SmbClient, SmbError
from tests.unit.share.drivers.btrfs.driver_site import (
    MIB,
    WRITER,
    Site,
    path_of,
    refused,
)
from tests.unit.share.drivers.btrfs.nfs_site import eventually

pytestmark = storage.beside_daemons


class FailingSite(Site):
    """A back end with a pool whose disk can fail, `small`."""

    def __init__(self, folder: pathlib.Path):
        super().__init__(folder)
        self.disk = FailingDisk(folder / 'small.img')

    @property
    def top(self) -> pathlib.Path:
        return pathlib.Path(self.options['btrfs_root'], 'pools', 'small')


@pytest.fixture
def site():
    storage.require()
    with storage.folder() as folder:
        # Other processes that get a mount namespace do not keep the pools.
        kernel.share_mounts(folder)
        site = FailingSite(folder)
        yield site
        site.disk.heal()


def test_error_names_the_file_system_that_has_failed(site):
    share = site.create('small', size=3)
    site.disk.break_file_system(site.top)
    for call in (
        lambda: site.driver.extend_share(share, 5),
        lambda: site.driver.shrink_share(share, 1),
        lambda: site.driver.create_snapshot(CTX, site.harness.snapshot(share)),
    ):
        with pytest.raises(exception.StorageUnavailable, match=str(site.top)):
            call()


def test_share_is_refused_by_a_pool_that_has_become_read_only(site):
    site.disk.break_file_system(site.top)
    share = site.share('small')
    with pytest.raises(exception.ShareRefused, match='pool small is read-only'):
        site.driver.create_share(CTX, share)


def test_pools_serve_after_a_start_of_the_machine_while_another_is_lost(site):
    share, lost = site.create(), site.create('small')
    site.client().write(path_of(lost), 'notes', b'kept')
    site.reboot()
    image = site.folder / 'small.img'
    image.rename(site.folder / 'away.img')
    for _ in range(2):
        with pytest.raises(exception.DriverError, match='pool small'):
            site.start()
        site.client().write(path_of(share), 'notes', b'hello')
        with refused('NOENT'):
            site.client().look_up(path_of(lost))
    (site.folder / 'away.img').rename(image)
    site.driver = site.start()
    assert site.client().read(path_of(lost), 'notes') == b'kept'
    assert site.client().read(path_of(share), 'notes') == b'hello'


def test_pool_that_cannot_be_mounted_is_named(site):
    site.reboot()
    eventually(lambda: not site.disk.is_in_use())
    (site.folder / 'small.img').write_bytes(bytes(MIB))
    with pytest.raises(
        exception.StorageUnavailable, match='pool small: .* cannot be mounted'
    ):
        site.start()


def test_nothing_is_deleted_while_a_pool_cannot_be_mounted(site):
    share = site.create('small')
    kernel.unmount(site.top)
    image = site.folder / 'small.img'
    image.rename(site.folder / 'away.img')
    with pytest.raises(exception.DriverError, match='pool small'):
        site.driver.check_health()
    with pytest.raises(exception.StorageUnavailable, match='not mounted'):
        site.driver.delete_share(CTX, share)
    (site.folder / 'away.img').rename(image)
    site.driver.check_health()
    assert site.driver.get_share_status(share)['status'] == 'available'


def test_pool_that_is_read_only_at_the_start_is_read_by_its_clients(site):
    share, other = site.create('small'), site.create()
    site.client().write(path_of(share), 'notes', b'kept')
    site.reboot()
    mounted_pool(site.folder / 'small.img', site.top)
    subprocess.run(['mount', '-o', 'remount,ro', site.top], check=True)
    with pytest.raises(exception.StorageUnavailable, match='pool small is read-only'):
        site.start()
    client = site.client()
    assert client.read(path_of(share), 'notes') == b'kept'
    with refused('ROFS'):
        client.write(path_of(share), 'notes', b'lost')
    client.write(path_of(other), 'notes', b'hello')
    kernel.unmount(site.top)
    site.driver = site.start()
    site.client().write(path_of(share), 'notes', b'then')


def test_disk_that_works_again_is_served_again(site):
    share, other = site.create('small'), site.create()
    site.client().write(path_of(share), 'notes', b'kept')
    site.driver.backend.pools['small'].commit()
    site.disk.break_file_system(site.top)
    with pytest.raises(
        exception.StorageUnavailable,
        match=f'pool small is read-only.*unmount {site.top}',
    ):
        site.driver.check_health()
    kernel.unmount(site.top)
    with pytest.raises(exception.StorageUnavailable, match='pool small'):
        site.driver.check_health()
    with refused('NOENT'):
        site.client().look_up(path_of(share))
    site.client().write(path_of(other), 'notes', b'hello')
    site.disk.heal()
    eventually(lambda: is_healthy(site.driver))
    client = site.client()
    assert client.read(path_of(share), 'notes') == b'kept'
    client.write(path_of(share), 'notes', b'more')
    with refused('NOENT'):
        site.client('127.0.0.9').look_up(path_of(share))


def is_healthy(driver):
    try:
        driver.check_health()
    except exception.StorageUnavailable:
        return False
    return True


def revert(site, share, snapshot, mode):
    driver = BtrfsDriver(
        configuration=Configuration.from_values(
            site.options | {'btrfs_revert_mode': mode}
        )
    )
    driver.backend.attach()
    driver.revert_to_snapshot(CTX, snapshot, [], [])


CHANGES = {
    'create': lambda site, *args: site.create('small'),
    'clone': lambda site, share, snapshot: site.driver.create_share_from_snapshot(
        CTX, site.share('small'), snapshot
    ),
    'delete': lambda site, share, snapshot: site.driver.delete_share(CTX, share),
    'extend': lambda site, share, snapshot: site.driver.extend_share(share, 9),
    'shrink': lambda site, share, snapshot: site.driver.shrink_share(share, 1),
    'snapshot': lambda site, share, snapshot: site.driver.create_snapshot(
        CTX, site.harness.snapshot(share)
    ),
    'delete snapshot': lambda site, share, snapshot: site.driver.delete_snapshot(
        CTX, snapshot
    ),
    'swap': lambda *args: revert(*args, 'swap'),
    'rewrite': lambda *args: revert(*args, 'rewrite'),
    'unmanage': lambda site, share, snapshot: site.driver.unmanage(share),
}
QUESTIONS = {
    'status': lambda site, share, snapshot: site.driver.get_share_status(share),
    'snapshot status': lambda site, share, snapshot: site.driver.get_snapshot_status(
        snapshot
    ),
    'statistics': lambda site, *args: site.driver.get_share_stats(refresh=True),
    'usage': lambda site, share, snapshot: site.driver.update_share_usage_size(
        CTX, [share]
    ),
    'health': lambda site, *args: site.driver.check_health(),
}


def deny_all_clients(site, share):
    site.driver.update_access(CTX, share, [], [], [], [])


@pytest.mark.parametrize('is_forgotten', [False, True])
def test_failing_disk_is_named_by_every_call_and_loses_nothing(site, is_forgotten):
    share, other = site.create('small', size=3), site.create()
    snapshot = site.harness.snapshot(share)
    site.client().write(path_of(share), 'notes', b'then')
    site.driver.create_snapshot(CTX, snapshot)
    site.client().write(path_of(share), 'notes', b'now!')
    kernel.flush(site.top)
    if is_forgotten:
        site.disk.fail_and_forget(site.top)
    else:
        site.disk.break_file_system(site.top)
    for name, call in (CHANGES | (QUESTIONS if is_forgotten else {})).items():
        with pytest.raises(exception.DriverError) as caught:
            call(site, share, snapshot)
        assert 'small' in str(caught.value), name
    site.client().write(path_of(other), 'notes', b'hello')
    site.disk.heal()
    kernel.unmount(site.top)
    eventually(lambda: is_healthy(site.driver))
    assert site.client().read(path_of(share), 'notes') == b'now!'
    assert site.driver.get_share_status(share)['status'] == 'available'
    site.driver.revert_to_snapshot(CTX, snapshot, [], [])
    assert site.client().read(path_of(share), 'notes') == b'then'
    assert [name for name in site.volumes('small') if not name.startswith('.')] == [
        share.name
    ]


def fail_in_memory_too(site):
    site.disk.fail_and_forget(site.top)


def lose_mount(site):
    kernel.unmount(site.top)


def managed(site):
    """Create a share whose volume has another name."""
    volume = site.create('small')
    site.driver.unmanage(volume)
    share = site.harness.at(f'127.0.0.1:{path_of(volume)}', host='host@backend#small')
    site.driver.manage_existing(share, {})
    site.allow(share)
    return share, path_of(volume)


def created(site):
    share = site.create('small')
    return share, path_of(share)


@pytest.mark.parametrize('fail', [fail_in_memory_too, lose_mount])
@pytest.mark.parametrize('new', [created, managed])
def test_revoked_client_loses_a_share_whose_pool_fails(site, fail, new):
    share, path = new(site)
    site.client().write(path, 'notes', b'kept')
    kernel.flush(site.top)
    fail(site)
    with pytest.raises(exception.DriverError, match='small'):
        deny_all_clients(site, share)
    with refused('NOENT'):
        site.client().look_up(path)
    site.disk.heal()
    if fail is fail_in_memory_too:
        kernel.unmount(site.top)
    eventually(lambda: is_healthy(site.driver))
    with refused('NOENT'):
        site.client().look_up(path)
    site.allow(share)
    assert site.client().read(path, 'notes') == b'kept'


def test_revoked_client_loses_a_snapshot_whose_pool_fails(site):
    share = site.create('small')
    snapshot = site.harness.snapshot(share)
    site.driver.create_snapshot(CTX, snapshot)
    rule = site.harness.rule(share, WRITER, access_level='ro')
    site.driver.snapshot_update_access(CTX, snapshot, [rule], [rule], [])
    path = f'/snapshots/{snapshot.name}'
    site.client().look_up(path)
    kernel.flush(site.top)
    fail_in_memory_too(site)
    with pytest.raises(exception.DriverError, match='small'):
        site.driver.snapshot_update_access(CTX, snapshot, [], [], [rule])
    with refused('NOENT'):
        site.client().look_up(path)


def test_clients_keep_a_failing_pool_while_others_are_added(site):
    share = site.create('small')
    site.client().write(path_of(share), 'notes', b'kept')
    kernel.flush(site.top)
    fail_in_memory_too(site)
    rules = [site.harness.rule(share, to) for to in (WRITER, '127.0.0.9')]
    with pytest.raises(exception.DriverError, match='small'):
        site.driver.update_access(CTX, share, rules, rules[1:], [], [])
    site.client().look_up(path_of(share))


def test_access_is_revoked_while_another_pool_is_not_mounted(site):
    share, other = site.create(), site.create('small')
    kernel.unmount(site.top)
    deny_all_clients(site, share)
    with refused('NOENT'):
        site.client().look_up(path_of(share))
    site.client().look_up(path_of(other))


@pytest.mark.parametrize('fail', [fail_in_memory_too, lose_mount])
def test_shares_in_other_pools_are_ensured_while_one_fails(site, fail):
    failing = site.create('small')
    others = [site.create('large'), site.create('spare')]
    kernel.flush(site.top)
    fail(site)
    mounts = pathlib.Path(site.options['btrfs_root'], 'exports', 'mounts')
    for share in others:
        kernel.unmount(mounts / f'shares.{share.name}')
    replies = site.driver.ensure_shares(CTX, [failing, *others])
    # Without a reply its status remains: it is not lost.
    assert replies.keys() == {share.id for share in others}
    for share in others:
        assert replies[share.id]['status'] == 'available'
        site.client().write(path_of(share), 'notes', b'hello')


def test_client_without_a_rule_loses_a_pool_that_has_become_read_only(site):
    share = site.create('small')
    site.client().write(path_of(share), 'notes', b'kept')
    site.disk.break_file_system(site.top)
    deny_all_clients(site, share)
    with refused('NOENT'):
        site.client().look_up(path_of(share))
    site.disk.heal()
    kernel.unmount(site.top)
    eventually(lambda: is_healthy(site.driver))
    with refused('NOENT'):
        site.client().look_up(path_of(share))


def cifs_share(site):
    """Create a CIFS share, and a client that has written to it."""
    storage.require_cifs()
    port = storage.free_port()
    site.driver = site.start(btrfs_cifs=True, btrfs_smb_port=port)
    SmbUsers(site.driver.backend.root / 'smb').add('alice', PASSWORD)
    share = site.share('small', share_proto='CIFS')
    site.driver.create_share(CTX, share)
    rule = site.harness.rule(share, 'alice', access_type='user')
    site.driver.update_access(CTX, share, [rule], [rule], [], [])
    alice = SmbClient('alice', port)
    alice.write(share.name, 'notes', b'kept')
    kernel.flush(site.top)
    return share, alice


def test_revoked_user_loses_a_cifs_share_whose_pool_fails(site):
    share, alice = cifs_share(site)
    with alice.session(share.name) as session:
        session('ls')
        fail_in_memory_too(site)
        with pytest.raises(exception.DriverError, match='small'):
            deny_all_clients(site, share)
        with pytest.raises(SmbError, match='BAD_NETWORK_NAME'):
            alice.read(share.name, 'notes')


def test_cifs_share_is_back_with_its_disk_although_a_client_used_it(site):
    share, alice = cifs_share(site)
    with alice.session(share.name) as session:
        session('ls')
        site.disk.break_file_system(site.top)
        kernel.unmount(site.top)
        with pytest.raises(exception.StorageUnavailable, match='pool small'):
            site.driver.check_health()
        with pytest.raises(SmbError):
            alice.read(share.name, 'notes')
        site.disk.heal()
        eventually(lambda: is_healthy(site.driver))
    assert alice.read(share.name, 'notes') == b'kept'
