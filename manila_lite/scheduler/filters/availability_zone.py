"""Placement by availability zone."""

from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


class AvailabilityZoneFilter(Filter):
    """The pool lies in one of the zones asked for, if any were."""

    detail = '007'

    def why_not(self, pool: Pool, request: PlacementRequest) -> str | None:
        zones = request.availability_zones
        if not zones or pool.zone in zones:
            return None
        return f'it is in zone {pool.zone}, wanted {" or ".join(zones)}'
