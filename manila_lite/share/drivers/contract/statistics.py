"""The statistics that a driver reports, and the disk that it serves."""

from collections.abc import Callable, Iterable, Mapping, Sequence
import typing
from typing import Any, Protocol

from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.drivers.contract.interfaces import (
    CAPABILITIES,
    CreateFromSnapshotSupport,
    SnapshotSupport,
)

Holds = Callable[[str, str], bool]
"""Whether a disk has the share with an id and a name."""


class Disk(typing.NamedTuple):
    """A disk as a driver has found it.

    `pool` is null if the back end has one root for all pools. `identity` is
    a UUID that the driver has written to the disk, null if there is none
    yet. `file_system` is an id that a copy of the files does not have, null
    where none is known. `location` says to a reader where the disk is.
    """

    pool: str | None
    identity: str | None
    file_system: str | None
    location: str


class DiskRegistry(Protocol):
    """The record of the disks of all back ends.

    It is kept by the service: what is configured, or mounted somewhere, does
    not say which disk it is.
    """

    def check(self, disk: Disk, holds: Holds) -> None:
        """Raise StorageUnavailable if shares must not be served from a disk.

        It belongs to another pool or back end, or another disk to this one.
        Or none is recorded for it, and it has none of the shares that it
        ought to have.
        """

    def claim(self, disk: Disk, holds: Holds) -> None:
        """Do the same, and record the disk, which has an identity."""


class AnyDisk:
    """Accepts every disk: for drivers that no service has."""

    def check(self, disk: Disk, holds: Holds) -> None:
        pass

    def claim(self, disk: Disk, holds: Holds) -> None:
        pass


Stats = dict[str, Any]


class ShareStatistics:
    """What every driver reports of its configuration and its interfaces."""

    ipv6_implemented = False
    security_service_update_support = False
    network_allocation_update_support = False
    share_replicas_migration_support = False
    qos_type_support = False
    encryption_support: list[str] | None = None
    dhss_mandatory_security_service_association: Mapping[str, Sequence[str] | None] = {}
    """The types of security services that shares of a protocol need.

    The keys are in lower case, for example `{'cifs': ['active_directory']}`.
    """

    max_concurrent_operations = 16
    """How many operations one process runs on the back end at once, at most.

    The contract suite calls drivers from as many threads. A driver whose calls
    wait for each other states fewer, which spares threads.
    """

    configuration: Configuration
    _stats: Stats

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
            name: isinstance(self, CAPABILITIES[name]) and bool(stats.get(name, True))
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
            'security_service_update_support': (self.security_service_update_support),
            'network_allocation_update_support': (
                self.network_allocation_update_support
            ),
            'share_replicas_migration_support': (self.share_replicas_migration_support),
            'encryption_support': self.encryption_support,
            'replication_domain': self.replication_domain,
            'filter_function': self.get_filter_function(),
            'goodness_function': self.get_goodness_function(),
            'share_group_stats': {'consistent_snapshot_support': None},
        }
        if self.driver_handles_share_servers:
            stats |= {
                'max_shares_per_share_server': (self.max_shares_per_share_server),
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
            'reserved_share_extend_percentage': get('reserved_share_extend_percentage')
            or reserved,
            'max_over_subscription_ratio': get('max_over_subscription_ratio'),
        }

    def pool_stats(
        self, name: str, total_gb: float, free_gb: float, provisioned_gb: int
    ) -> Stats:
        """Return what a pool reports that may promise more than it has."""
        return self.capacity_options() | {
            'pool_name': name,
            'total_capacity_gb': round(total_gb, 2),
            'free_capacity_gb': round(free_gb, 2),
            'allocated_capacity_gb': provisioned_gb,
            'provisioned_capacity_gb': provisioned_gb,
            'thin_provisioning': True,
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

    def get_default_filter_function(self, pool: str | None = None) -> str | None:
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
        return data | {'ipv4_support': 4 in versions, 'ipv6_support': 6 in versions}
