"""Local drivers under test, and the directories of their shares."""

import pathlib

from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.drivers.local.driver import LocalDriver
from tests.drivers.driver_harness import CTX
from tests.drivers.driver_harness import DriverHarness

make = DriverHarness('local', configure=lambda: None)


def start(root, **options):
    driver = LocalDriver(
        configuration=Configuration.from_values(
            {
                'driver_handles_share_servers': False,
                'local_root': str(root),
                **options,
            }
        )
    )
    driver.do_setup(CTX)
    driver.check_for_setup_error()
    return driver


def directory(driver, share):
    (location,) = driver.create_share(CTX, share)
    return pathlib.Path(location['path'])


def data(site):
    """Return the directory of the replica at a site."""
    return pathlib.Path(site.locations[0]['path'])
