"""The btrfs driver beyond the contract that all drivers have."""

import errno
import os
import pathlib
import subprocess
import time

import pytest

from manila_lite import context, exception
from manila_lite.share.drivers import fencing, silence
from manila_lite.share.drivers.base import normalise_export_locations
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.driver import BtrfsDriver
from manila_lite.share.drivers.btrfs.volumes.pool import Pool
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers.contract import delete
from tests.drivers.crashes import changes, failed_at, killed_at
from tests.drivers.driver_harness import CTX
from tests.support import storage
from tests.support.manage_command import manage
from tests.unit.share.drivers.btrfs.driver_site import (
    MIB,
    WRITER,
    Site,
    fill,
    path_of,
    refused,
    repeat,
)
from tests.unit.share.drivers.btrfs.nfs_site import all_files_open, eventually


@pytest.fixture(scope='module')
def site():
    storage.require()
    with storage.folder() as folder:
        yield Site(folder)


def test_everything_is_back_after_a_start_of_the_machine(site):
    share = site.create()
    site.client().write(path_of(share), 'notes', b'hello')
    site.reboot()
    site.driver = site.start()
    assert site.client().read(path_of(share), 'notes') == b'hello'
    assert site.driver.get_share_status(share)['status'] == 'available'


def test_clients_go_on_while_the_driver_is_restarted(site):
    share = site.create()
    client = site.client()
    file = client.open(path_of(share), 'file', create=True)
    for number in range(3):
        site.driver = site.start()
        client.write_at(file, number, b'x')
    assert client.read(path_of(share), 'file') == b'xxx'


def test_everything_is_stopped_by_a_link_to_the_root():
    storage.require()
    with storage.folder() as folder:
        (folder / 'real').mkdir()
        (folder / 'link').symlink_to(folder / 'real')
        site = Site(folder / 'link')
        share = site.create()
        site.client().write(path_of(share), 'notes', b'hello')
        manage('storage', 'stop', '--root', site.options['btrfs_root'])
        assert str(folder) not in pathlib.Path('/proc/mounts').read_text()
        site.driver = site.start()
        assert site.client().read(path_of(share), 'notes') == b'hello'


def test_share_is_created_in_the_pool_of_its_host(site):
    share = site.create('small')
    assert site.driver.get_pool(share) == 'small'
    assert share.name in site.volumes('small')
    assert share.name not in site.volumes('large')


def test_pool_that_does_not_exist_is_named(site):
    with pytest.raises(exception.ShareBackendException, match='pool other'):
        site.driver.create_share(CTX, site.share('other'))


def test_statistics_are_those_of_each_pool(site):
    def pools():
        stats = site.driver.get_share_stats(refresh=True)
        return {pool['pool_name']: pool for pool in stats['pools']}

    before = pools()
    site.create(size=7)
    after = pools()
    assert before.keys() == {'large', 'small', 'spare'}
    assert (
        after['large']['provisioned_capacity_gb']
        == before['large']['provisioned_capacity_gb'] + 7
    )
    assert after['large']['total_capacity_gb'] == 8
    assert after['small']['total_capacity_gb'] < 0.2


def test_statistics_agree_with_what_is_in_a_pool(site):
    pool = site.driver.backend.pools['large']

    def stats():
        pool.used_bytes('shares', share.name)  # writes all to disk
        found = site.driver.get_share_stats(refresh=True)['pools']
        return next(one for one in found if one['pool_name'] == 'large')

    def changes():
        return {
            name: round(now[f'{name}_capacity_gb'] - before[name], 1)
            for now in [stats()]
            for name in before
        }

    def allocate(name, mib):
        with (pool.path('shares', share.name) / name).open('wb') as file:
            os.posix_fallocate(file.fileno(), 0, mib * MIB)

    share = site.create(size=2)
    names = ('total', 'free', 'used', 'provisioned', 'allocated')
    before = {name: stats()[f'{name}_capacity_gb'] for name in names}
    constant = {'total': 0, 'provisioned': 0, 'allocated': 0}
    allocate('one', 717)
    assert changes() == {'used': 0.7, 'free': -0.7} | constant
    site.driver.create_snapshot(CTX, site.harness.snapshot(share))
    allocate('two', 307)
    assert changes() == {'used': 1.0, 'free': -1.0} | constant
    # The snapshot still has it.
    (pool.path('shares', share.name) / 'one').unlink()
    assert changes() == {'used': 0.3, 'free': -1.0} | constant
    site.driver.extend_share(share, 5)
    assert changes()['provisioned'] == changes()['allocated'] == 3


