"""Back ends on the cluster of the run."""

from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers.ceph_harness import CephHarness


def new_harness(cluster, **options):
    """Return a back end with a group of its own."""
    configuration = Configuration.from_values(cluster.options(**options))
    return CephHarness('cephfs', lambda: configuration)
