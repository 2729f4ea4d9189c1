"""The driver contract: what a driver is given, asked and may answer.

Names, parameters and answers are those drivers of the field already have.
What the scheduler may count on is told by the interfaces a driver offers
(the `…Support` classes, inherited or simply written out in full); any
other method a driver lacks raises NotImplementedError, and the caller
knows what that means. Every method may be called twice and must end in
the same place.
"""

import abc
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from oslo_config import cfg

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.share.drivers.configuration import Configuration
from manila_lite.share.drivers.values import EnsureAnswer
from manila_lite.share.drivers.values import ExportLocation
from manila_lite.share.drivers.values import ExportLocationsAnswer
from manila_lite.share.drivers.values import NewShareAnswer
from manila_lite.share.drivers.values import ShareForDriver
from manila_lite.share.drivers.values import SnapshotAnswer
from manila_lite.share.drivers.values import SnapshotForDriver
from manila_lite.share.drivers.values import StatusAnswer
from manila_lite.share.drivers.values import export_locations

# Who deals with drivers needs this module and no other.
__all__ = [
    'CAPABILITIES', 'CreateFromSnapshotSupport', 'EnsureAnswer',
    'ExportLocation', 'ExportLocationsAnswer', 'MountSnapshotSupport',
    'NewShareAnswer', 'RevertSupport', 'ShareDriver', 'ShareForDriver',
    'ShareServer', 'SnapshotAnswer', 'SnapshotForDriver', 'SnapshotSupport',
    'Stats', 'StatusAnswer', 'export_locations',
]

Stats = dict[str, Any]
ShareServer = Mapping[str, Any]


# What a driver may offer to the scheduler

@runtime_checkable
class SnapshotSupport(Protocol):
    """Snapshots of a share."""

    @abc.abstractmethod
    def create_snapshot(self, context: RequestContext,
                        snapshot: SnapshotForDriver,
                        share_server: ShareServer | None = None,
                        ) -> SnapshotAnswer | None:
        """Take a snapshot; one that is there already stays as it is."""

    @abc.abstractmethod
    def delete_snapshot(self, context: RequestContext,
                        snapshot: SnapshotForDriver,
                        share_server: ShareServer | None = None) -> None:
        """Remove a snapshot; gone is success."""


@runtime_checkable
class CreateFromSnapshotSupport(SnapshotSupport, Protocol):
    """New shares that start as a copy of a snapshot."""

    @abc.abstractmethod
    def create_share_from_snapshot(
            self, context: RequestContext, share: ShareForDriver,
            snapshot: SnapshotForDriver,
            share_server: ShareServer | None = None,
            parent_share: ShareForDriver | None = None,
            ) -> ExportLocationsAnswer | NewShareAnswer:
        """Make a share with the content of the snapshot."""


@runtime_checkable
class RevertSupport(SnapshotSupport, Protocol):
    """A share put back, in place, to its newest snapshot."""

    @abc.abstractmethod
    def revert_to_snapshot(self, context: RequestContext,
                           snapshot: SnapshotForDriver,
                           share_access_rules: list[Mapping[str, Any]],
                           snapshot_access_rules: list[Mapping[str, Any]],
                           share_server: ShareServer | None = None,
                           ) -> int | None:
        """Put the share back; the new size in GiB, or None if as noted."""


@runtime_checkable
class MountSnapshotSupport(SnapshotSupport, Protocol):
    """Snapshots that clients can mount."""

    @abc.abstractmethod
    def snapshot_update_access(self, context: RequestContext,
                               snapshot: SnapshotForDriver,
                               access_rules: list[Mapping[str, Any]],
                               add_rules: list[Mapping[str, Any]],
                               delete_rules: list[Mapping[str, Any]],
                               share_server: ShareServer | None = None,
                               ) -> None:
        """Let exactly the given clients reach the snapshot."""


CAPABILITIES: dict[str, type] = {
    'snapshot_support': SnapshotSupport,
    'create_share_from_snapshot_support': CreateFromSnapshotSupport,
    'revert_to_snapshot_support': RevertSupport,
    'mount_snapshot_support': MountSnapshotSupport,
}


