"""The driver contract: what a driver receives, must do and may reply.

Names, parameters and replies are those of existing Manila drivers. The
interfaces a driver offers (the `…Support` classes, either inherited or
implemented in full) decide which capabilities the scheduler may rely on. Any
other method that a driver does not implement raises NotImplementedError,
which callers handle. Every method may be called twice and must lead to the
same state.
"""

import abc
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from oslo_config import cfg

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.share.drivers.contract.access import apply_with_allow_deny
from manila_lite.share.drivers.contract.access import normalise_access_replies
from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.drivers.contract.interfaces import CAPABILITIES
from manila_lite.share.drivers.contract.interfaces import (
    CreateFromSnapshotSupport,
)
from manila_lite.share.drivers.contract.interfaces import MountSnapshotSupport
from manila_lite.share.drivers.contract.interfaces import RevertSupport
from manila_lite.share.drivers.contract.interfaces import ShareServerMapping
from manila_lite.share.drivers.contract.interfaces import SnapshotSupport
from manila_lite.share.drivers.contract.managing import ManageDefaults
from manila_lite.share.drivers.contract.managing import ManageSupport
from manila_lite.share.drivers.contract.managing import ManageWithServerSupport
from manila_lite.share.drivers.contract.replication import ReplicationDefaults
from manila_lite.share.drivers.contract.replication import ReplicationSupport
from manila_lite.share.drivers.contract.server_migrations import MigratedShare
from manila_lite.share.drivers.contract.server_migrations import (
    MigratedSnapshot,
)
from manila_lite.share.drivers.contract.server_migrations import (
    ServerMigrationCompatibility,
)
from manila_lite.share.drivers.contract.server_migrations import (
    ServerMigrationCompleteReply,
)
from manila_lite.share.drivers.contract.server_migrations import (
    ServerMigrationDefaults,
)
from manila_lite.share.drivers.contract.server_migrations import (
    ServerMigrationStartReply,
)
from manila_lite.share.drivers.contract.server_migrations import (
    ServerMigrationSupport,
)
from manila_lite.share.drivers.contract.share_servers import (
    ShareServerDefaults,
)
from manila_lite.share.drivers.contract.share_servers import ShareServerSupport
from manila_lite.share.drivers.contract.values import AccessReplies
from manila_lite.share.drivers.contract.values import AccessReply
from manila_lite.share.drivers.contract.values import AccessRuleForDriver
from manila_lite.share.drivers.contract.values import EnsureReply
from manila_lite.share.drivers.contract.values import ExportLocation
from manila_lite.share.drivers.contract.values import ExportLocationsReply
from manila_lite.share.drivers.contract.values import ManageReply
from manila_lite.share.drivers.contract.values import ManageSnapshotReply
from manila_lite.share.drivers.contract.values import NetworkAllocation
from manila_lite.share.drivers.contract.values import NetworkInfo
from manila_lite.share.drivers.contract.values import NewShareReply
from manila_lite.share.drivers.contract.values import ReplicaReply
from manila_lite.share.drivers.contract.values import ReplicaSnapshot
from manila_lite.share.drivers.contract.values import ReplicatedSnapshotReply
from manila_lite.share.drivers.contract.values import SecurityServiceForDriver
from manila_lite.share.drivers.contract.values import ShareForDriver
from manila_lite.share.drivers.contract.values import ShareServerForDriver
from manila_lite.share.drivers.contract.values import SnapshotForDriver
from manila_lite.share.drivers.contract.values import SnapshotReply
from manila_lite.share.drivers.contract.values import StatusReply
from manila_lite.share.drivers.contract.values import (
    normalise_export_locations,
)

# Code that deals with drivers imports this module only.
__all__ = [
    'CAPABILITIES',
    'AccessReply',
    'AccessReplies',
    'AccessRuleForDriver',
    'CreateFromSnapshotSupport',
    'EnsureReply',
    'ExportLocation',
    'ExportLocationsReply',
    'ManageReply',
    'ManageSnapshotReply',
    'ManageSupport',
    'ManageWithServerSupport',
    'MigratedShare',
    'MigratedSnapshot',
    'MountSnapshotSupport',
    'NetworkAllocation',
    'NetworkInfo',
    'NewShareReply',
    'ReplicaReply',
    'ReplicaSnapshot',
    'ReplicatedSnapshotReply',
    'ReplicationDefaults',
    'ReplicationSupport',
    'RevertSupport',
    'AccessRules',
    'SecurityServiceForDriver',
    'ServerMigrationCompatibility',
    'ServerMigrationCompleteReply',
    'ServerMigrationStartReply',
    'ServerMigrationSupport',
    'ShareDriver',
    'ShareForDriver',
    'ShareServerMapping',
    'ShareServerForDriver',
    'ShareServerSupport',
    'SnapshotReply',
    'SnapshotForDriver',
    'SnapshotSupport',
    'Stats',
    'StatusReply',
    'normalise_access_replies',
    'normalise_export_locations',
]

