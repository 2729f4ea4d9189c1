"""The driver contract: what a driver is given, asked and may answer.

Names, parameters and answers are those drivers of the field already have.
What the scheduler may count on is told by the interfaces a driver offers
(the `…Support` classes, inherited or simply written out in full); any
other method a driver lacks raises NotImplementedError, and the caller
knows what that means. Every method may be called twice and must end in
the same place.
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
from manila_lite.share.drivers.contract.replication import ReplicationDefaults
from manila_lite.share.drivers.contract.server_migrations import (
    ServerMigrationDefaults,
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

# Who deals with drivers needs this module and no other.
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
    'MountSnapshotSupport',
    'NetworkAllocation',
    'NetworkInfo',
    'NewShareReply',
    'ReplicaReply',
    'ReplicaSnapshot',
    'ReplicatedSnapshotReply',
    'ReplicationDefaults',
    'RevertSupport',
    'AccessRules',
    'SecurityServiceForDriver',
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
    ShareServerDefaults, ServerMigrationDefaults, ReplicationDefaults, abc.ABC
):
    """The base of every driver, for one back end.

    The first argument names the modes of share servers the driver can
    work in: one bool, or several. `configuration` holds the options of the
    back end's section, `private_storage` what the driver wants remembered
    per share, `config_opts` lists of options of its own.
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
        offered = (
            {driver_handles_share_servers}
            if isinstance(driver_handles_share_servers, bool)
            else set(driver_handles_share_servers)
        )
        wanted = self.configuration.safe_get('driver_handles_share_servers')
        section = self.configuration.config_group
        if not isinstance(wanted, bool):
            raise exception.BadConfiguration(
                reason=f'back end "{section}": driver_handles_share_servers '
                'must be set to true or false'
            )
        if wanted not in offered:
            raise exception.BadConfiguration(
                reason=f'back end "{section}": {type(self).__name__} cannot '
                f'work with driver_handles_share_servers={wanted}'
            )
        if wanted and not isinstance(self, ShareServerSupport):
            raise exception.BadConfiguration(
                reason=f'back end "{section}": {type(self).__name__} lacks '
                'methods of ShareServerSupport'
            )

    @property
    def driver_handles_share_servers(self) -> bool:
        return self.configuration.driver_handles_share_servers

    @property
    def backend_name(self) -> str:
        """The name share types know the back end by."""
        return (
            self.configuration.safe_get('share_backend_name')
            or self.configuration.config_group
        )

    # Start: many drivers have nothing to do there, so neither is abstract

    def do_setup(self, context: RequestContext) -> None:  # noqa: B027
        """Get ready to work; called first, again until it succeeds."""

    def check_for_setup_error(self) -> None:  # noqa: B027
        """Raise when the back end is not fit for work."""

    def get_backend_info(self, context: RequestContext) -> dict[str, str]:
        """What exports depend on: shares are ensured when it changes.

        Without it they are ensured at every start.
        """
        raise NotImplementedError

    def ensure_shares(
        self, context: RequestContext, shares: Iterable[ShareForDriver]
    ) -> dict[str, EnsureReply] | None:
        """What has changed, by share instance id; exports made sure of.

        Without it `ensure_share` is called for each.
        """
        raise NotImplementedError

    def ensure_share(
        self,
        context: RequestContext,
        share: ShareForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> ExportLocationsReply:
        """The export locations of a share, or None where nothing changed."""
        return None

    def get_pool(self, share: ShareForDriver) -> str | None:
        """The pool a share lies in, if the back end has any."""
        return None

    # Shares

    @abc.abstractmethod
    def create_share(
        self,
        context: RequestContext,
        share: ShareForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> ExportLocationsReply:
        """Make a share and say where it is; one that is there is kept."""

    @abc.abstractmethod
    def delete_share(
        self,
        context: RequestContext,
        share: ShareForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> None:
        """Remove a share; gone is success, as is ShareResourceNotFound."""

    def extend_share(
        self,
        share: ShareForDriver,
        new_size: int,
        share_server: ShareServerMapping | None = None,
    ) -> None:
        """Make a share larger; already large enough is success."""
        raise NotImplementedError

    def shrink_share(
        self,
        share: ShareForDriver,
        new_size: int,
        share_server: ShareServerMapping | None = None,
    ) -> None:
        """Make a share smaller; already small enough is success.

        Raises ShareShrinkingPossibleDataLoss, having changed nothing, when
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
        """Let in whom `access_rules` name, and nobody else.

        They are all that are to hold when the call is over. The other
        lists say what has changed since the last call; with all three
        empty the back end may be in any state, and is put right. A rule
        to delete that is not there is success.

        The answer tells, by the id of the rule, which could not be had
        and which have a key; those not mentioned are taken as done. An
        error that is raised holds for all that have changed.
        """
        raise NotImplementedError

    def allow_access(
        self,
        context: RequestContext,
        share: ShareForDriver,
        access: AccessRuleForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> object:
        """Let one client in: the older way, without `update_access`."""
        raise NotImplementedError

    def deny_access(
        self,
        context: RequestContext,
        share: ShareForDriver,
        access: AccessRuleForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> object:
        """Shut one client out: the older way, without `update_access`."""
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
        """What callers use: whichever way the driver has, one answer."""
        try:
            answer = self.update_access(
                context,
                share,
                list(access_rules),
                list(add_rules),
                list(delete_rules),
                list(update_rules),
                share_server=share_server,
            )
        except NotImplementedError:
            answer = apply_with_allow_deny(
                self,
                context,
                share,
                access_rules,
                add_rules,
                delete_rules,
                update_rules,
                share_server,
            )
        return normalise_access_replies(answer)

    # Shares and snapshots that are there already

    def manage_existing(
        self, share: ShareForDriver, driver_options: Mapping[str, str]
    ) -> ManageReply:
        """Take over what lies at the share's export location.

        Raises ManageInvalidShare when that is nothing it could manage.
        """
        raise NotImplementedError

    def manage_existing_with_server(
        self,
        share: ShareForDriver,
        driver_options: Mapping[str, str],
        share_server: ShareServerMapping | None = None,
    ) -> ManageReply:
        """The same in the mode with share servers."""
        raise NotImplementedError

    def unmanage(self, share: ShareForDriver) -> None:  # noqa: B027
        """Forget a share, which stays where it is.

        Raises UnmanageInvalidShare when it cannot be let go.
        """

    def unmanage_with_server(  # noqa: B027
        self,
        share: ShareForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> None:
        """The same in the mode with share servers."""

    def manage_existing_snapshot(
        self, snapshot: SnapshotForDriver, driver_options: Mapping[str, str]
    ) -> ManageSnapshotReply:
        """Take over the snapshot at `snapshot.provider_location`.

        Raises ManageInvalidShareSnapshot when that is none of the share.
        """
        raise NotImplementedError

    def manage_existing_snapshot_with_server(
        self,
        snapshot: SnapshotForDriver,
        driver_options: Mapping[str, str],
        share_server: ShareServerMapping | None = None,
    ) -> ManageSnapshotReply:
        """The same in the mode with share servers."""
        raise NotImplementedError

    def unmanage_snapshot(  # noqa: B027
        self, snapshot: SnapshotForDriver
    ) -> None:
        """Forget a snapshot, which stays where it is.

        Raises UnmanageInvalidShareSnapshot when it cannot be let go.
        """

    def unmanage_snapshot_with_server(  # noqa: B027
        self,
        snapshot: SnapshotForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> None:
        """The same in the mode with share servers."""

    # What is really there, for those who lost track of a verb

    def get_share_status(
        self,
        share: ShareForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> StatusReply:
        """What is really there of a share.

        Raises ShareResourceNotFound when the back end has no such share.
        """
        raise NotImplementedError

    def get_snapshot_status(
        self,
        snapshot: SnapshotForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> StatusReply:
        """What is really there of a snapshot.

        Raises SnapshotResourceNotFound when there is no such snapshot.
        """
        raise NotImplementedError

    def get_share_group_status(
        self,
        share_group: Mapping[str, Any],
        share_server: ShareServerMapping | None = None,
    ) -> StatusReply:
        """What is really there of a share group."""
        raise NotImplementedError

    def get_share_group_snapshot_status(
        self,
        share_group_snapshot: Mapping[str, Any],
        share_server: ShareServerMapping | None = None,
    ) -> StatusReply:
        """What is really there of a snapshot of a share group."""
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
        """What the scheduler is told about the back end and its pools."""
        if refresh or not self._stats:
            self._update_share_stats()
        return self._stats

    def _update_share_stats(self, data: Stats | None = None) -> None:
        """Note fresh statistics; a driver adds `data` of its own."""
        stats = self._common_stats() | (data or {})
        stats['pools'] = stats['pools'] and [
            pool | self._narrowed(pool, CAPABILITIES.keys() & pool.keys())
            for pool in stats['pools']
        ]
        stats |= self._narrowed(stats, CAPABILITIES)
        self._stats = self.add_ip_version_capability(stats)

    def _narrowed(self, stats: Stats, names: Iterable[str]) -> Stats:
        """The named capabilities: nothing is offered that is not there."""
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
        """What is configured about the use of capacity, for any pool."""
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
        """The expression that says which shares the back end takes."""
        return self.configuration.safe_get(
            'filter_function'
        ) or self.get_default_filter_function(pool=pool)

    def get_goodness_function(self) -> str | None:
        """The expression that says how welcome a share is."""
        return (
            self.configuration.safe_get('goodness_function')
            or self.get_default_goodness_function()
        )

    def get_default_filter_function(
        self, pool: str | None = None
    ) -> str | None:
        """The driver's own expression, where none is configured."""
        return None

    def get_default_goodness_function(self) -> str | None:
        """The driver's own expression, where none is configured."""
        return None

    def get_configured_ip_versions(self) -> list[int]:
        """The IP versions exports have, out of 4 and 6."""
        if self.ipv6_implemented:
            raise NotImplementedError
        return [4]

    def add_ip_version_capability(self, data: Stats) -> Stats:
        """The statistics with the IP versions of exports added."""
        versions = set(self.get_configured_ip_versions())
        return data | {
            'ipv4_support': 4 in versions,
            'ipv6_support': 6 in versions,
        }
