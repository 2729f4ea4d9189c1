"""A CIFS share with replicas, whose clients are users of each back end."""

from manila_lite.share.drivers.btrfs.exports.smb.smb_users import SmbUsers
from tests.drivers.cifs_harness import CifsHarness, CifsOnServerHarness
from tests.drivers.replication_sites import CLIENT, Sites
from tests.support.smb_client import PASSWORD


class CifsSites(Sites):
    """With share servers, users connect from the machine of a tenant."""

    share_proto = 'CIFS'

    def __init__(self, *args, tenant=None, **values):
        self.tenant = tenant
        super().__init__(*args, **values)

    def new_harness(self, *values):
        kind = CifsOnServerHarness if self.tenant else CifsHarness
        return kind(*values, client=self.tenant)

    def apply_rules(self, site):
        if not site.is_unreachable:
            users = self.users_of(site)
            if CLIENT not in users.names():
                users.add(CLIENT, PASSWORD)
        super().apply_rules(site)

    def users_of(self, site):
        return SmbUsers(site.harness.folder(site.driver))

    def user(self, site, name=CLIENT):
        """Return a user of the share servers, or of the back end."""
        return site.harness.user(site.driver, name)

    def levels(self, site=None):
        site = site or self.there
        site.harness.named[self.share_id] = {CLIENT}
        return super().levels(site)