AccessRules = list[AccessRuleForDriver]
Stats = dict[str, Any]


class ShareDriver(
    ManageDefaults,
    ShareServerDefaults,
    ServerMigrationDefaults,
    ReplicationDefaults,
    abc.ABC,
):
    """The base class of every driver; one instance serves one back end.

    The first argument names the share server modes the driver supports: one
    bool, or several. `configuration` holds the options of the back end's
    section, `private_storage` is per-share storage for the driver's own
    data, and `config_opts` lists additional options of the driver.
    """

    ipv6_implemented = False
    security_service_update_support = False
    network_allocation_update_support = False
    share_replicas_migration_support = False
    qos_type_support = False
    encryption_support: list[str] | None = None

    def __init__(
        self,
        driver_handles_share_servers: bool | Collection[bool],
        *args: Any,
        configuration: Configuration,
        private_storage: Any = None,
        config_opts: Iterable[Iterable[cfg.Opt]] = (),
        **kwargs: Any,
    ):
        self.configuration = configuration
        self.private_storage = private_storage
        self.initialized = False
        self._stats: Stats = {}
        for opts in config_opts:
            configuration.append_config_values(opts)
        self._verify_share_server_handling(driver_handles_share_servers)

    def _verify_share_server_handling(
        self, driver_handles_share_servers: bool | Collection[bool]
    ) -> None:
        supported = (
            {driver_handles_share_servers}
            if isinstance(driver_handles_share_servers, bool)
            else set(driver_handles_share_servers)
        )
        configured = self.configuration.safe_get(
            'driver_handles_share_servers'
        )
        section = self.configuration.config_group
        if not isinstance(configured, bool):
            raise exception.BadConfiguration(
                reason=f'back end "{section}": driver_handles_share_servers '
                'must be set to true or false'
            )
        if configured not in supported:
            raise exception.BadConfiguration(
                reason=f'back end "{section}": {type(self).__name__} does not '
                f'support driver_handles_share_servers={configured}'
            )
        if configured and not isinstance(self, ShareServerSupport):
            raise exception.BadConfiguration(
                reason=f'back end "{section}": {type(self).__name__} lacks '
                'methods of ShareServerSupport'
            )

    @property
    def driver_handles_share_servers(self) -> bool:
        """Return the configured share server mode (DHSS)."""
        return self.configuration.driver_handles_share_servers

    @property
    def backend_name(self) -> str:
        """The back end name that share types refer to."""
        return (
            self.configuration.safe_get('share_backend_name')
            or self.configuration.config_group
        )

    # Start: many drivers have nothing to do here, so neither is abstract

    def do_setup(self, context: RequestContext) -> None:  # noqa: B027
        """Prepare the driver; called first and repeated until it succeeds."""

    def check_for_setup_error(self) -> None:  # noqa: B027
        """Raise an error if the back end is not ready for use."""

    def get_backend_info(self, context: RequestContext) -> dict[str, str]:
        """Return the settings that exports depend on.

        Shares are ensured when they change, or at every start if the driver
        does not implement this method.
        """
        raise NotImplementedError

    def ensure_shares(
        self, context: RequestContext, shares: Iterable[ShareForDriver]
    ) -> dict[str, EnsureReply] | None:
        """Ensure exports; return what has changed by share instance id.

        If it is not implemented, `ensure_share` is called for each share.
        """
        raise NotImplementedError

    def ensure_share(
        self,
        context: RequestContext,
        share: ShareForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> ExportLocationsReply:
        """Return the export locations of a share, or None if unchanged."""
        return None

    def get_pool(self, share: ShareForDriver) -> str | None:
        """Return the pool of a share, or None if the back end has no pools."""
        return None

    # Shares

    @abc.abstractmethod
    def create_share(
        self,
        context: RequestContext,
        share: ShareForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> ExportLocationsReply:
        """Create a share and return its export locations.

        A share that already exists is kept.
        """

    @abc.abstractmethod
    def delete_share(
        self,
        context: RequestContext,
        share: ShareForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> None:
        """Delete a share.

        A missing share is success, as is ShareResourceNotFound.
        """

    def extend_share(
        self,
        share: ShareForDriver,
        new_size: int,
        share_server: ShareServerMapping | None = None,
    ) -> None:
        """Extend a share; succeed if it is already large enough."""
        raise NotImplementedError

    def shrink_share(
        self,
        share: ShareForDriver,
        new_size: int,
        share_server: ShareServerMapping | None = None,
    ) -> None:
        """Shrink a share; succeed if it is already small enough.

        Raises ShareShrinkingPossibleDataLoss without changing anything if
        the content would not fit.
        """
        raise NotImplementedError

    # Access

    def update_access(
        self,
        context: RequestContext,
        share: ShareForDriver,
        access_rules: AccessRules,
        add_rules: AccessRules,
        delete_rules: AccessRules,
        update_rules: AccessRules,
        share_server: ShareServerMapping | None = None,
    ) -> AccessReplies | None:
        """Grant access to exactly the clients in `access_rules`.

        These are all rules that must apply when the call returns. The other
        lists name the changes since the last call. If all three are empty,
        the back end may be in any state and must be brought in line.
        Deleting a rule that does not exist is success.

        The reply maps rule ids to the rules that failed or have a key. Rules
        that are not mentioned are considered applied. An exception applies
        to all changed rules.
        """
        raise NotImplementedError

    def allow_access(
        self,
        context: RequestContext,
        share: ShareForDriver,
        access: AccessRuleForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> object:
        """Allow one client; the legacy fallback for `update_access`."""
        raise NotImplementedError

    def deny_access(
        self,
        context: RequestContext,
        share: ShareForDriver,
        access: AccessRuleForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> object:
        """Deny one client; the legacy fallback for `update_access`."""
        raise NotImplementedError

    def apply_access(
        self,
        context: RequestContext,
        share: ShareForDriver,
        access_rules: Sequence[AccessRuleForDriver],
        add_rules: Sequence[AccessRuleForDriver] = (),
        delete_rules: Sequence[AccessRuleForDriver] = (),
        update_rules: Sequence[AccessRuleForDriver] = (),
        share_server: ShareServerMapping | None = None,
    ) -> dict[str, AccessReply]:
        """Apply access rules; return replies by rule id.

        Callers use this method: it hides whether the driver implements
        `update_access` or `allow_access` and `deny_access`.
        """
        try:
            replies = self.update_access(
                context,
                share,
                list(access_rules),
                list(add_rules),
                list(delete_rules),
                list(update_rules),
                share_server=share_server,
            )
        except NotImplementedError:
            replies = apply_with_allow_deny(
                self,
                context,
                share,
                access_rules,
                add_rules,
                delete_rules,
                update_rules,
                share_server,
            )
        return normalise_access_replies(replies)

    # Actual states, for callers that lost track of an operation

    def get_share_status(
        self,
        share: ShareForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> StatusReply:
        """Return the actual state of a share on the back end.

        Raises ShareResourceNotFound if the back end has no such share.
        """
        raise NotImplementedError

    def get_snapshot_status(
        self,
        snapshot: SnapshotForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> StatusReply:
        """Return the actual state of a snapshot on the back end.

        Raises SnapshotResourceNotFound if there is no such snapshot.
        """
        raise NotImplementedError

    def get_share_group_status(
        self,
        share_group: Mapping[str, Any],
        share_server: ShareServerMapping | None = None,
    ) -> StatusReply:
        """Return the actual state of a share group on the back end."""
        raise NotImplementedError

    def get_share_group_snapshot_status(
        self,
        share_group_snapshot: Mapping[str, Any],
        share_server: ShareServerMapping | None = None,
    ) -> StatusReply:
        """Return the actual state of a share group snapshot."""
        raise NotImplementedError

    # Statistics

    @property
    def snapshots_are_supported(self) -> bool:
        return isinstance(self, SnapshotSupport)

    @property
    def creating_shares_from_snapshots_is_supported(self) -> bool:
        return isinstance(self, CreateFromSnapshotSupport)

    @property
    def replication_domain(self) -> str | None:
        return self.configuration.safe_get('replication_domain')

    @property
    def max_shares_per_share_server(self) -> int:
        return self.configuration.safe_get('max_shares_per_share_server')

    @property
    def max_share_server_size(self) -> int:
        return self.configuration.safe_get('max_share_server_size')

    def get_share_stats(self, refresh: bool = False) -> Stats:
        """Return capabilities and capacity for the scheduler."""
        if refresh or not self._stats:
            self._update_share_stats()
        return self._stats

    def _update_share_stats(self, data: Stats | None = None) -> None:
        """Collect fresh statistics; drivers pass their own as `data`."""
        stats = self._common_stats() | (data or {})
        stats['pools'] = stats['pools'] and [
            pool | self._narrowed(pool, CAPABILITIES.keys() & pool.keys())
            for pool in stats['pools']
        ]
        stats |= self._narrowed(stats, CAPABILITIES)
        self._stats = self.add_ip_version_capability(stats)

    def _narrowed(self, stats: Stats, names: Iterable[str]) -> Stats:
        """Return the named capabilities, limited to what is implemented."""
        return {
            name: isinstance(self, CAPABILITIES[name])
            and bool(stats.get(name, True))
            for name in names
        }

    def _common_stats(self) -> Stats:
        stats = self.capacity_options() | {
            'share_backend_name': self.backend_name,
            'driver_handles_share_servers': self.driver_handles_share_servers,
            'vendor_name': 'Open Source',
            'driver_version': '1.0',
            'storage_protocol': None,
            'total_capacity_gb': 'unknown',
            'free_capacity_gb': 'unknown',
            'pools': None,
            'qos': False,
            'qos_type_support': self.qos_type_support,
            'mount_point_name_support': False,
            'snapshot_inherit_share_access_support': False,
            'share_server_multiple_subnet_support': False,
            'security_service_update_support': (
                self.security_service_update_support
            ),
            'network_allocation_update_support': (
                self.network_allocation_update_support
            ),
            'share_replicas_migration_support': (
                self.share_replicas_migration_support
            ),
            'encryption_support': self.encryption_support,
            'replication_domain': self.replication_domain,
            'filter_function': self.get_filter_function(),
            'goodness_function': self.get_goodness_function(),
            'share_group_stats': {'consistent_snapshot_support': None},
        }
        if self.driver_handles_share_servers:
            stats |= {
                'max_shares_per_share_server': (
                    self.max_shares_per_share_server
                ),
                'max_share_server_size': self.max_share_server_size,
            }
        return stats

    def capacity_options(self) -> Stats:
        """Return the configured capacity settings, which hold for any pool."""
        get = self.configuration.safe_get
        reserved = get('reserved_share_percentage')
        return {
            'reserved_percentage': reserved,
            'reserved_snapshot_percentage': get(
                'reserved_share_from_snapshot_percentage'
            )
            or reserved,
            'reserved_share_extend_percentage': get(
                'reserved_share_extend_percentage'
            )
            or reserved,
            'max_over_subscription_ratio': get('max_over_subscription_ratio'),
        }

    def get_filter_function(self, pool: str | None = None) -> str | None:
        """Return the expression that selects shares for the back end."""
        return self.configuration.safe_get(
            'filter_function'
        ) or self.get_default_filter_function(pool=pool)

    def get_goodness_function(self) -> str | None:
        """Return the expression that rates how well a share fits."""
        return (
            self.configuration.safe_get('goodness_function')
            or self.get_default_goodness_function()
        )

    def get_default_filter_function(
        self, pool: str | None = None
    ) -> str | None:
        """Return the driver's own expression, used if none is configured."""
        return None

    def get_default_goodness_function(self) -> str | None:
        """Return the driver's own expression, used if none is configured."""
        return None

    def get_configured_ip_versions(self) -> list[int]:
        """Return the IP versions of exports: 4, 6 or both."""
        if self.ipv6_implemented:
            raise NotImplementedError
        return [4]

    def add_ip_version_capability(self, data: Stats) -> Stats:
        """Return the statistics with the supported IP versions added."""
        versions = set(self.get_configured_ip_versions())
        return data | {
            'ipv4_support': 4 in versions,
            'ipv6_support': 6 in versions,
        }
