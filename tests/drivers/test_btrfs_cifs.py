"""The contract of drivers with CIFS shares of btrfs.

They are shared by the machine, or by a share server.
"""

import pytest

from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers import access_contract, contract, managing_contract
from tests.drivers.cifs_harness import CifsHarness, ServedCifsHarness
from tests.drivers.conftest import BTRFS
from tests.support import sampling

pytestmark = sampling.suite('the contract on CIFS shares', 2)


@pytest.fixture(params=['machine', 'server'])
def harness(request):
    """Start the driver; remove what a test has created with it."""
    if request.param == 'machine':
        options = request.getfixturevalue('btrfs_cifs_options')
        client, kind = None, CifsHarness
    else:
        site = request.getfixturevalue('btrfs_cifs_servers')
        options, client = site.options, site.client
        kind = ServedCifsHarness
    harness = kind(BTRFS, lambda: Configuration.from_values(options), client=client)
    yield harness
    harness.clean_up()


class TestShares(contract.ShareContract):
    """The life cycle of shares, and repeated operations."""


class TestSnapshots(contract.SnapshotContract):
    """Snapshots and their use."""


class TestAccess(access_contract.AccessContract):
    """Access to shares."""

    changes = 5


class TestSnapshotAccess(access_contract.SnapshotAccessContract):
    """Access to snapshots."""

    changes = 5


class TestManaging(managing_contract.ManagingContract):
    """Managing existing shares."""


class TestManagingSnapshots(managing_contract.ManagingSnapshotsContract):
    """Managing existing snapshots."""
