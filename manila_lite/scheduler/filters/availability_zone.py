"""Place shares by availability zone, and by the subnets in it."""

from collections.abc import Mapping

from manila_lite.scheduler.expressions import to_bool
from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest

MULTIPLE_SUBNET_SUPPORT = 'share_server_multiple_subnet_support'


class AvailabilityZoneFilter(Filter):
    """Require one of the requested zones, if any.

    A share network needs a subnet in the zone of the pool. Where it has
    several, the back end must support servers with multiple subnets.
    """

    detail = '007'
    circumstantial = True

    def applies(self, request: PlacementRequest) -> bool:
        return bool(request.availability_zones) or request.subnets is not None

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        zones = request.availability_zones
        if zones and pool.zone not in zones:
            return f'it is in zone {pool.zone}, wanted {" or ".join(zones)}'
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
