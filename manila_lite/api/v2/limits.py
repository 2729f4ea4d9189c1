"""Limits: what the caller's project may have in all, and what it has."""

from manila_lite.api import wsgi
from manila_lite.api.fields import Field
from manila_lite.api.fields import Value
from manila_lite.api.fields import fields
from manila_lite.db.queries.quotas import Scope
from manila_lite.quota import sets

# fmt: off
_WORDS = (
    # resource, its limit, what is used of it, since
    ('shares', 'maxTotalShares', 'totalSharesUsed', '2.0'),
    ('gigabytes', 'maxTotalShareGigabytes', 'totalShareGigabytesUsed',
     '2.0'),
    ('snapshots', 'maxTotalShareSnapshots', 'totalShareSnapshotsUsed',
     '2.0'),
    ('snapshot_gigabytes', 'maxTotalSnapshotGigabytes',
     'totalSnapshotGigabytesUsed', '2.0'),
    ('share_networks', 'maxTotalShareNetworks', 'totalShareNetworksUsed',
     '2.0'),
    ('share_replicas', 'maxTotalShareReplicas', 'totalShareReplicasUsed',
     '2.53'),
    ('replica_gigabytes', 'maxTotalReplicaGigabytes',
     'totalReplicaGigabytesUsed', '2.53'),
    ('share_groups', 'maxTotalShareGroups', 'totalShareGroupsUsed', '2.58'),
    ('share_group_snapshots', 'maxTotalShareGroupSnapshots',
     'totalShareGroupSnapshotsUsed', '2.58'),
    ('backups', 'maxTotalShareBackups', 'totalShareBackupsUsed', '2.80'),
    ('backup_gigabytes', 'maxTotalBackupGigabytes',
     'totalBackupGigabytesUsed', '2.80'),
)
# fmt: on

ABSOLUTE = fields(*(
    Field(name, Value(f'row[{resource!r}].{part}'), since=since)
    for resource, limit, used, since in _WORDS
    for name, part in ((limit, 'limit'), (used, 'in_use'))))


class Limits(wsgi.Controller):

    @wsgi.method()
    def index(self, req: wsgi.Request) -> dict:
        """Show the limits to anybody of the project; no rate is limited."""
        found = self.services.db.read(
            sets.show_usage, self.services.limits,
            Scope(req.ctx.project_id))
        return {'limits': {'rate': [],
                           'absolute': ABSOLUTE.function(req.minor)(found)}}
