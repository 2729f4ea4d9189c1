"""Contract of drivers that make and keep backups."""

import pytest

from manila_lite import exception
from manila_lite.share.drivers import base
from tests.drivers import contract
from tests.drivers.driver_harness import CTX

MAX_POLLS = 600


def poll(method, *args):
    """Poll until the end; return what was reported on the way."""
    reported = []
    for _ in range(MAX_POLLS):
        total = method(CTX, *args)['total_progress']
        assert isinstance(total, str)
        reported.append(int(total))
        if reported[-1] == 100:
            return reported
    raise AssertionError(f'{method.__name__} does not end')


def back_up(driver, share, backup):
    driver.create_backup(CTX, share, backup)
    return poll(driver.create_backup_continue, share, backup)


def restore(driver, backup, share):
    driver.restore_backup(CTX, backup, share)
    return poll(driver.restore_backup_continue, backup, share)


class BackupContract:
    @pytest.fixture
    def driver(self, harness):
        driver = harness.start()
        if not isinstance(driver, base.BackupSupport):
            pytest.skip('the driver makes no backups')
        return driver

    @pytest.fixture
    def share(self, harness, driver):
        share = harness.share(size=1)
        contract.create(driver, share)
        return share

    @pytest.fixture
    def users(self, harness, driver, share):
        return contract.users_or_skip(harness, driver, share)

    def test_progress_grows_to_the_end(self, harness, driver, share):
        backup = harness.backup(share)
        for reported in (
            back_up(driver, share, backup),
            restore(driver, backup, share),
        ):
            assert reported == sorted(reported)
        driver.delete_backup(CTX, backup, share)

    def test_restored_share_has_the_content_of_the_backup(
        self, harness, driver, share, users
    ):
        backup = harness.backup(share)
        users.write('then')
        back_up(driver, share, backup)
        users.write('now')
        restore(driver, backup, share)
        assert users.read() == 'then'
        driver.delete_backup(CTX, backup, share)
        assert users.read() == 'then'

    def test_every_call_may_be_repeated_by_another_process(
        self, harness, driver, share, users
    ):
        backup = harness.backup(share)
        users.write('then')
        driver.create_backup(CTX, share, backup)
        again = harness.start()
        back_up(again, share, backup)
        driver.create_backup_continue(CTX, share, backup)
        users.write('now')
        # One that was started is kept.
        driver.create_backup(CTX, share, backup)
        driver.restore_backup(CTX, backup, share)
        restore(again, backup, share)
        assert users.read() == 'then'
        users.write('later')
        poll(driver.restore_backup_continue, backup, share)
        assert users.read() == 'later'
        driver.delete_backup(CTX, backup, share)
        driver.delete_backup(CTX, backup, share)
        again.delete_backup(CTX, backup, share)

    def test_deleting_a_missing_one_is_success(self, harness, driver, share):
        driver.delete_backup(CTX, harness.backup(share), share)

    def test_backup_that_is_being_made_can_be_deleted(self, harness, driver, share):
        backup = harness.backup(share)
        driver.create_backup(CTX, share, backup)
        driver.delete_backup(CTX, backup, share)
        with pytest.raises(exception.DriverError):
            driver.restore_backup(CTX, backup, share)

    def test_backups_of_a_share_are_apart(self, harness, driver, share, users):
        first, second = harness.backup(share), harness.backup(share)
        users.write('first')
        back_up(driver, share, first)
        users.write('second')
        back_up(driver, share, second)
        driver.delete_backup(CTX, second, share)
        restore(driver, first, share)
        assert users.read() == 'first'
        driver.delete_backup(CTX, first, share)

    def test_backup_is_restored_to_another_share(self, harness, driver, share, users):
        if not driver.restore_to_target_support:
            pytest.skip('the driver restores backups to their share only')
        backup, other = harness.backup(share), harness.share(size=2)
        contract.create(driver, other)
        users.write('then')
        back_up(driver, share, backup)
        users.write('now')
        restore(driver, backup, other)
        there = contract.users_or_skip(harness, driver, other)
        assert there.read() == 'then'
        assert users.read() == 'now'
        driver.delete_backup(CTX, backup, share)
