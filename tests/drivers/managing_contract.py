"""Contract of drivers that manage and unmanage shares."""

import pytest

from manila_lite import exception
from manila_lite.share.drivers import base
from tests.drivers.contract import (
    call_or_skip,
    create,
    delete,
    is_gone,
    status_or_skip,
    users_or_skip,
)
from tests.drivers.driver_harness import CTX


class ManagingContract:
    @pytest.fixture
    def old(self, harness, driver):
        """Create and unmanage a share."""
        share = harness.share(size=2)
        self.locations = create(driver, share)
        self.users = harness.users(driver, share)
        if self.users:
            self.users.write('kept')
        driver.unmanage(share)
        return share

    def managed(self, harness, driver, path=None):
        """Manage a share; skip if the driver does not support it."""
        share = harness.at(path or self.locations[0]['path'])
        return share, call_or_skip(driver.manage_existing, share, {})

    def test_share_is_managed_as_it_is(self, harness, driver, old):
        share, reply = self.managed(harness, driver)
        assert reply['size'] == 2
        assert (
            base.normalise_export_locations(
                reply.get('export_locations', self.locations)
            )
            == self.locations
        )
        assert status_or_skip(driver, share)['status'] == 'available'
        assert status_or_skip(driver, share).get('size', 2) == 2
        if self.users:
            assert users_or_skip(harness, driver, share).read() == 'kept'

    def test_managing_again_changes_nothing(self, harness, driver, old):
        share, reply = self.managed(harness, driver)
        assert driver.manage_existing(share, {}) == reply
        assert harness.start().manage_existing(share, {}) == reply

    def test_unmanaging_again_is_success(self, harness, driver, old):
        driver.unmanage(old)
        harness.start().unmanage(old)
        self.managed(harness, driver)

    def test_share_can_be_unmanaged_and_managed_repeatedly(self, harness, driver, old):
        for _ in range(3):
            share, reply = self.managed(harness, driver)
            assert reply['size'] == 2
            driver.unmanage(share)
            driver = harness.start()
        share, _ = self.managed(harness, driver)
        if self.users:
            assert users_or_skip(harness, driver, share).read() == 'kept'

    def test_managing_a_path_without_a_share_is_refused(self, harness, driver, old):
        self.managed(harness, driver)
        for path in ('', 'nonsense', '/', self.locations[0]['path'] + '-no'):
            share = harness.at(path)
            with pytest.raises(exception.ManageInvalidShare):
                driver.manage_existing(share, {})
            assert is_gone(driver, share)

    def test_managed_share_is_not_taken_from_its_owner(self, harness, driver, old):
        owner, _ = self.managed(harness, driver)
        other = harness.at(self.locations[0]['path'])
        with pytest.raises(exception.ManageInvalidShare):
            driver.manage_existing(other, {})
        assert status_or_skip(driver, owner)['status'] == 'available'
        driver.delete_share(CTX, owner)

    def test_managed_share_can_be_extended_and_deleted(self, harness, driver, old):
        share, _ = self.managed(harness, driver)
        call_or_skip(driver.extend_share, share, 3)
        assert status_or_skip(driver, share).get('size', 3) == 3
        driver.delete_share(CTX, share)
        assert is_gone(driver, share)
        with pytest.raises(exception.ManageInvalidShare):
            driver.manage_existing(harness.at(self.locations[0]['path']), {})

    def test_deleting_by_the_old_name_keeps_the_share(self, harness, driver, old):
        share, _ = self.managed(harness, driver)
        if not is_gone(driver, old):
            pytest.skip('the driver identifies shares by more than a name')
        delete(driver, old)
        assert status_or_skip(driver, share)['status'] == 'available'
        if self.users:
            assert users_or_skip(harness, driver, share).read() == 'kept'


class ManagingSnapshotsContract:
    @pytest.fixture
    def driver(self, harness):
        driver = harness.start()
        if not isinstance(driver, base.SnapshotSupport):
            pytest.skip('the driver does not offer SnapshotSupport')
        return driver

    @pytest.fixture
    def old(self, harness, driver):
        """Create and unmanage a snapshot."""
        share = harness.share(size=2)
        create(driver, share)
        users = harness.users(driver, share)
        if users:
            users.write('then')
        snapshot = harness.snapshot(share)
        reply = driver.create_snapshot(CTX, snapshot) or {}
        self.location = reply.get('provider_location')
        if users:
            users.write('now')
        driver.unmanage_snapshot(snapshot)
        return snapshot

    def managed(self, harness, driver, share, location=None):
        snapshot = harness.snapshot(share, provider_location=location or self.location)
        return snapshot, call_or_skip(driver.manage_existing_snapshot, snapshot, {})

    def test_snapshot_is_managed_as_it_is(self, harness, driver, old):
        snapshot, reply = self.managed(harness, driver, old.share)
        assert reply['size'] == 2
        if not isinstance(driver, base.RevertSupport):
            pytest.skip('the driver does not offer RevertSupport')
        driver.revert_to_snapshot(CTX, snapshot, [], [])
        assert users_or_skip(harness, driver, old.share).read() == 'then'

    def test_managing_again_changes_nothing(self, harness, driver, old):
        snapshot, reply = self.managed(harness, driver, old.share)
        for process in (driver, harness.start()):
            assert process.manage_existing_snapshot(snapshot, {}) == reply

    def test_unmanaging_again_is_success(self, harness, driver, old):
        driver.unmanage_snapshot(old)
        harness.start().unmanage_snapshot(old)
        self.managed(harness, driver, old.share)
        driver.unmanage_snapshot(harness.snapshot(old.share))

    def test_location_without_a_snapshot_is_refused(self, harness, driver, old):
        self.managed(harness, driver, old.share)
        for location in ('', 'nonsense', '/', '../../etc'):
            snapshot = harness.snapshot(old.share, provider_location=location)
            with pytest.raises(exception.ManageInvalidShareSnapshot):
                driver.manage_existing_snapshot(snapshot, {})

    def test_snapshot_of_another_share_is_refused(self, harness, driver, old):
        other = harness.share()
        create(driver, other)
        with pytest.raises(exception.ManageInvalidShareSnapshot):
            self.managed(harness, driver, other)
        self.managed(harness, driver, old.share)

    def test_managed_snapshot_can_be_deleted(self, harness, driver, old):
        snapshot, _ = self.managed(harness, driver, old.share)
        driver.delete_snapshot(CTX, snapshot)
        with pytest.raises(exception.ManageInvalidShareSnapshot):
            self.managed(harness, driver, old.share)
