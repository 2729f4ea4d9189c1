"""A share of CephFS with replicas, on back ends that share the cluster of the run."""

import shutil

from manila_lite import exception
from manila_lite.share.drivers.cephfs.backend import MISSING
from manila_lite.share.drivers.cephfs.cluster import CommandFailed
from tests.drivers.ceph_harness import CephHarness
from tests.drivers.driver_harness import CTX
from tests.drivers.replication_sites import NAMES, Sites


class CephSites(Sites):
    """Each back end has a group of its own, and a configuration of the cluster.

    One that is out of reach has lost that.
    """

    share_proto = 'CEPHFS'

    def __init__(
        self, folder, *args, cluster, client, names=NAMES, groups=None, **values
    ):
        self.groups = groups or {}
        self._client = client
        for name in names:
            shutil.copy(cluster.conf, folder / f'{name}.conf')
        super().__init__(folder, *args, names=names, **values)

    def clean_up(self):
        super().clean_up()
        for site in self.sites:
            site.driver.backend.cluster.close()

    def new_harness(self, *values):
        harness = CephHarness(*values)
        harness.client = self._client
        return harness

    def rule(self, to, level='rw'):
        return self.here.harness.rule(self.share_for(self.here), to, access_level=level)

    def apply_rules(self, site):
        site.driver.apply_access(CTX, self.share_for(site), self.rules_for(site))

    def levels(self, site=None):
        """Return the access levels that a replica grants the only user."""
        site = site or self.there
        try:
            clients = site.harness.clients(site.driver, self.share_for(site))
        except exception.DriverError as error:
            is_gone = isinstance(error, CommandFailed) and error.errno == MISSING
            assert site.is_unreachable or is_gone
            return set()
        return {level for _, _, level in clients}
