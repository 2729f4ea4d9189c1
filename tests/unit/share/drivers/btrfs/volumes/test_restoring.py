"""What somebody else has changed of a back end that serves clients.

That is limits and flags, as `btrfs` shows them, and exports.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from manila_lite import exception
from manila_lite.share.drivers.btrfs.volumes.restoring import restore_limits
from manila_lite.share.drivers.space import GIB
from tests.drivers.driver_harness import CTX
from tests.support import storage
from tests.unit.share.drivers.btrfs.driver_site import Site, path_of, refused


@pytest.fixture
def site():
    storage.require()
    with storage.folder() as folder:
        yield Site(folder)


def top_of(site, pool='large') -> pathlib.Path:
    return site.driver.backend.pools[pool].top


def btrfs(*words) -> str:
    return subprocess.run(
        ['btrfs', *map(str, words)], check=True, capture_output=True, text=True
    ).stdout


def group_of(site, item, kind='shares') -> str:
    path = top_of(site) / kind / item.name
    return f'0/{btrfs("inspect-internal", "rootid", path).strip()}'


def limit_of(site, item, kind='shares') -> str:
    """Return the limit of a volume in bytes."""
    group = group_of(site, item, kind)
    for line in btrfs('qgroup', 'show', '-r', '--raw', top_of(site)).splitlines():
        if line.split()[0] == group:
            return line.split()[3]
    raise AssertionError(f'no group {group}')


def disable_quotas(site):
    btrfs('quota', 'disable', top_of(site))


def report(site, share):
    site.driver.check_health()


def start(site, share):
    site.driver = site.start()


def ensure(site, share):
    replies = site.driver.ensure_shares(CTX, [share])
    assert replies[share.id]['status'] == 'available'


def provisioned(site) -> dict:
    pools = site.driver.get_share_stats(refresh=True)['pools']
    return {pool['pool_name']: pool['provisioned_capacity_gb'] for pool in pools}


@pytest.mark.parametrize('act', [start, report, ensure])
def test_limits_that_were_lost_with_the_quotas_are_restored(site, act):
    share, other = site.create(size=2), site.create(size=1)
    snapshot = site.harness.snapshot(share)
    site.driver.create_snapshot(CTX, snapshot)
    site.driver.extend_share(share, 3)
    disable_quotas(site)
    act(site, share)
    assert limit_of(site, share) == str(3 * GIB)
    assert limit_of(site, other) == str(GIB)
    assert limit_of(site, snapshot, 'snapshots') == str(2 * GIB)
    assert provisioned(site)['large'] == 4


@pytest.mark.parametrize('limit', ['none', '7G', '64M'])
def test_limit_that_was_changed_is_restored_by_the_report(site, limit):
    share = site.create(size=2)
    btrfs('qgroup', 'limit', limit, group_of(site, share), top_of(site))
    report(site, share)
    assert limit_of(site, share) == str(2 * GIB)


def test_limit_after_a_revert_and_a_shrink_is_the_one_restored(site):
    reverted, shrunk = site.create(size=2), site.create(size=5)
    snapshot = site.harness.snapshot(reverted)
    site.driver.create_snapshot(CTX, snapshot)
    site.driver.extend_share(reverted, 4)
    site.driver.revert_to_snapshot(CTX, snapshot, [], [])
    site.driver.shrink_share(shrunk, 3)
    disable_quotas(site)
    start(site, None)
    assert limit_of(site, reverted) == str(2 * GIB)
    assert limit_of(site, shrunk) == str(3 * GIB)


def test_share_above_its_restored_limit_is_named(site, caplog):
    share = site.create(size=1)
    disable_quotas(site)
    path = top_of(site) / 'shares' / share.name / 'large'
    with path.open('wb') as file:
        os.posix_fallocate(file.fileno(), 0, GIB + GIB // 2)
    start(site, share)
    assert limit_of(site, share) == str(GIB)
    assert f'{share.name} in pool large holds' in caplog.text
    assert f'more than its limit of {GIB}' in caplog.text


def test_errors_say_that_quotas_are_off(site):
    share = site.create()
    disable_quotas(site)
    for call in (
        lambda: site.driver.extend_share(share, 3),
        lambda: site.driver.create_share(CTX, site.share()),
        lambda: site.driver.get_share_stats(refresh=True),
    ):
        with pytest.raises(
            exception.StorageUnavailable,
            match=f'{top_of(site)}: the quotas of the file system are off',
        ):
            call()


def test_limits_of_an_earlier_version_are_recorded_at_the_start(site):
    share = site.create(size=2)
    shutil.rmtree(top_of(site) / 'limits')
    start(site, share)
    disable_quotas(site)
    report(site, share)
    assert limit_of(site, share) == str(2 * GIB)


def test_size_that_an_earlier_version_has_changed_is_recorded_at_the_start(site):
    """It does not know the records: after a rollback they are old."""
    share = site.create(size=2)
    btrfs('qgroup', 'limit', '3G', group_of(site, share), top_of(site))
    start(site, share)
    report(site, share)
    assert limit_of(site, share) == str(3 * GIB)
    disable_quotas(site)
    start(site, share)
    assert limit_of(site, share) == str(3 * GIB)


def test_limit_that_was_never_recorded_is_that_of_the_ensured_share(site):
    share = site.create(size=2)
    shutil.rmtree(top_of(site) / 'limits')
    disable_quotas(site)
    ensure(site, share)
    assert limit_of(site, share) == str(2 * GIB)


def test_removed_share_and_snapshot_leave_no_limit_behind(site):
    share = site.create()
    snapshot = site.harness.snapshot(share)
    site.driver.create_snapshot(CTX, snapshot)
    site.driver.delete_snapshot(CTX, snapshot)
    site.driver.delete_share(CTX, share)
    assert not [
        name
        for kind in ('shares', 'snapshots')
        for name in os.listdir(top_of(site) / 'limits' / kind)
    ]


def test_report_reads_no_record_of_a_share_if_nothing_differs(site):
    share = site.create()
    top = top_of(site)
    for parent in (top, top / 'records', top / 'limits'):
        for path in (parent, *parent.iterdir()):
            if path.is_dir():
                os.utime(path, (0, 0))
    pool, locks = site.driver.backend.pools['large'], site.driver.backend.locks
    restore_limits(pool, locks)
    opened: list[str] | None = []

    def note(event, args):
        if event == 'open' and opened is not None:
            opened.append(str(args[0]))

    sys.addaudithook(note)
    restore_limits(pool, locks)
    found, opened = opened, None  # a hook cannot be removed
    assert str(top) in found
    assert not [path for path in found if share.name in path]


def test_limit_of_a_share_that_is_being_changed_is_restored_later(site):
    share = site.create(size=2)
    disable_quotas(site)
    with site.driver.backend.changing(share.name):
        report(site, share)
        assert limit_of(site, share) == 'none'
    report(site, share)
    assert limit_of(site, share) == str(2 * GIB)


def set_read_only(site, item, kind, value):
    path = top_of(site) / kind / item.name
    btrfs('property', 'set', '-ts', path, 'ro', value)


def flag_of(site, item, kind):
    path = top_of(site) / kind / item.name
    return btrfs('property', 'get', '-ts', path, 'ro').strip()


@pytest.mark.parametrize('act', [start, report, ensure])
def test_snapshots_are_read_only_and_shares_are_not(site, act, caplog):
    share = site.create()
    snapshot = site.harness.snapshot(share)
    site.driver.create_snapshot(CTX, snapshot)
    set_read_only(site, share, 'shares', 'true')
    set_read_only(site, snapshot, 'snapshots', 'false')
    act(site, share)
    assert flag_of(site, share, 'shares') == 'ro=false'
    assert flag_of(site, snapshot, 'snapshots') == 'ro=true'
    site.client().write(path_of(share), 'notes', b'hello')
    names = {share.name, snapshot.name}
    assert all('that is undone: ' in caplog.text for name in names)
    assert all(name in caplog.text for name in names)


def test_replica_that_follows_another_remains_read_only(site):
    share = site.create()
    pool = site.driver.backend.pools['large']
    pool.catalog.replicas.put(share.name, {'role': 'passive'})
    set_read_only(site, share, 'shares', 'true')
    report(site, share)
    assert flag_of(site, share, 'shares') == 'ro=true'


def test_flag_of_a_share_that_is_being_changed_is_restored_later(site):
    share = site.create()
    set_read_only(site, share, 'shares', 'true')
    with site.driver.backend.changing(share.name):
        report(site, share)
        assert flag_of(site, share, 'shares') == 'ro=true'
    report(site, share)
    assert flag_of(site, share, 'shares') == 'ro=false'


@pytest.mark.parametrize(
    'act, folder',
    [(start, 'shares'), (report, '.'), (report, 'snapshots'), (ensure, '.')],
)
def test_no_other_user_may_enter_a_pool(site, act, folder):
    share = site.create()
    (top_of(site) / folder).chmod(0o755)
    act(site, share)
    assert (top_of(site) / folder).stat().st_mode & 0o777 == 0o700


def exports_of(site):
    return site.driver.backend._exporters.nfs


def remove_export(site, share):
    """End an export as an administrator can do on the bus of the server."""
    exports = exports_of(site)
    exports._server.remove(exports.number('shares', share.name))


def unmount(site, share):
    mounts = pathlib.Path(site.options['btrfs_root'], 'exports', 'mounts')
    target = mounts / f'shares.{share.name}'
    subprocess.run(['umount', '--lazy', target], check=True)
    return target


@pytest.mark.parametrize('act', [start, report, ensure])
def test_export_that_was_ended_is_exported_again(site, act, caplog):
    share, other = site.create(), site.create()
    remove_export(site, share)
    with refused('NOENT'):
        site.client().look_up(path_of(share))
    act(site, share)
    for each in (share, other):
        site.client().write(path_of(each), 'notes', b'hello')
    assert f'shares.{other.name}' not in caplog.text


def test_report_names_the_exports_that_it_restores(site, caplog):
    share = site.create()
    remove_export(site, share)
    report(site, share)
    assert f'and are restored: shares.{share.name}' in caplog.text
    caplog.clear()
    report(site, share)
    assert 'restored' not in caplog.text


@pytest.mark.parametrize('act', [report, ensure])
def test_volume_that_is_not_mounted_is_mounted_again(site, act):
    share = site.create()
    target = unmount(site, share)
    act(site, share)
    assert target.is_mount()
    site.client().write(path_of(share), 'notes', b'hello')
    top = top_of(site)
    assert (top / 'shares' / share.name / 'notes').read_bytes() == b'hello'


@pytest.mark.parametrize('act', [report, ensure])
def test_export_that_is_not_recorded_ends(site, act, tmp_path):
    share = site.create()
    exports = exports_of(site)
    number = exports.number('shares', share.name)
    text = exports.listed('shares', share.name)
    file = tmp_path / 'stray.conf'
    file.write_text(
        text.replace(f'Export_Id = {number}', 'Export_Id = 4711').replace(
            f'"/shares/{share.name}"', '"/shares/stray"'
        )
    )
    exports._server.apply(file, 4711)
    site.client().look_up('/shares/stray')
    act(site, share)
    with refused('NOENT'):
        site.client().look_up('/shares/stray')
    site.client().write(path_of(share), 'notes', b'hello')


def test_export_whose_clients_are_unknown_ends_until_rules_are_applied(site, caplog):
    """As if its removal had been interrupted: no client is let in by guess."""
    share = site.create()
    folder = pathlib.Path(site.options['btrfs_root'], 'exports')
    (folder / f'shares.{share.name}.conf').unlink()
    report(site, share)
    with refused('NOENT'):
        site.client().look_up(path_of(share))
    assert f'shares.{share.name} is no longer exported' in caplog.text
    replies = site.driver.ensure_shares(CTX, [share])
    assert replies[share.id]['reapply_access_rules']
    site.allow(share)
    site.client().write(path_of(share), 'notes', b'hello')


def test_export_that_is_being_changed_is_left_alone(site):
    share = site.create()
    exports = exports_of(site)
    with exports._locks.locked(f'shares.{share.name}'):
        remove_export(site, share)
        report(site, share)
        with refused('NOENT'):
            site.client().look_up(path_of(share))
    report(site, share)
    site.client().look_up(path_of(share))


def test_report_names_shares_with_other_subvolumes_once(site, caplog):
    share, other = site.create(), site.create()
    site.driver.check_health()
    btrfs('subvolume', 'create', top_of(site) / 'shares' / share.name / 'nested')
    site.driver.check_health()
    site.driver.check_health()
    (message,) = (text for text in caplog.messages if 'other subvolumes' in text)
    assert share.name in message
    assert other.name not in message