class ShareDriver(abc.ABC):
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

    def __init__(self, driver_handles_share_servers: bool | Collection[bool],
                 *args: Any, configuration: Configuration,
                 private_storage: Any = None,
                 config_opts: Iterable[Iterable[cfg.Opt]] = (),
                 **kwargs: Any):
        self.configuration = configuration
        self.private_storage = private_storage
        self.initialized = False
        self._stats: Stats = {}
        for opts in config_opts:
            configuration.append_config_values(opts)
        self._verify_share_server_handling(driver_handles_share_servers)

    def _verify_share_server_handling(
            self, driver_handles_share_servers: bool | Collection[bool],
            ) -> None:
        offered = ({driver_handles_share_servers}
                   if isinstance(driver_handles_share_servers, bool)
                   else set(driver_handles_share_servers))
        wanted = self.configuration.safe_get('driver_handles_share_servers')
        section = self.configuration.config_group
        if not isinstance(wanted, bool):
            raise exception.BadConfiguration(
                reason=f'back end "{section}": driver_handles_share_servers '
                       'must be set to true or false')
        if wanted not in offered:
            raise exception.BadConfiguration(
                reason=f'back end "{section}": {type(self).__name__} cannot '
                       f'work with driver_handles_share_servers={wanted}')

    @property
    def driver_handles_share_servers(self) -> bool:
        return self.configuration.driver_handles_share_servers

    @property
    def backend_name(self) -> str:
        """The name share types know the back end by."""
        return (self.configuration.safe_get('share_backend_name')
                or self.configuration.config_group)

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

    def ensure_shares(self, context: RequestContext,
                      shares: Iterable[ShareForDriver],
                      ) -> dict[str, EnsureAnswer] | None:
        """What has changed, by share instance id; exports made sure of.

        Without it `ensure_share` is called for each.
        """
        raise NotImplementedError

    def ensure_share(self, context: RequestContext, share: ShareForDriver,
                     share_server: ShareServer | None = None,
                     ) -> ExportLocationsAnswer:
        """The export locations of a share, or None where nothing changed."""
        return None

    def get_pool(self, share: ShareForDriver) -> str | None:
        """The pool a share lies in, if the back end has any."""
        return None

    # Shares

    @abc.abstractmethod
    def create_share(self, context: RequestContext, share: ShareForDriver,
                     share_server: ShareServer | None = None,
                     ) -> ExportLocationsAnswer:
        """Make a share and say where it is; one that is there is kept."""

    @abc.abstractmethod
    def delete_share(self, context: RequestContext, share: ShareForDriver,
                     share_server: ShareServer | None = None) -> None:
        """Remove a share; gone is success, as is ShareResourceNotFound."""

    def extend_share(self, share: ShareForDriver, new_size: int,
                     share_server: ShareServer | None = None) -> None:
        """Make a share larger; already large enough is success."""
        raise NotImplementedError

    def shrink_share(self, share: ShareForDriver, new_size: int,
                     share_server: ShareServer | None = None) -> None:
        """Make a share smaller; already small enough is success.

        Raises ShareShrinkingPossibleDataLoss, having changed nothing, when
        the content would not fit.
        """
        raise NotImplementedError

    def get_share_status(self, share: ShareForDriver,
                         share_server: ShareServer | None = None,
                         ) -> StatusAnswer:
        """What is really there, for those who lost track of a verb.

        Raises ShareResourceNotFound when the back end has no such share.
        """
        raise NotImplementedError

    def get_snapshot_status(self, snapshot: SnapshotForDriver,
                            share_server: ShareServer | None = None,
                            ) -> StatusAnswer:
        """What is really there of a snapshot; raises when nothing is."""
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
            for pool in stats['pools']]
        stats |= self._narrowed(stats, CAPABILITIES)
        self._stats = self.add_ip_version_capability(stats)

    def _narrowed(self, stats: Stats, names: Iterable[str]) -> Stats:
        """The named capabilities: nothing is offered that is not there."""
        return {name: isinstance(self, CAPABILITIES[name])
                and bool(stats.get(name, True)) for name in names}

    def _common_stats(self) -> Stats:
        stats = self.capacity_rules() | {
            'share_backend_name': self.backend_name,
            'driver_handles_share_servers':
                self.driver_handles_share_servers,
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
            'security_service_update_support':
                self.security_service_update_support,
            'network_allocation_update_support':
                self.network_allocation_update_support,
            'share_replicas_migration_support':
                self.share_replicas_migration_support,
            'encryption_support': self.encryption_support,
            'replication_domain': self.replication_domain,
            'filter_function': self.get_filter_function(),
            'goodness_function': self.get_goodness_function(),
            'share_group_stats': {'consistent_snapshot_support': None},
        }
        if self.driver_handles_share_servers:
            stats |= {
                'max_shares_per_share_server':
                    self.max_shares_per_share_server,
                'max_share_server_size': self.max_share_server_size}
        return stats

    def capacity_rules(self) -> Stats:
        """What is configured about the use of capacity, for any pool."""
        get = self.configuration.safe_get
        reserved = get('reserved_share_percentage')
        return {
            'reserved_percentage': reserved,
            'reserved_snapshot_percentage':
                get('reserved_share_from_snapshot_percentage') or reserved,
            'reserved_share_extend_percentage':
                get('reserved_share_extend_percentage') or reserved,
            'max_over_subscription_ratio': get('max_over_subscription_ratio'),
        }

    def get_filter_function(self, pool: str | None = None) -> str | None:
        """The expression that says which shares the back end takes."""
        return (self.configuration.safe_get('filter_function')
                or self.get_default_filter_function(pool=pool))

    def get_goodness_function(self) -> str | None:
        """The expression that says how welcome a share is."""
        return (self.configuration.safe_get('goodness_function')
                or self.get_default_goodness_function())

    def get_default_filter_function(self, pool: str | None = None
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
        return data | {'ipv4_support': 4 in versions,
                       'ipv6_support': 6 in versions}