def test_usage_of_shares_is_reported(site):
    share, unknown = site.create(), site.share()
    site.client().write(path_of(share), 'large', bytes(20 * MIB))
    site.driver.backend.pools['large'].used_bytes('shares', share.name)
    (usage,) = site.driver.update_share_usage_size(CTX, [share, unknown])
    assert usage['id'] == share.id
    assert usage['used_size'] == 0.02


def test_share_is_not_shrunk_below_what_clients_have_just_written(site):
    share = site.create(size=2)
    volume = site.driver.backend.pools['large'].path('shares', share.name)
    with (volume / 'large').open('wb') as file:
        os.posix_fallocate(file.fileno(), 0, 1100 * MIB)
    with pytest.raises(exception.ShareShrinkingPossibleDataLoss):
        site.driver.shrink_share(share, 1)
    assert site.driver.get_share_status(share)['size'] == 2


@pytest.mark.parametrize('mode', ['swap', 'rewrite'])
def test_clients_stay_mounted_only_if_a_revert_rewrites(site, mode):
    share = site.create()
    snapshot = site.harness.snapshot(share)
    client = site.client()
    client.write(path_of(share), 'notes', b'then')
    site.driver.create_snapshot(CTX, snapshot)
    client.write(path_of(share), 'notes', b'now!')
    client.write(path_of(share), 'new', b'')
    root = client.look_up(path_of(share))
    driver = site.start(btrfs_revert_mode=mode)
    assert driver.revert_to_snapshot(CTX, snapshot, [], []) == 1
    assert client.read(path_of(share), 'notes') == b'then'
    assert client.names_in(path_of(share)) == {'notes'}
    if mode == 'swap':
        with refused('STALE'):
            client.names_below(root)
    else:
        assert client.names_below(root) == {'notes'}


def limit_of(site, share):
    return site.driver.backend.pools['large'].limit_bytes('shares', share.name)


def kill_revert(site):
    """Let a revert of a share of 3 GiB be killed once it has more."""
    share = site.create(size=2)
    snapshot = site.harness.snapshot(share)
    site.driver.create_snapshot(CTX, snapshot)
    site.driver.extend_share(share, 3)
    driver = site.start(btrfs_revert_mode='rewrite')
    step = 0
    while limit_of(site, share) == 3 << 30:
        step += 1
        assert killed_at(
            step, lambda: driver.revert_to_snapshot(CTX, snapshot, [], []), changes
        )
    return share, snapshot, driver


def test_share_whose_revert_was_killed_is_limited_by_the_next_start(site):
    share, snapshot, driver = kill_revert(site)
    site.start()
    assert limit_of(site, share) == 3 << 30
    assert driver.get_share_status(share)['status'] == 'error'
    assert driver.revert_to_snapshot(CTX, snapshot, [], []) == 2
    assert limit_of(site, share) == 2 << 30


def require_old_size_when_managed(site, share):
    """Manage a share of 3 GiB again; extend it, which holds after a start."""
    managed = site.harness.at(f'127.0.0.1:{path_of(share)}', host='host@backend#large')
    assert site.driver.manage_existing(managed, {})['size'] == 3
    site.driver.extend_share(managed, 4)
    site.start()
    assert limit_of(site, share) == 4 << 30


def test_share_is_released_with_the_limit_before_a_killed_revert(site):
    share, snapshot, _ = kill_revert(site)
    site.driver.unmanage(share)
    assert limit_of(site, share) == 3 << 30
    require_old_size_when_managed(site, share)


