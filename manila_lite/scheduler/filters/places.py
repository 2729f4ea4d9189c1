"""Filters by the location of a pool and the state of its service."""

from collections.abc import Iterable, Mapping, Sequence
import datetime

from manila_lite.host import Host
from manila_lite.scheduler.expressions import to_bool
from manila_lite.scheduler.filters import Filter, Reason
from manila_lite.scheduler.filters.capabilities import DriverFilter
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest
from manila_lite.states.share_group import IN_POOL


class ServiceUp(Filter):
    """Require the service of the pool; always applied, and first."""

    circumstantial = True
    repeatable = True

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        if not pool.service_up:
            return _why_down(pool)
        if not pool.service_enabled:
            return 'its service is disabled'
        return None

    def rejection_reasons(
        self, pools: Sequence[Pool], request: PlacementRequest
    ) -> list[str | None]:
        return [
            None
            if pool.service_up and pool.service_enabled
            else self.rejection_reason(pool, request)
            for pool in pools
        ]


def _why_down(pool: Pool) -> str:
    if pool.service_health is not None:
        return Reason(
            f'its back end is down: {pool.service_health.rstrip(".")}',
            'its back end is down',
        )
    if pool.service_heartbeat_at is None:
        return 'its service is down'
    seen = datetime.datetime.fromtimestamp(pool.service_heartbeat_at, datetime.UTC)
    return Reason(
        f'its service is down since {seen:%Y-%m-%d %H:%M} UTC', 'its service is down'
    )


MULTIPLE_SUBNET_SUPPORT = 'share_server_multiple_subnet_support'


class AvailabilityZoneFilter(Filter):
    """Require one of the requested zones, if any.

    A share network needs a subnet in the zone of the pool. Where it has
    several, the back end must support servers with multiple subnets.
    """

    detail = '007'
    circumstantial = True
    repeatable = True

    def applies(self, request: PlacementRequest) -> bool:
        return bool(request.availability_zones) or request.subnets is not None

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        zones = request.availability_zones
        if zones and pool.zone not in zones:
            wanted = f'wanted {" or ".join(zones)}'
            return Reason(
                f'it is in zone {pool.zone}, {wanted}', f'its zone differs, {wanted}'
            )
        if request.subnets is None:
            return None
        return _network_mismatch(pool, request.subnets)


def _network_mismatch(pool: Pool, subnets: Mapping[str | None, int]) -> str | None:
    """Return why the pool cannot serve the network; None if it can."""
    number = subnets.get(pool.zone) or subnets.get(None, 0)
    if not number:
        return f'the share network has no subnet for zone {pool.zone}'
    if number > 1 and not to_bool(pool.capabilities.get(MULTIPLE_SUBNET_SUPPORT)):
        return (
            f'the share network has {number} subnets for zone '
            f'{pool.zone}, and it does not report {MULTIPLE_SUBNET_SUPPORT}'
        )
    return None


class OnlyHostFilter(Filter):
    """Require the pool or the back end in the hint `only_host`."""

    repeatable = True

    def applies(self, request: PlacementRequest) -> bool:
        return request.only_host is not None

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        wanted = request.only_host
        if wanted is None or wanted in (pool.host, pool.service_host):
            return None
        return f'only_host is {wanted}'


class AffinityFilter(Filter):
    """Require a pool with one of the shares in the hint `same_host`."""

    repeatable = True

    def applies(self, request: PlacementRequest) -> bool:
        return bool(request.same_host)

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        if not request.same_host or pool.host in request.same_host:
            return None
        return 'it holds none of the shares in same_host'


class AntiAffinityFilter(Filter):
    """Require a pool without the shares in the hint `different_host`."""

    repeatable = True

    def applies(self, request: PlacementRequest) -> bool:
        return bool(request.different_host)

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        if pool.host not in request.different_host:
            return None
        return 'it holds a share in different_host'


class RetryFilter(Filter):
    """Reject pools on which this share has been tried before."""

    detail = '013'
    circumstantial = True
    repeatable = True

    def applies(self, request: PlacementRequest) -> bool:
        return bool(request.attempted)

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        if pool.host not in request.attempted:
            return None
        return 'it was tried before'


class IgnoreAttemptedHostsFilter(RetryFilter):
    """The same filter under its other published name and message."""

    detail = '011'
    circumstantial = True


class ConsistentSnapshotFilter(Filter):
    """Require the consistency of snapshots that a group demands."""

    def applies(self, request: PlacementRequest) -> bool:
        return (
            request.consistent_snapshot_support is not None
            and request.group_host is None
        )

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        stats = pool.capabilities.get('share_group_stats') or {}
        found = stats.get('consistent_snapshot_support')
        if found == request.consistent_snapshot_support:
            return None
        return (
            f'its consistent_snapshot_support is {found}, the share group '
            f'needs {request.consistent_snapshot_support}'
        )


class ShareGroupFilter(Filter):
    """Require the back end of the group of a share.

    If its snapshots are consistent within a pool, all its shares are in the
    same pool.
    """

    def applies(self, request: PlacementRequest) -> bool:
        return request.group_host is not None

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        wanted = request.group_host
        if wanted is None or pool.host == wanted:
            return None
        if (
            request.consistent_snapshot_support != IN_POOL
            and pool.service_host == Host.parse(wanted).service_host
        ):
            return None
        return f'the share group is on {wanted}'


class _ForRequest(Filter):
    """A filter that judges pools by another request."""

    def __init__(self, rule: Filter, request: PlacementRequest):
        self.rule = rule
        self.request = request
        self.name = rule.name  # type: ignore[misc]
        self.detail = rule.detail  # type: ignore[misc]

    def applies(self, request: PlacementRequest) -> bool:
        return self.rule.applies(self.request)

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        return self.rule.rejection_reason(pool, self.request)

    def rejection_reasons(
        self, pools: Sequence[Pool], request: PlacementRequest
    ) -> list[str | None]:
        return self.rule.rejection_reasons(pools, self.request)


def for_all(
    filters: Sequence[Filter], requests: Iterable[PlacementRequest]
) -> list[Filter]:
    """Return the filters for pools that are right for all requests.

    The function that a driver judges shares by is left out: it may ask for
    what only a share has. It judges each share of the group later.
    """
    return [
        *(
            _ForRequest(rule, request)
            for request in requests
            for rule in filters
            if not isinstance(rule, DriverFilter)
        ),
        ConsistentSnapshotFilter(),
    ]
