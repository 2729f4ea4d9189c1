"""Local drivers under test, and the directories of their shares."""

import pathlib

from manila_lite.share.drivers.base import AccessRuleForDriver
from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.drivers.local.driver import LocalDriver
from tests.drivers.driver_harness import CTX, DriverHarness

make = DriverHarness('local', configure=lambda: None)


def start(root, *, has_shares=False, **options):
    driver = LocalDriver(
        configuration=Configuration.from_values(
            {'driver_handles_share_servers': False, 'local_root': str(root), **options}
        )
    )
    driver.has_shares = has_shares
    driver.do_setup(CTX)
    driver.check_for_setup_error()
    return driver


def directory(driver, share):
    (location,) = driver.create_share(CTX, share)
    return pathlib.Path(location['path'])


def data(site):
    """Return the directory of the replica at a site."""
    return pathlib.Path(site.locations[0]['path'])


def access_rule(access_to, access_type, access_level='rw'):
    """Return a rule whose id tells its client."""
    return AccessRuleForDriver(
        id=f'{access_type} {access_to}',
        share_id='share',
        access_type=access_type,
        access_to=access_to,
        access_level=access_level,
    )