def test_share_that_an_earlier_version_released_gets_its_limit_back(site):
    share, snapshot, driver = kill_revert(site)
    driver.backend.pools['large'].catalog.unmanage('shares', share.name)
    require_old_size_when_managed(site, share)


def test_revert_that_fails_names_the_share_and_is_completed_by_another(site):
    share = site.create()
    snapshot = site.harness.snapshot(share)
    site.driver.create_snapshot(CTX, snapshot)
    path = site.driver.backend.pools['large'].path('shares', share.name)
    (path / 'sealed').write_text('cannot be removed')
    driver = site.start(btrfs_revert_mode='rewrite')
    subprocess.run(['chattr', '+i', path / 'sealed'], check=True)
    try:
        with pytest.raises(exception.DriverError, match=f'{path}: .*not perm'):
            driver.revert_to_snapshot(CTX, snapshot, [], [])
        assert driver.get_share_status(share)['status'] == 'error'
        driver.extend_share(share, 2)
        site.start()
        assert limit_of(site, share) == 2 << 30
    finally:
        subprocess.run(['chattr', '-i', path / 'sealed'], check=True)
    driver.revert_to_snapshot(CTX, snapshot, [], [])
    assert driver.get_share_status(share)['status'] == 'available'
    assert site.client().names_in(path_of(share)) == set()


def test_snapshot_of_another_share_is_not_reverted_to(site):
    one, other = site.create(), site.create()
    snapshot = site.harness.snapshot(one)
    site.driver.create_snapshot(CTX, snapshot)
    wrong = site.harness.snapshot(other, name=snapshot.name)
    with pytest.raises(exception.ShareBackendException, match='not a snap'):
        site.driver.revert_to_snapshot(CTX, wrong, [], [])


def test_subvolume_that_an_administrator_has_made_is_managed(site):
    top = site.driver.backend.pools['large'].top
    subprocess.run(
        ['btrfs', 'subvolume', 'create', top / 'shares' / 'old-data'],
        check=True,
        capture_output=True,
    )
    (top / 'shares' / 'old-data' / 'notes').write_text('kept')
    share = site.harness.at('127.0.0.1:/shares/old-data')
    reply = site.driver.manage_existing(share, {'size': '3'})
    assert reply['size'] == 3
    site.allow(share)
    assert site.client().read('/shares/old-data', 'notes') == b'kept'
    site.driver.delete_share(CTX, share)
    assert 'old-data' not in site.volumes('large')


@pytest.mark.parametrize(
    'location',
    [
        '127.0.0.1:/shares/../records',
        '127.0.0.1:/shares/.trash-1',
        '127.0.0.1:/snapshots/x',
        '127.0.0.1:/shares/plain',
        '127.0.0.1:/shares/link',
    ],
)
def test_only_volumes_of_shares_are_managed(site, location):
    shares = site.driver.backend.pools['large'].top / 'shares'
    (shares / 'plain').mkdir(exist_ok=True)
    if not (shares / 'link').is_symlink():
        (shares / 'link').symlink_to(shares.parent)
    with pytest.raises(exception.ManageInvalidShare):
        site.driver.manage_existing(site.harness.at(location), {})


def test_health_names_a_server_that_has_its_files_open(site):
    site.driver.check_health()
    stats = site.driver.get_share_stats(refresh=True)
    assert 0 < stats['server_open_files_ratio'] < 0.1
    with all_files_open(site.driver.backend.root / 'nfs') as used:
        stats = site.driver.get_share_stats(refresh=True)
        assert stats['server_open_files_ratio'] > 0.9
        reason = f'open, of {used} '
        with pytest.raises(exception.StorageUnavailable, match=reason):
            site.driver.check_health()
    site.driver.check_health()


