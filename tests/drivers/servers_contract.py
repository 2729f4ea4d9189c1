"""What any driver must do that makes share servers.

A driver that does not is left out. What a server is to be is made up
here: a driver of real networks needs ones of its own.
"""

import pytest

from manila_lite import exception
from manila_lite.share.drivers import base
from tests.drivers.contract import optional
from tests.drivers.driver_harness import CTX

ADDRESSES = ('10.20.0.5', '10.20.0.6')


class _Servers:
    @pytest.fixture
    def driver(self, subject):
        """The driver in the mode with share servers."""
        try:
            return subject.start_with_servers()
        except exception.BadConfiguration as error:
            pytest.skip(str(error))

    @pytest.fixture(autouse=True)
    def torn_down(self, subject, driver):
        """What tests have made is removed, the shares first."""
        self.made = []
        yield
        for share in subject.shares:
            driver.delete_share(CTX, share)
        for server in self.made:
            driver.teardown_server(details_of(server))

    def info(self, subject, driver, server_id=None):
        """What a server is to be, with as many addresses as it needs."""
        count = driver.get_network_allocations_number()
        admin = driver.get_admin_network_allocations_number()
        info = subject.network_info(
            *ADDRESSES[:count],
            server_id=server_id,
            admin=ADDRESSES[::-1][:admin],
        )
        self.made.append(subject.server(info))
        return info

    def server(self, subject, driver):
        """A server that is there."""
        info = self.info(subject, driver)
        return subject.server(info, self.set_up(driver, info))

    def set_up(self, driver, info):
        return driver.setup_server(
            info, metadata={'request_host': 'host@backend#pool'}
        )


def details_of(server):
    return {'server_id': server.id, **server.backend_details}


def paths(answer):
    return [
        export['path'] for export in base.normalise_export_locations(answer)
    ]


class ServersContract(_Servers):
    def test_stats_say_the_mode_and_its_limits(self, driver):
        stats = driver.get_share_stats(refresh=True)
        assert stats['driver_handles_share_servers'] is True
        assert stats['max_shares_per_share_server'] == -1
        assert stats['max_share_server_size'] == -1
        assert isinstance(stats['share_server_multiple_subnet_support'], bool)

    def test_numbers_of_addresses_are_told(self, driver):
        assert driver.get_network_allocations_number() >= 1
        assert driver.get_admin_network_allocations_number() >= 0

    def test_what_is_to_be_remembered_is_text(self, subject, driver):
        server = self.server(subject, driver)
        for key, value in server.backend_details.items():
            assert isinstance(key, str)
            assert isinstance(value, str)
            assert len(key) <= 255
            assert len(value) <= 1023

    def test_setting_up_again_changes_nothing(self, subject, driver):
        info = self.info(subject, driver)
        first = self.set_up(driver, info)
        assert self.set_up(driver, info) == first
        assert self.set_up(subject.start_with_servers(), info) == first

    def test_tearing_down_again_is_success(self, subject, driver):
        server = self.server(subject, driver)
        driver.teardown_server(details_of(server))
        driver.teardown_server(details_of(server))
        subject.start_with_servers().teardown_server(details_of(server))

    def test_what_never_was_is_torn_down_with_success(self, subject, driver):
        info = self.info(subject, driver)
        driver.teardown_server(
            {'server_id': info[0]['server_id']}, security_services=[]
        )

    def test_a_lost_answer_does_not_keep_a_server(self, subject, driver):
        info = self.info(subject, driver)
        self.set_up(driver, info)
        driver.teardown_server({'server_id': info[0]['server_id']})
        server = subject.server(info)
        with pytest.raises(exception.ManilaLiteError):
            driver.create_share(CTX, subject.share(), share_server=server)
        subject.shares.clear()

    def test_a_server_comes_again(self, subject, driver):
        info = self.info(subject, driver)
        first = self.set_up(driver, info)
        driver.teardown_server({'server_id': info[0]['server_id'], **first})
        server = subject.server(info, self.set_up(driver, info))
        assert driver.create_share(CTX, subject.share(), share_server=server)

    def test_a_share_is_reached_at_its_server(self, subject, driver):
        server = self.server(subject, driver)
        share = subject.share()
        answer = driver.create_share(CTX, share, share_server=server)
        given = {one['ip_address'] for one in server.network_allocations}
        assert any(
            address in path for address in given for path in paths(answer)
        )
        again = driver.create_share(CTX, share, share_server=server)
        assert paths(again) == paths(answer)

    def test_servers_are_apart(self, subject, driver):
        servers = [self.server(subject, driver) for _ in range(2)]
        shares = [subject.share() for _ in servers]
        for server, share in zip(servers, shares, strict=True):
            driver.create_share(CTX, share, share_server=server)
        driver.delete_share(CTX, shares[0], share_server=servers[0])
        driver.teardown_server(details_of(servers[0]))
        assert driver.create_share(CTX, shares[1], share_server=servers[1])

    def test_one_of_those_offered_is_chosen_or_none(self, subject, driver):
        choose = driver.choose_share_server_compatible_with_share
        servers = [self.server(subject, driver) for _ in range(2)]
        share = subject.share(size=1)
        subject.shares.clear()
        assert choose(CTX, [], share) is None
        for offered in (servers, servers[::-1], servers[:1]):
            chosen = choose(CTX, offered, share)
            assert chosen is None or chosen['id'] in {
                server.id for server in offered
            }
            assert choose(CTX, offered, share) == chosen

    def test_pools_of_a_server_are_pools_it_reports(self, subject, driver):
        server = self.server(subject, driver)
        driver.create_share(CTX, subject.share(), share_server=server)
        known = {
            pool['pool_name']
            for pool in driver.get_share_stats(refresh=True)['pools'] or []
        }
        used = {
            pool['pool_name'] for pool in driver.get_share_server_pools(server)
        }
        assert used <= known


class ManagingServersContract(_Servers):
    @pytest.fixture
    def old(self, subject, driver):
        """A server that is there and was let go; its identifier."""
        server = self.server(subject, driver)
        optional(driver.unmanage_server, details_of(server))
        return server.backend_details.get('identifier', server.id)

    def managed(self, subject, driver, identifier):
        info = self.info(subject, driver)
        server = subject.server(info)
        found, details = optional(
            driver.manage_server, CTX, server, identifier, {}
        )
        return subject.server(info, details), found

    def test_its_addresses_are_told(self, subject, driver, old):
        server = subject.server(self.info(subject, driver))
        count = driver.get_network_allocations_number()
        assert set(
            optional(
                driver.get_share_server_network_info, CTX, server, old, {}
            )
        ) == set(ADDRESSES[:count])

    def test_a_server_is_taken_over_and_used(self, subject, driver, old):
        server, found = self.managed(subject, driver, old)
        assert found is None or isinstance(found, str)
        assert driver.create_share(CTX, subject.share(), share_server=server)

    def test_taking_over_again_changes_nothing(self, subject, driver, old):
        server, found = self.managed(subject, driver, old)
        again = subject.start_with_servers().manage_server(
            CTX, server, old, {}
        )
        assert again == (found, dict(server.backend_details))

    def test_letting_go_again_is_success(self, subject, driver, old):
        server, found = self.managed(subject, driver, old)
        driver.unmanage_server(details_of(server))
        driver.unmanage_server(details_of(server))
        self.managed(subject, driver, found or old)

    def test_a_server_that_is_not_there_is_refused(self, subject, driver):
        server = subject.server(self.info(subject, driver))
        with pytest.raises((exception.ManilaLiteError, NotImplementedError)):
            driver.manage_server(CTX, server, 'nowhere', {})
