"""Limits that somebody else has changed, as `btrfs` shows them."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from manila_lite import exception
from manila_lite.share.drivers.btrfs.restoring import restore_limits
from manila_lite.share.drivers.space import GIB
from tests.drivers.driver_harness import CTX
from tests.support import storage
from tests.unit.share.drivers.btrfs.driver_site import Site


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
    for line in btrfs(
        'qgroup', 'show', '-r', '--raw', top_of(site)
    ).splitlines():
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
    return {
        pool['pool_name']: pool['provisioned_capacity_gb'] for pool in pools
    }


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


def test_size_that_an_earlier_version_has_changed_is_recorded_at_the_start(
    site,
):
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