def test_rule_that_the_server_cannot_apply_fails_and_others_do_not(site):
    share = site.create()
    rules = [
        site.harness.rule(share, network, access_level='rw')
        for network in ('fd00::/112', '0.0.0.0/0')
    ]
    replies = site.driver.update_access(CTX, share, rules, rules, [], [])
    narrow, everyone = (replies[rule.id] for rule in rules)
    assert narrow['state'] == 'error'
    assert '99 bits' in narrow['reason']
    assert everyone['state'] == 'active'
    site.client().write(path_of(share), 'notes', b'hello')


def test_managed_share_and_snapshot_have_no_clients(site):
    """Those from before they were released are in no rules."""
    share = site.create()
    snapshot = site.harness.snapshot(share)
    site.driver.create_snapshot(CTX, snapshot)
    rule = site.harness.rule(share, WRITER)
    site.driver.snapshot_update_access(CTX, snapshot, [rule], [rule], [])
    shown = f'/snapshots/{snapshot.name}'
    site.driver.unmanage_snapshot(snapshot)
    site.client().look_up(shown)
    site.driver.manage_existing_snapshot(
        site.harness.snapshot(share, provider_location=snapshot.name), {}
    )
    with refused('NOENT'):
        site.client().look_up(shown)
    site.driver.unmanage(share)
    client = site.client()
    file = client.open(path_of(share), 'file', create=True)
    again = site.harness.at(f'127.0.0.1:{path_of(share)}')
    site.driver.manage_existing(again, {})
    with refused('ACCESS'):
        client.write_at(file, 0, b'hello')
    with refused('NOENT'):
        site.client().look_up(path_of(share))
    site.allow(again)
    site.client().write(path_of(share), 'notes', b'hello')


def test_volume_with_other_subvolumes_in_it_is_not_managed(site):
    """Snapshots and sizes would not include them."""
    share = site.create()
    top = site.driver.backend.pools['large'].top
    kernel.create_subvolume(top / 'shares' / share.name / 'inner')
    kernel.create_snapshot(
        top / 'shares' / share.name, top / 'snapshots' / 'nested', False
    )
    kernel.create_subvolume(top / 'snapshots' / 'nested' / 'inner2')
    kernel.set_read_only(top / 'snapshots' / 'nested', True)
    snapshot = site.harness.snapshot(share, provider_location='nested')
    with pytest.raises(exception.ManageInvalidShareSnapshot, match='other subvolumes'):
        site.driver.manage_existing_snapshot(snapshot, {})
    site.driver.unmanage(share)
    again = site.harness.at(f'127.0.0.1:{path_of(share)}')
    with pytest.raises(exception.ManageInvalidShare, match='other subvol'):
        site.driver.manage_existing(again, {})
    kernel.destroy(top / 'shares' / share.name / 'inner')
    site.driver.manage_existing(again, {})


def test_existing_volume_of_someone_else_is_not_given_to_a_new_share(site):
    share = site.create()
    site.client().write(path_of(share), 'notes', b'mine')
    site.driver.unmanage(share)
    with pytest.raises(exception.ShareBackendException, match='not managed'):
        site.driver.create_share(CTX, share)
    delete(site.driver, share)
    assert site.client().read(path_of(share), 'notes') == b'mine'


def test_late_call_is_refused(site):
    share = site.create()
    resource = f'share_instance:{share.id}'
    with context.fenced(context.FencingToken(resource, 5)):
        site.driver.extend_share(share, 2)
    with (
        context.fenced(context.FencingToken(resource, 4)),
        pytest.raises(exception.StaleFencingToken),
    ):
        site.driver.extend_share(share, 9)
    assert site.driver.get_share_status(share)['size'] == 2


def test_share_without_rules_costs_the_nfs_server_nothing(site):
    server = site.driver.backend.daemons.server
    before, share = server.numbers(), site.share()
    site.driver.create_share(CTX, share)
    site.driver.update_access(CTX, share, [], [], [], [])
    assert site.driver.ensure_shares(CTX, [share])[share.id]['status'] == ('available')
    assert server.numbers() == before
    with refused('NOENT'):
        site.client().look_up(path_of(share))
    site.allow(share)
    site.client().write(path_of(share), 'notes', b'hello')
    assert len(server.numbers()) == len(before) + 1


