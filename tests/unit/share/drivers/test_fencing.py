"""A call that comes after one with a later token changes nothing."""

from concurrent import futures
import contextlib
import os
import time

import pytest

from manila_lite import context, exception
from manila_lite.share.drivers import fencing
from tests.drivers.driver_harness import CTX
from tests.support.processes import wait_until
from tests.unit.share.drivers.local.local_driver import (
    access_rule,
    directory,
    make,
    start,
)


@pytest.fixture
def root(tmp_path):
    return tmp_path / 'root'


@pytest.fixture
def driver(root):
    return start(root)


@pytest.fixture
def share(driver):
    """A share whose last call had the token 7."""
    share = make.share(size=2)
    with holding(7):
        driver.create_share(CTX, share)
    return share


def holding(value, resource='share_instance:1'):
    return context.fenced(context.FencingToken(resource, value))


def refuses(call, *args):
    with holding(6), pytest.raises(exception.StaleFencingToken) as error:
        call(*args)
    return error.value.params['seen'] == 7


def tree(root):
    return sorted((str(path), path.stat().st_mtime_ns) for path in root.rglob('*'))


def test_call_with_an_older_token_changes_nothing(driver, root, share):
    before = tree(root)
    rules = [access_rule('10.0.0.1', 'ip')]
    assert refuses(driver.extend_share, share, 9)
    assert refuses(driver.delete_share, CTX, share)
    assert refuses(driver.create_share, CTX, make.share())
    assert refuses(driver.update_access, CTX, share, rules, rules, [], [])
    assert refuses(driver.create_snapshot, CTX, make.snapshot(share))
    assert refuses(driver.unmanage, share)
    assert tree(root) == before


def test_equal_and_later_tokens_are_admitted(driver, share):
    for value in (7, 8, 2**53):
        with holding(value):
            driver.extend_share(share, value % 100 + 1)
    with holding(2**53 - 1), pytest.raises(exception.StaleFencingToken):
        driver.extend_share(share, 200)


def test_tokens_are_kept_by_resource(driver, share):
    with holding(1, 'share_instance:2'):
        driver.create_share(CTX, make.share())


def test_calls_without_a_token_are_admitted(driver, share):
    driver.extend_share(share, 9)
    assert driver.get_share_status(share)['size'] == 9


def test_another_process_has_the_same_tokens(root, share):
    assert refuses(start(root).delete_share, CTX, share)


def test_deleted_share_is_not_created_again(driver, share):
    with holding(7):
        driver.delete_share(CTX, share)
    assert refuses(driver.create_share, CTX, share)
    with pytest.raises(exception.ShareResourceNotFound):
        driver.get_share_status(share)


def read_token(root):
    with contextlib.suppress(FileNotFoundError):
        return (root / 'fencing' / 'share_instance.1').read_bytes()
    return b''


@pytest.mark.parametrize(
    'change',
    [
        lambda driver, share: driver.delete_share(CTX, share),
        lambda driver, share: driver.extend_share(share, 9),
        lambda driver, share: driver.shrink_share(share, 1),
        lambda driver, share: driver.unmanage(share),
    ],
    ids=['delete', 'extend', 'shrink', 'unmanage'],
)
def test_call_that_waited_for_a_lock_is_refused(driver, root, share, change):
    """It was admitted before the later call came."""
    before = driver.get_share_status(share)

    def call():
        with holding(8):
            change(driver, share)

    other = start(root)
    with futures.ThreadPoolExecutor(1) as pool:
        with other.backend.store.locked_work_directory(share['name']):
            late = pool.submit(call)
            wait_until(lambda: b'8' in read_token(root), 'the call is admitted')
            with holding(9):
                other.get_share_status(share)
        with pytest.raises(exception.StaleFencingToken):
            late.result()
    assert driver.get_share_status(share) == before


def test_concurrent_calls_leave_the_largest_token(driver, root, share):
    drivers = [driver, start(root)]

    def call(value):
        with contextlib.suppress(exception.StaleFencingToken), holding(value):
            drivers[value % 2].get_share_status(share)

    with futures.ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(call, value) for value in range(10, 60)]:
            done.result()
    with holding(58), pytest.raises(exception.StaleFencingToken) as error:
        driver.get_share_status(share)
    assert error.value.params['seen'] == 59


def test_old_tokens_are_forgotten_at_start(driver, root, share):
    with holding(3, 'share_instance:2'):
        driver.create_share(CTX, make.share())
    aged = time.time() - fencing.KEEP_SECONDS - 1
    os.utime(root / 'fencing' / 'share_instance.1', (aged, aged))
    start(root)
    with holding(1):
        driver.extend_share(share, 9)
    with holding(1, 'share_instance:2'), pytest.raises(exception.StaleFencingToken):
        driver.create_share(CTX, make.share())


def test_old_tokens_are_forgotten_every_day(tmp_path):
    tokens = fencing.FencingTokens(tmp_path)
    now = time.time()

    def create_old_token():
        with holding(7):
            tokens.admit_call()
        (file,) = tmp_path.iterdir()
        os.utime(file, (now, now - fencing.KEEP_SECONDS - 1))

    for day in range(3):
        create_old_token()
        tokens.forget_old(now + day * 86400)
        assert not list(tmp_path.iterdir())
        create_old_token()
        tokens.forget_old(now + day * 86400 + 3600)
        assert list(tmp_path.iterdir())


def test_tokens_are_hidden_from_users(driver, root, share):
    assert directory(driver, share).is_dir()
    assert (root / 'fencing').stat().st_mode & 0o077 == 0
    assert (root / 'fencing').is_dir()
