"""A local driver with a share."""

import pytest

from tests.drivers.driver_harness import CTX
from tests.unit.share.drivers.local.local_driver import make, start


@pytest.fixture
def root(tmp_path):
    return tmp_path / 'root'


@pytest.fixture
def driver(root):
    return start(root)


@pytest.fixture
def share(driver):
    share = make.share(size=2)
    driver.create_share(CTX, share)
    return share