def test_lost_share_is_reported_and_the_others_are_ensured(site):
    lost, unknown = site.create(), site.share()
    kept = [site.create(), site.create()]
    top = site.driver.backend.pools['large'].path('shares', lost.name)
    kernel.destroy(top)
    replies = site.driver.ensure_shares(CTX, [lost, unknown, *kept])
    assert replies.pop(lost.id) == {'status': 'error'}
    assert replies.pop(unknown.id) == {'status': 'error'}
    assert {reply['status'] for reply in replies.values()} == {'available'}
    assert replies.keys() == {share.id for share in kept}
    site.driver.delete_share(CTX, lost)


def test_share_that_cannot_be_ensured_does_not_stop_the_others(site):
    """It is not lost: an error for good would be wrong."""
    failing, kept = site.create(), site.create()
    exports = pathlib.Path(site.options['btrfs_root'], 'exports')
    for share in (failing, kept):
        kernel.unmount(exports / 'mounts' / f'shares.{share.name}')
    mount = exports / 'mounts' / f'shares.{failing.name}'
    mount.rmdir()
    mount.write_text('a file in the place of a mount')
    replies = site.driver.ensure_shares(CTX, [failing, kept])
    assert failing.id not in replies
    assert replies[kept.id]['status'] == 'available'
    site.client().write(path_of(kept), 'notes', b'hello')
    mount.unlink()
    replies = site.driver.ensure_shares(CTX, [failing, kept])
    assert replies[failing.id]['status'] == 'available'
    site.client().write(path_of(failing), 'notes', b'hello')


