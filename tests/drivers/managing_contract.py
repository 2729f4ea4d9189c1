"""What any driver must do that takes over shares and lets them go."""

import pytest

from manila_lite import exception
from manila_lite.share.drivers import base
from tests.drivers.contract import created
from tests.drivers.contract import is_gone
from tests.drivers.contract import optional
from tests.drivers.contract import status_of
from tests.drivers.contract import users_of
from tests.drivers.driver_harness import CTX


class ManagingContract:
    @pytest.fixture
    def old(self, subject, driver):
        """A share that is there and was let go."""
        share = subject.share(size=2)
        self.locations = created(driver, share)
        self.users = subject.users(driver, share)
        if self.users:
            self.users.write('kept')
        driver.unmanage(share)
        return share

    def managed(self, subject, driver, path=None):
        """Manage a share; skips where drivers cannot."""
        share = subject.at(path or self.locations[0]['path'])
        return share, optional(driver.manage_existing, share, {})

    def test_share_is_managed_as_it_is(self, subject, driver, old):
        share, answer = self.managed(subject, driver)
        assert answer['size'] == 2
        assert (
            base.normalise_export_locations(
                answer.get('export_locations', self.locations)
            )
            == self.locations
        )
        assert status_of(driver, share)['status'] == 'available'
        assert status_of(driver, share).get('size', 2) == 2
        if self.users:
            assert users_of(subject, driver, share).read() == 'kept'

    def test_managing_again_changes_nothing(self, subject, driver, old):
        share, answer = self.managed(subject, driver)
        assert driver.manage_existing(share, {}) == answer
        assert subject.start().manage_existing(share, {}) == answer

    def test_unmanaging_again_is_success(self, subject, driver, old):
        driver.unmanage(old)
        subject.start().unmanage(old)
        self.managed(subject, driver)

    def test_unmanaging_what_never_was_is_success(self, subject, driver):
        driver.unmanage(subject.share())

    def test_share_goes_and_comes_again_and_again(self, subject, driver, old):
        for _ in range(3):
            share, answer = self.managed(subject, driver)
            assert answer['size'] == 2
            driver.unmanage(share)
            driver = subject.start()
        share, _ = self.managed(subject, driver)
        if self.users:
            assert users_of(subject, driver, share).read() == 'kept'

    def test_nothing_is_managed_where_nothing_is(self, subject, driver, old):
        self.managed(subject, driver)
        for path in ('', 'nonsense', '/', self.locations[0]['path'] + '-no'):
            share = subject.at(path)
            with pytest.raises(exception.ManageInvalidShare):
                driver.manage_existing(share, {})
            assert is_gone(driver, share)

    def test_managed_share_is_not_taken_from_its_owner(
        self, subject, driver, old
    ):
        owner, _ = self.managed(subject, driver)
        other = subject.at(self.locations[0]['path'])
        with pytest.raises(exception.ManageInvalidShare):
            driver.manage_existing(other, {})
        assert status_of(driver, owner)['status'] == 'available'
        driver.delete_share(CTX, owner)

    def test_managed_share_lives_and_ends_like_any(self, subject, driver, old):
        share, _ = self.managed(subject, driver)
        optional(driver.extend_share, share, 3)
        assert status_of(driver, share).get('size', 3) == 3
        driver.delete_share(CTX, share)
        assert is_gone(driver, share)
        with pytest.raises(exception.ManageInvalidShare):
            driver.manage_existing(subject.at(self.locations[0]['path']), {})

    def test_deleting_by_the_old_name_harms_nobody(self, subject, driver, old):
        share, _ = self.managed(subject, driver)
        if not is_gone(driver, old):
            pytest.skip('the driver knows shares by more than their name')
        driver.delete_share(CTX, old)
        assert status_of(driver, share)['status'] == 'available'
        if self.users:
            assert users_of(subject, driver, share).read() == 'kept'


class ManagingSnapshotsContract:
    @pytest.fixture
    def driver(self, subject):
        driver = subject.start()
        if not isinstance(driver, base.SnapshotSupport):
            pytest.skip('the driver does not offer SnapshotSupport')
        return driver

    @pytest.fixture
    def old(self, subject, driver):
        """A snapshot that is there and was let go."""
        share = subject.share(size=2)
        created(driver, share)
        users = subject.users(driver, share)
        if users:
            users.write('then')
        snapshot = subject.snapshot(share)
        answer = driver.create_snapshot(CTX, snapshot) or {}
        self.location = answer.get('provider_location')
        if users:
            users.write('now')
        driver.unmanage_snapshot(snapshot)
        return snapshot

    def managed(self, subject, driver, share, location=None):
        snapshot = subject.snapshot(
            share, provider_location=location or self.location
        )
        return snapshot, optional(
            driver.manage_existing_snapshot, snapshot, {}
        )

    def test_snapshot_is_managed_as_it_is(self, subject, driver, old):
        snapshot, answer = self.managed(subject, driver, old.share)
        assert answer['size'] == 2
        if not isinstance(driver, base.RevertSupport):
            pytest.skip('the driver does not offer RevertSupport')
        driver.revert_to_snapshot(CTX, snapshot, [], [])
        assert users_of(subject, driver, old.share).read() == 'then'

    def test_managing_again_changes_nothing(self, subject, driver, old):
        snapshot, answer = self.managed(subject, driver, old.share)
        for process in (driver, subject.start()):
            assert process.manage_existing_snapshot(snapshot, {}) == answer

    def test_unmanaging_again_is_success(self, subject, driver, old):
        driver.unmanage_snapshot(old)
        subject.start().unmanage_snapshot(old)
        self.managed(subject, driver, old.share)
        driver.unmanage_snapshot(subject.snapshot(old.share))

    def test_no_snapshot_of_the_share_is_refused(self, subject, driver, old):
        self.managed(subject, driver, old.share)
        for location in ('', 'nonsense', '/', '../../etc'):
            snapshot = subject.snapshot(old.share, provider_location=location)
            with pytest.raises(exception.ManageInvalidShareSnapshot):
                driver.manage_existing_snapshot(snapshot, {})

    def test_snapshot_of_another_share_is_refused(self, subject, driver, old):
        other = subject.share()
        created(driver, other)
        with pytest.raises(exception.ManageInvalidShareSnapshot):
            self.managed(subject, driver, other)
        self.managed(subject, driver, old.share)

    def test_managed_snapshot_ends_like_any(self, subject, driver, old):
        snapshot, _ = self.managed(subject, driver, old.share)
        driver.delete_snapshot(CTX, snapshot)
        with pytest.raises(exception.ManageInvalidShareSnapshot):
            self.managed(subject, driver, old.share)
