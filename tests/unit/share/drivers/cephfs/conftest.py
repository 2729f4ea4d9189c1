import contextlib

import pytest

from manila_lite import exception
from tests.drivers.driver_harness import CTX
from tests.unit.share.drivers.cephfs.sites import new_harness


@pytest.fixture
def harness(ceph):
    """Provide a back end with a group of its own; remove its shares."""
    harness = new_harness(ceph)
    yield harness
    with contextlib.suppress(exception.DriverError):
        harness.clean_up()


@pytest.fixture
def driver(harness):
    return harness.start()


@pytest.fixture
def share(harness, driver):
    share = harness.share()
    driver.create_share(CTX, share)
    return share