def test_ensuring_waits_once_for_a_server_that_does_not_answer(site, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(silence, 'TIMEOUT', 1.0)
        driver = site.start()
    shares = [site.create() for _ in range(8)]
    root = pathlib.Path(site.options['btrfs_root'])
    storage.stop(root)
    for share in shares:
        kernel.unmount(root / 'exports' / 'mounts' / f'shares.{share.name}')
    began = time.monotonic()
    assert driver.ensure_shares(CTX, shares) == {}
    assert 1 < time.monotonic() - began < len(shares)
    site.driver = site.start()
    replies = site.driver.ensure_shares(CTX, shares)
    assert replies.keys() == {share.id for share in shares}
    site.client().write(path_of(shares[0]), 'notes', b'hello')


def test_creation_that_fails_at_any_step_leaves_no_record_without_a_volume(site):
    step, has_failed = 0, True
    pool = site.driver.backend.pools['large']
    while has_failed:
        step += 1
        share = site.share()
        has_failed = failed_at(
            step,
            lambda share=share: site.driver.create_share(CTX, share),
            OSError(errno.EIO, 'a broken disk'),
        )
        record = pool.catalog.find('shares', share.name)
        assert record is None or pool.has('shares', share.name), step
        site.driver.create_share(CTX, share)
        assert site.driver.get_share_status(share)['status'] == 'available'
    assert step > 10


def test_old_fencing_tokens_are_forgotten_at_start(site):
    """Those of deleted shares would remain for ever."""
    share = site.create()
    token = context.FencingToken(f'share_instance:{share.id}', 5)
    with context.fenced(token):
        site.driver.delete_share(CTX, share)
    folder = pathlib.Path(site.options['btrfs_root'], 'fencing')
    (file,) = folder.glob(f'*{share.id}')
    aged = time.time() - fencing.KEEP_SECONDS - 1
    os.utime(file, (aged, aged))
    site.driver = site.start()
    assert not file.exists()


def test_pool_that_is_unmounted_is_not_taken_for_an_empty_one(site):
    share = site.create()
    top = site.driver.backend.pools['large'].top
    subprocess.run(['umount', '-l', top], check=True)
    for call in (
        lambda: site.driver.get_share_status(share),
        lambda: site.driver.delete_share(CTX, share),
        lambda: site.driver.create_share(CTX, site.share()),
        lambda: site.driver.get_share_stats(refresh=True),
    ):
        with pytest.raises(exception.StorageUnavailable, match='not mounted'):
            call()
    assert os.listdir(top) == []
    site.driver.check_health()
    assert site.driver.get_share_status(share)['status'] == 'available'
    site.client().write(path_of(share), 'notes', b'hello')


def test_pool_of_another_back_end_is_refused_while_that_one_runs(site):
    """As a back end does that has another root now."""
    root = pathlib.Path(site.options['btrfs_root'])
    other = root.with_name('other')
    share = site.create()
    moved = {'btrfs_root': str(other), 'btrfs_nfs_port': storage.free_port()}
    with pytest.raises(exception.BadConfiguration, match=f'stop --root {root}'):
        site.start(**moved)
    assert str(other) not in pathlib.Path('/proc/mounts').read_text()
    manage('storage', 'stop', '--root', str(root))
    driver = site.start(**moved)
    assert driver.get_share_status(share)['status'] == 'available'
    with pytest.raises(exception.BadConfiguration, match=f'stop --root {other}'):
        site.start()
    manage('storage', 'stop', '--root', str(other))
    site.driver = site.start()
    site.client().write(path_of(share), 'notes', b'hello')


def test_pool_that_is_read_only_is_reported_and_loses_nothing(site):
    share = site.create('spare')
    top = site.driver.backend.pools['spare'].top
    subprocess.run(['mount', '-o', 'remount,ro', top], check=True)
    try:
        with pytest.raises(exception.StorageUnavailable, match='read-only'):
            site.driver.check_health()
        with pytest.raises(exception.DriverError, match='[Rr]ead-only'):
            site.driver.create_share(CTX, site.share('spare'))
        with pytest.raises(exception.DriverError, match='Read-only'):
            site.driver.delete_share(CTX, share)
    finally:
        subprocess.run(['mount', '-o', 'remount,rw', top], check=True)
    site.driver.check_health()
    site.driver.delete_share(CTX, share)


def test_empty_pools_are_refused_if_there_are_shares(site):
    with storage.folder() as folder:
        other = storage.options(folder)
        driver = BtrfsDriver(configuration=Configuration.from_values(other))
        driver.has_shares = True
        with pytest.raises(exception.StorageUnavailable, match='right file'):
            driver.check_for_setup_error()


@pytest.mark.parametrize(
    'options, reason',
    [
        ({'btrfs_root': 'relative'}, 'not an absolute path'),
        ({'btrfs_root': '/odd "path"'}, 'not allowed'),
        ({'btrfs_pools': {}}, 'names no pool'),
        ({'btrfs_pools': {'pool': '/no/such/file'}}, 'No such file'),
        ({'btrfs_pools': {'pool': '/usr'}}, 'not the top of a mounted btrfs'),
        ({'btrfs_export_addresses': ['host']}, 'host'),
        ({'btrfs_export_addresses': []}, 'btrfs_export_addresses'),
    ],
)
def test_bad_configuration_is_explained(tmp_path, options, reason):
    storage.require()
    driver = BtrfsDriver(
        configuration=Configuration.from_values(
            {
                'driver_handles_share_servers': False,
                'btrfs_root': str(tmp_path),
                'btrfs_pools': {'pool': '/usr'},
                **options,
            }
        )
    )
    with pytest.raises(exception.BadConfiguration, match=reason):
        driver.check_for_setup_error()


def test_locations_have_all_addresses(site):
    driver = site.start(btrfs_export_addresses=['127.0.0.1', '::1'])
    share = site.share()
    locations = normalise_export_locations(driver.create_share(CTX, share))
    assert [location['path'] for location in locations] == [
        f'127.0.0.1:{path_of(share)}',
        f'[::1]:{path_of(share)}',
    ]
    assert driver.get_configured_ip_versions() == [4, 6]


def test_sizes_that_the_kernel_gave_up_are_counted_again(site, caplog):
    share = site.create()
    site.client().write(path_of(share), 'large', bytes(20 * MIB))
    pool = site.driver.backend.pools['large']
    kernel.flush(pool.top)
    site.driver.create_snapshot(CTX, site.harness.snapshot(share))
    group = f'0/{kernel.subvolume_id(pool.path("shares", share.name))}'
    for command in (
        ['create', '1/0', pool.top],
        ['assign', '--no-rescan', group, '1/0', pool.top],
    ):
        subprocess.run(['btrfs', 'qgroup', *command], check=True)
    pool.commit()
    assert kernel.has_wrong_sizes(pool.top)
    site.driver.check_health()
    assert 'sizes of the shares in pool large are wrong' in caplog.text
    subprocess.run(['btrfs', 'quota', 'rescan', '-w', pool.top], check=True)
    pool.commit()
    assert not kernel.has_wrong_sizes(pool.top)
    assert pool.share_sizes()[share.name].used > 20 * MIB
    caplog.clear()
    site.driver.check_health()
    assert 'are wrong' not in caplog.text


@pytest.mark.usefixtures('space_is_freed_in_time')
@pytest.mark.parametrize('verb', ['share', 'snapshot', 'clone'])
def test_space_of_a_deleted_share_is_there_for_the_next_call(site, verb):
    share, filled = site.create('small'), site.create('small')
    source, snapshot = (site.harness.snapshot(share) for _ in range(2))
    site.driver.create_snapshot(CTX, source)
    fill(site.driver.backend.pools['small'].path('shares', filled.name))
    with pytest.raises(exception.StorageUnavailable, match='No space'):
        site.driver.create_snapshot(CTX, snapshot)
    delete(site.driver, filled)
    new = site.share('small')
    if verb == 'share':
        site.driver.create_share(CTX, new)
    elif verb == 'snapshot':
        site.driver.create_snapshot(CTX, snapshot)
    else:
        site.driver.create_share_from_snapshot(CTX, new, source)
    for each in (source, snapshot):
        site.driver.delete_snapshot(CTX, each)
    for each in (share, new):
        delete(site.driver, each)


def test_pool_that_is_not_there_frees_nothing(tmp_path):
    assert not Pool('lost', tmp_path / 'lost').free_removed(0.0)


@pytest.mark.usefixtures('space_is_freed_in_time')
def test_full_pool_refuses_a_share_and_keeps_nothing_of_it(site):
    share = site.create('small')
    pool = site.driver.backend.pools['small']
    fill(pool.path('shares', share.name))
    before = site.volumes('small')
    created = []

    def create():
        created.append(site.share('small'))
        site.driver.create_share(CTX, created[-1])

    with pytest.raises(exception.ShareRefused, match='small'):
        repeat(create)
    # As it is when an earlier version has filled it.
    (pool.top / 'owner.json').unlink()
    assert site.start().get_share_status(share)['status'] == 'available'
    assert {name for name in site.volumes('small') if not name.startswith('.')} <= {
        *before,
        *(each.name for each in created[:-1]),
    }
    for each in (share, *created):
        delete(site.driver, each)


def test_full_share_can_be_emptied_by_removing_files(site):
    """Then other files can be truncated, too."""
    share = site.create(size=1)
    top = site.driver.backend.pools['large'].top / 'shares' / share.name
    with (top / 'large').open('wb') as file:
        os.posix_fallocate(file.fileno(), 0, 900 * MIB)
    client = site.client()
    with refused('DQUOT'):
        for number in range(200):
            client.write(path_of(share), f'file-{number}', os.urandom(MIB))
    client.remove(path_of(share), 'file-0')
    eventually(lambda: _is_truncated(top / 'file-1'))
    client.remove(path_of(share), 'large')
    assert client.read(path_of(share), 'file-1') == b''
    site.driver.delete_share(CTX, share)


def _is_truncated(path):
    try:
        os.truncate(path, 0)
    except OSError as error:
        if error.errno != errno.EDQUOT:
            raise
        return False
    return True
