"""Migrations of shares between share networks and share servers.

The back ends alpha and beta have share servers. The third one, plain, has
none, and is in an availability zone of its own.
"""

import sqlalchemy as sa

from manila_lite.db.models import shares
from tests.support import host_assisted, share_migrations as migrations
from tests.support.cloud_images import prepared
from tests.support.dhss import ShareServersCloud

INSTANCE = shares.ShareInstance.__table__

BACKENDS = ('alpha', 'beta', 'plain')
PLAIN = 'node@plain#pool'
FAR = 'far'
"""The zone of the back end plain."""

_PLAIN_SECTION = f"""
driver_handles_share_servers = false
backend_availability_zone = {FAR}
"""

DRIVER = {'writable': True}
COPY = {'writable': False, 'force_host_assisted_migration': True}


class NetworkMigrationCloud(ShareServersCloud):
    """Two back ends with share servers, and one without."""

    def __init__(self, *args, backends=BACKENDS, **kwargs):
        super().__init__(*args, backends=backends, **kwargs)

    def configure(self, *, backend_conf='', extra_conf=''):
        super().configure(
            backend_conf=backend_conf,
            extra_conf=migrations.SHORT_POLL_INTERVAL + extra_conf,
        )
        # It is the last section; of two values the last one counts.
        assert self.backend_names[-1] == 'plain'
        with open(self._conf_file, 'a') as file:
            file.write(_PLAIN_SECTION)


@prepared
def create(cloud, network_id):
    """Create a share with content and a rule on alpha; return its id."""
    share = migrations.create_on_alpha(cloud, share_network_id=network_id, size=2)
    migrations.allow(cloud, share)
    cloud.settle()
    instance_id = migrations.instance_of(cloud, share)
    cloud.driver('alpha').write(instance_id, 'precious')
    host_assisted.fill(host_assisted.content_of(cloud, 'alpha', instance_id))
    return share


@prepared
def create_plain(cloud):
    """Create a share without a share server; return its id."""
    plain = migrations.create_type(cloud, 'plain')
    share = cloud.create_share(share_type=plain)
    assert cloud.api.show(share)['host'] == PLAIN
    return share


def shown_network(cloud, share_id):
    """Return the id of the network that a share is shown with."""
    return cloud.api.show(share_id)['share_network_id']


def instance_on(cloud, name):
    """Return the only share instance on a back end, None without one."""
    rows = cloud.rows(sa.select(INSTANCE).where(INSTANCE.c.host == f'node@{name}#pool'))
    return rows[0] if rows else None


def servers_on(cloud, name):
    """Return the ids of the share servers that exist on a back end."""
    return set(cloud.driver(name).server_inventory())
