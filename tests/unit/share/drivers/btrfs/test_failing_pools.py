"""What happens when the disk of a pool fails, and when it is back."""

import pathlib

import pytest

from manila_lite import exception
from tests.drivers.driver_harness import CTX
from tests.support import storage
from tests.support.failing_disk import FailingDisk
from tests.unit.share.drivers.btrfs.driver_site import Site


class FailingSite(Site):
    """A back end with a pool whose disk can fail, `small`."""

    def __init__(self, folder: pathlib.Path):
        super().__init__(folder)
        self.disk = FailingDisk(folder / 'small.img')

    @property
    def top(self) -> pathlib.Path:
        return pathlib.Path(self.options['btrfs_root'], 'pools', 'small')


@pytest.fixture
def site():
    storage.require()
    with storage.folder() as folder:
        site = FailingSite(folder)
        yield site
        site.disk.heal()


def test_error_names_the_file_system_that_has_failed(site):
    share = site.create('small', size=3)
    site.disk.break_file_system(site.top)
    for call in (
        lambda: site.driver.extend_share(share, 5),
        lambda: site.driver.shrink_share(share, 1),
        lambda: site.driver.create_snapshot(CTX, site.harness.snapshot(share)),
    ):
        with pytest.raises(exception.DriverError, match=str(site.top)):
            call()
