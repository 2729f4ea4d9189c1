"""Contract of drivers that create share servers; others are skipped.

The network settings are made up: drivers of real networks need their own.
"""

import pytest

from manila_lite import exception
from manila_lite.share.drivers import base
from tests.drivers.contract import call_or_skip, delete
from tests.drivers.driver_harness import CTX

ADDRESSES = ('10.20.0.5', '10.20.0.6')


class _Servers:
    @pytest.fixture
    def driver(self, harness):
        """Start the driver with driver_handles_share_servers enabled."""
        try:
            return harness.start_with_servers()
        except exception.BadConfiguration as error:
            pytest.skip(str(error))

    @pytest.fixture(autouse=True)
    def torn_down(self, harness, driver):
        """Delete what tests have created, shares first."""
        self.made = []
        yield
        for share in harness.shares:
            delete(driver, share)
        for server in self.made:
            driver.teardown_server(details_of(server))

    def info(self, harness, driver, server_id=None):
        """Return network settings with as many addresses as a server needs."""
        count = driver.get_network_allocations_number()
        admin = driver.get_admin_network_allocations_number()
        info = harness.network_info(
            *ADDRESSES[:count], server_id=server_id, admin=ADDRESSES[::-1][:admin]
        )
        self.made.append(harness.server(info))
        return info

    def server(self, harness, driver):
        """Create a server and return it."""
        info = self.info(harness, driver)
        return harness.server(info, self.set_up(driver, info))

    def set_up(self, driver, info):
        return driver.setup_server(info, metadata={'request_host': 'host@backend#pool'})


def details_of(server):
    return {'server_id': server.id, **server.backend_details}


def paths(answer):
    return [export['path'] for export in base.normalise_export_locations(answer)]


class ServersContract(_Servers):
    def test_stats_report_the_mode_and_its_limits(self, driver):
        stats = driver.get_share_stats(refresh=True)
        assert stats['driver_handles_share_servers'] is True
        assert stats['max_shares_per_share_server'] == -1
        assert stats['max_share_server_size'] == -1
        assert isinstance(stats['share_server_multiple_subnet_support'], bool)

    def test_numbers_of_addresses_are_reported(self, driver):
        assert driver.get_network_allocations_number() >= 1
        assert driver.get_admin_network_allocations_number() >= 0

    def test_server_details_are_short_strings(self, harness, driver):
        server = self.server(harness, driver)
        for key, value in server.backend_details.items():
            assert isinstance(key, str)
            assert isinstance(value, str)
            assert len(key) <= 255
            assert len(value) <= 1023

    def test_setting_up_again_changes_nothing(self, harness, driver):
        info = self.info(harness, driver)
        first = self.set_up(driver, info)
        assert self.set_up(driver, info) == first
        assert self.set_up(harness.start_with_servers(), info) == first

    def test_tearing_down_again_is_success(self, harness, driver):
        server = self.server(harness, driver)
        driver.teardown_server(details_of(server))
        driver.teardown_server(details_of(server))
        harness.start_with_servers().teardown_server(details_of(server))

    def test_tearing_down_a_missing_server_is_success(self, harness, driver):
        info = self.info(harness, driver)
        driver.teardown_server(
            {'server_id': info[0]['server_id']}, security_services=[]
        )

    def test_server_is_torn_down_after_a_lost_reply(self, harness, driver):
        info = self.info(harness, driver)
        self.set_up(driver, info)
        driver.teardown_server({'server_id': info[0]['server_id']})
        server = harness.server(info)
        with pytest.raises(exception.ManilaLiteError):
            driver.create_share(CTX, harness.share(), share_server=server)
        harness.shares.clear()

    def test_server_can_be_set_up_again(self, harness, driver):
        info = self.info(harness, driver)
        first = self.set_up(driver, info)
        driver.teardown_server({'server_id': info[0]['server_id'], **first})
        server = harness.server(info, self.set_up(driver, info))
        assert driver.create_share(CTX, harness.share(), share_server=server)

    def test_share_is_exported_at_its_server(self, harness, driver):
        server = self.server(harness, driver)
        share = harness.share()
        answer = driver.create_share(CTX, share, share_server=server)
        given = {one['ip_address'] for one in server.network_allocations}
        assert any(address in path for address in given for path in paths(answer))
        again = driver.create_share(CTX, share, share_server=server)
        assert paths(again) == paths(answer)

    def test_servers_are_independent(self, harness, driver):
        servers = [self.server(harness, driver) for _ in range(2)]
        shares = [harness.share() for _ in servers]
        for server, share in zip(servers, shares, strict=True):
            driver.create_share(CTX, share, share_server=server)
        driver.delete_share(CTX, shares[0], share_server=servers[0])
        driver.teardown_server(details_of(servers[0]))
        assert driver.create_share(CTX, shares[1], share_server=servers[1])

    def test_one_of_those_offered_is_chosen_or_none(self, harness, driver):
        choose = driver.choose_share_server_compatible_with_share
        servers = [self.server(harness, driver) for _ in range(2)]
        share = harness.share(size=1)
        harness.shares.clear()
        assert choose(CTX, [], share) is None
        for offered in (servers, servers[::-1], servers[:1]):
            chosen = choose(CTX, offered, share)
            assert chosen is None or chosen['id'] in {server.id for server in offered}
            assert choose(CTX, offered, share) == chosen

    def test_pools_of_a_server_are_pools_it_reports(self, harness, driver):
        server = self.server(harness, driver)
        driver.create_share(CTX, harness.share(), share_server=server)
        known = {
            pool['pool_name']
            for pool in driver.get_share_stats(refresh=True)['pools'] or []
        }
        used = {pool['pool_name'] for pool in driver.get_share_server_pools(server)}
        assert used <= known


class ManagingServersContract(_Servers):
    @pytest.fixture
    def old(self, harness, driver):
        """Create and unmanage a server; return its identifier."""
        server = self.server(harness, driver)
        call_or_skip(driver.unmanage_server, details_of(server))
        return server.backend_details.get('identifier', server.id)

    def managed(self, harness, driver, identifier):
        info = self.info(harness, driver)
        server = harness.server(info)
        found, details = call_or_skip(driver.manage_server, CTX, server, identifier, {})
        return harness.server(info, details), found

    def test_its_addresses_are_reported(self, harness, driver, old):
        server = harness.server(self.info(harness, driver))
        count = driver.get_network_allocations_number()
        assert set(
            call_or_skip(driver.get_share_server_network_info, CTX, server, old, {})
        ) == set(ADDRESSES[:count])

    def test_managed_server_can_be_used(self, harness, driver, old):
        server, found = self.managed(harness, driver, old)
        assert found is None or isinstance(found, str)
        assert driver.create_share(CTX, harness.share(), share_server=server)

    def test_managing_again_changes_nothing(self, harness, driver, old):
        server, found = self.managed(harness, driver, old)
        again = harness.start_with_servers().manage_server(CTX, server, old, {})
        assert again == (found, dict(server.backend_details))

    def test_unmanaging_again_is_success(self, harness, driver, old):
        server, found = self.managed(harness, driver, old)
        driver.unmanage_server(details_of(server))
        driver.unmanage_server(details_of(server))
        self.managed(harness, driver, found or old)

    def test_missing_server_is_refused(self, harness, driver):
        server = harness.server(self.info(harness, driver))
        with pytest.raises((exception.ManilaLiteError, NotImplementedError)):
            driver.manage_server(CTX, server, 'nowhere', {})
