"""Snapshots of the dummy driver."""

import pytest

from manila_lite import exception
from manila_lite.share.drivers.dummy import driver as dummy
from tests.drivers.driver_harness import CTX, DriverHarness

make = DriverHarness('dummy', configure=lambda: None)


class TestSnapshots:
    @pytest.fixture
    def driver(self, start):
        return start()

    @pytest.fixture
    def snapshot(self, driver):
        share = make.share(size=2)
        driver.create_share(CTX, share)
        snapshot = make.snapshot(share)
        driver.create_snapshot(CTX, snapshot)
        return snapshot

    def test_inventory_matches_the_state(self, driver, snapshot, tmp_path):
        assert driver.snapshot_inventory() == {snapshot.id: 2}
        driver.delete_snapshot(CTX, snapshot)
        assert dummy.snapshot_inventory(tmp_path / 'state') == {}

    @pytest.mark.parametrize(
        'repair, left', [('create_snapshot', 'available'), ('delete_snapshot', None)]
    )
    def test_half_made_snapshot_is_an_error_until_repaired(
        self, driver, snapshot, repair, left
    ):
        other = make.snapshot(snapshot.share)
        driver.half_fail_next('create_snapshot')
        with pytest.raises(exception.ShareBackendException):
            driver.create_snapshot(CTX, other)
        assert driver.get_snapshot_status(other)['status'] == 'error'
        getattr(driver, repair)(CTX, other)
        assert (other.id in driver.snapshot_inventory()) == bool(left)

    def test_revert_ends_with_the_given_size(self, driver, snapshot):
        driver.revert_to_size_next(7)
        assert driver.revert_to_snapshot(CTX, snapshot, [], []) == 7
        assert driver.inventory() == {snapshot.share.id: 7}
        assert driver.revert_to_snapshot(CTX, snapshot, [], []) == 2

    def test_clients_of_snapshots_are_separate(self, driver, snapshot, tmp_path):
        rule = make.rule(snapshot.share, '10.0.0.1', access_level='ro')
        driver.snapshot_update_access(CTX, snapshot, [rule], [rule], [])
        assert driver.snapshot_access_inventory() == {
            snapshot.id: {('ip', '10.0.0.1', 'ro')}
        }
        assert driver.access_inventory() == {}
        driver.delete_snapshot(CTX, snapshot)
        assert dummy.snapshot_access_inventory(tmp_path / 'state') == {}

    def test_share_from_snapshot_takes_configured_steps(self, start, snapshot):
        driver = start(dummy_driver_from_snapshot_steps=3)
        clone = make.share(size=2)
        for _ in range(2):
            reply = driver.create_share_from_snapshot(CTX, clone, snapshot)
            assert reply['status'] == 'creating_from_snapshot'
        replies = [driver.get_share_status(clone) for _ in range(4)]
        assert [(reply['status'], reply.get('progress')) for reply in replies] == [
            ('creating_from_snapshot', '33%'),
            ('creating_from_snapshot', '66%'),
            ('available', None),
            ('available', None),
        ]

    def test_share_failing_during_creation_is_an_error(self, start, snapshot):
        driver = start(dummy_driver_from_snapshot_steps=3)
        clone = make.share(size=2)
        driver.create_share_from_snapshot(CTX, clone, snapshot)
        driver.set_error(clone.id)
        assert driver.get_share_status(clone)['status'] == 'error'
