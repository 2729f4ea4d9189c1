"""Unmanaged shares and snapshots of the dummy driver."""

import pytest

from manila_lite import exception
from tests.drivers.driver_harness import CTX, DriverHarness

make = DriverHarness('dummy', configure=lambda: None)


class TestManaging:
    @pytest.fixture
    def driver(self, start):
        return start()

    def found_at(self, path, **values):
        return make.share(
            export_locations=[{'path': path, 'is_admin_only': False, 'metadata': {}}],
            **values,
        )

    def test_unmanaged_share_is_managed(self, start, driver):
        path = driver.add_unmanaged_share('old', size=3, content='theirs')
        share = self.found_at(path)
        assert driver.inventory() == {}
        for process in (driver, start()):
            reply = process.manage_existing(share, {})
            assert reply['size'] == 3
            assert reply['export_locations'][0]['path'] == path
        assert driver.inventory() == {share.id: 3}
        assert driver.unmanaged_shares() == {}
        assert driver.read(share.id) == 'theirs'

    def test_unmanaged_share_stays_and_can_be_managed(self, start, driver):
        share = make.share(size=2)
        exports = driver.create_share(CTX, share)
        for _ in range(2):
            driver.unmanage(share)
        assert driver.inventory() == {}
        assert driver.unmanaged_shares() == {exports[0]['path']: 2}
        again = self.found_at(exports[0]['path'])
        reply = start().manage_existing(again, {})
        assert reply == {'size': 2, 'export_locations': exports}
        assert driver.inventory() == {again.id: 2}

    def test_unknown_path_and_other_protocol_are_refused(self, driver):
        path = driver.add_unmanaged_share('old')
        for share in (
            self.found_at('10.0.0.10:/shares/none'),
            self.found_at(path, share_proto='CIFS'),
        ):
            with pytest.raises(exception.ManageInvalidShare):
                driver.manage_existing(share, {})
        assert driver.inventory() == {}

    def test_managed_share_cannot_be_taken_from_its_owner(self, driver):
        share = make.share()
        exports = driver.create_share(CTX, share)
        with pytest.raises(exception.ManageInvalidShare):
            driver.manage_existing(self.found_at(exports[0]['path']), {})

    def test_size_may_be_missing(self, driver):
        path = driver.add_unmanaged_share('old', size=None)
        assert driver.manage_existing(self.found_at(path), {}) == {}

    def test_snapshot_is_unmanaged_and_managed(self, start, driver):
        share = make.share(size=2)
        driver.create_share(CTX, share)
        taken = make.snapshot(share)
        location = driver.create_snapshot(CTX, taken)['provider_location']
        for _ in range(2):
            driver.unmanage_snapshot(taken)
        assert driver.snapshot_inventory() == {}
        again = make.snapshot(share, provider_location=location)
        for process in (driver, start()):
            reply = process.manage_existing_snapshot(again, {})
            assert reply['size'] == 2
        assert driver.snapshot_inventory() == {again.id: 2}

    def test_snapshot_of_another_share_is_refused(self, driver):
        one, other = make.share(), make.share()
        for share in (one, other):
            driver.create_share(CTX, share)
        location = driver.add_unmanaged_snapshot(one.id, 'theirs')
        with pytest.raises(exception.ManageInvalidShareSnapshot):
            driver.manage_existing_snapshot(
                make.snapshot(other, provider_location=location), {}
            )
        snapshot = make.snapshot(one, provider_location=location)
        assert driver.manage_existing_snapshot(snapshot, {})['size'] == 1

    @pytest.mark.parametrize('kind', ['', '_snapshot'])
    def test_share_servers_make_no_difference(self, start, kind):
        driver = start(driver_handles_share_servers=True)
        share = make.share()
        server = make.set_up_server(driver)
        path = driver.create_share(CTX, share, share_server=server)[0]['path']
        old, new = share, self.found_at(path)
        if kind:
            old = make.snapshot(share)
            location = driver.create_snapshot(CTX, old)['provider_location']
            new = make.snapshot(share, provider_location=location)
        getattr(driver, f'unmanage{kind}_with_server')(old, share_server=server)
        manage = getattr(driver, f'manage_existing{kind}_with_server')
        assert manage(new, {}, share_server=server)['size'] == 1
