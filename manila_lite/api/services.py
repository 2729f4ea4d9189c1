"""What controllers are given; built by `manila_lite.cmd.build.api`."""

import dataclasses
import typing

from oslo_config import cfg

from manila_lite.db.session import Database
from manila_lite.policies.enforcer import Enforcer
from manila_lite.quota.limits import DefaultLimits
from manila_lite.share.operations.access.locks import Locks
from manila_lite.share.operations.access.rules import Access, SnapshotAccess
from manila_lite.share.operations.backups import ShareBackups
from manila_lite.share.operations.groups.copies import ShareGroupCopies
from manila_lite.share.operations.groups.share_groups import ShareGroups
from manila_lite.share.operations.groups.snapshots import ShareGroupSnapshots
from manila_lite.share.operations.managing import Managing
from manila_lite.share.operations.networks.changes import NetworkChanges
from manila_lite.share.operations.networks.share_networks import ShareNetworks
from manila_lite.share.operations.recovery import Recovery
from manila_lite.share.operations.replication.replicas import Replicas
from manila_lite.share.operations.servers.migrations import ServerMigrations
from manila_lite.share.operations.servers.share_servers import ShareServers
from manila_lite.share.operations.services import Services
from manila_lite.share.operations.shares.metadata import ShareMetadata
from manila_lite.share.operations.shares.migrations import ShareMigrations
from manila_lite.share.operations.shares.shares import Shares
from manila_lite.share.operations.snapshots import Snapshots
from manila_lite.share.operations.transfers import ShareTransfers


@dataclasses.dataclass
class ApiServices:
    """The operations, the database and the options of all controllers."""

    conf: cfg.ConfigOpts
    db: Database
    enforcer: Enforcer
    shares: Shares
    share_metadata: ShareMetadata
    access: Access
    snapshots: Snapshots
    snapshot_access: SnapshotAccess
    locks: Locks
    managing: Managing
    services: Services
    recovery: Recovery
    share_networks: ShareNetworks
    network_changes: NetworkChanges
    share_servers: ShareServers
    server_migrations: ServerMigrations
    share_migrations: ShareMigrations
    replicas: Replicas
    share_transfers: ShareTransfers
    share_backups: ShareBackups
    share_groups: ShareGroups
    share_group_copies: ShareGroupCopies
    share_group_snapshots: ShareGroupSnapshots
    limits: DefaultLimits
    admin_only_metadata: frozenset[str]
    admin_only_export_metadata: frozenset[str]
    pool_matches: typing.Callable[
        [typing.Mapping[str, typing.Any], typing.Mapping[str, str]], bool
    ]
    describe: typing.Callable[[cfg.ConfigOpts, int], bytes]
    """Returns the description of a minor version of the API."""
