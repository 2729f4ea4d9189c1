"""Shares and snapshots on share servers of btrfs, managed and unmanaged."""

import dataclasses

import pytest

from manila_lite import exception
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers import managing_contract
from tests.drivers.conftest import BTRFS
from tests.drivers.driver_harness import CTX, DriverHarness
from tests.drivers.served_harness import ServedHarness


@pytest.fixture
def served(btrfs_server_options):
    harness = ServedHarness(
        BTRFS, lambda: Configuration.from_values(btrfs_server_options)
    )
    yield harness
    harness.clean_up()


class TestManaging(managing_contract.ManagingContract):
    """Existing shares on the server that they are on."""

    @pytest.fixture
    def harness(self, served):
        return served


class TestManagingSnapshots(managing_contract.ManagingSnapshotsContract):
    """Existing snapshots on the server of their share."""

    @pytest.fixture
    def harness(self, served):
        return served


@pytest.fixture
def driver(served):
    return served.start()


@pytest.fixture
def other(served, driver):
    """Create another server."""
    server = served.set_up_server(driver, '10.20.0.6')
    yield server
    driver.teardown_server({'server_id': server.id})


def unmanaged(served, driver):
    """Create a share for a client and unmanage it; return both."""
    share = served.share()
    (location,) = driver.create_share(CTX, share)
    rule = served.rule(share, '10.0.0.1')
    driver.update_access(CTX, share, [rule], [], [], [])
    driver.unmanage(share)
    return share, served.at(location['path'])


def test_clients_keep_their_access_until_a_share_is_managed(served, driver):
    """A managed share has no access rules."""
    share, again = unmanaged(served, driver)
    assert served.clients(driver, share) == {('ip', '10.0.0.1', 'rw')}
    driver.manage_existing(again, {})
    assert not served.clients(driver, share)


def test_share_is_not_taken_from_another_server(served, driver, other):
    _, again = unmanaged(served, driver)
    with pytest.raises(exception.ManageInvalidShare, match='share server'):
        driver.manage_existing_with_server(again, {}, share_server=other)
    driver.manage_existing(again, {})


def test_share_of_a_server_that_is_gone_is_managed_on_another(served, driver, other):
    _, again = unmanaged(served, driver)
    driver.teardown_server({'server_id': served.served_by.id})
    reply = driver.manage_existing_with_server(again, {}, share_server=other)
    (location,) = reply['export_locations']
    assert location['path'].startswith('10.20.0.6:')
    rule = served.rule(again, '10.0.0.2')
    driver.update_access(CTX, again, [rule], [], [], [])
    volume = dataclasses.replace(again, name=location['path'].rpartition('/')[2])
    assert DriverHarness.clients(served, driver, volume) == {('ip', '10.0.0.2', 'rw')}
    driver.delete_share(CTX, again)
