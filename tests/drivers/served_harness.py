"""A driver as tests without share servers use it, on a share server."""

import dataclasses
import functools

from manila_lite.share.drivers.base import ShareDriver, ShareServerForDriver
from tests.drivers.driver_harness import DriverHarness

_ON_SERVERS = (
    'create_share',
    'create_share_from_snapshot',
    'delete_share',
    'extend_share',
    'shrink_share',
    'update_access',
    'create_snapshot',
    'delete_snapshot',
    'revert_to_snapshot',
    'snapshot_update_access',
)
_WITH_SERVER = (
    'manage_existing',
    'unmanage',
    'manage_existing_snapshot',
    'unmanage_snapshot',
)


@dataclasses.dataclass
class ServedHarness(DriverHarness):
    """A driver whose shares are all on one share server."""

    served_by: ShareServerForDriver | None = None

    def start(self) -> ShareDriver:
        driver = super().start()
        self.served_by = self.served_by or self.set_up_server(driver)
        for name in (*_ON_SERVERS, *_WITH_SERVER):
            suffix = '_with_server' if name in _WITH_SERVER else ''
            method = getattr(driver, f'{name}{suffix}')
            setattr(
                driver, name, functools.partial(method, share_server=self.served_by)
            )
        return driver

    def clean_up(self) -> None:
        super().clean_up()
        DriverHarness.start(self).teardown_server({'server_id': self.served_by.id})
