"""Dummy drivers and back ends under test."""

import pytest

from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.drivers.dummy.driver import DummyDriver
from tests.drivers.driver_harness import CTX
from tests.drivers.replication_sites import Sites


@pytest.fixture
def start(tmp_path):
    """Return a function that starts drivers on one shared state."""

    def start(sleep=None, **options):
        values = {
            'driver_handles_share_servers': False,
            'dummy_driver_state_path': str(tmp_path / 'state'),
            'dummy_driver_default_driver_method_delay': 0.0,
            'dummy_driver_driver_methods_delays': {},
            **options,
        }
        driver = DummyDriver(
            configuration=Configuration.from_values(values),
            **({'sleep': sleep} if sleep else {}),
        )
        driver.do_setup(CTX)
        driver.check_for_setup_error()
        return driver

    return start


@pytest.fixture
def make_sites(tmp_path):
    """Return a function that creates a share on the first back end."""

    def make_sites(style='dr', **kwargs):
        return Sites(tmp_path, 'dummy', style, **kwargs)

    return make_sites
