"""Prefer pools by capacity."""

import math

from manila_lite.scheduler.filters.capacity import allocation_limit
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest
from manila_lite.scheduler.weighers import Weigher


class CapacityWeigher(Weigher):
    """Prefer free capacity; a negative multiplier fills pools up.

    A pool of unknown capacity comes last either way.
    """

    def weigh(self, pool: Pool, request: PlacementRequest) -> float:
        limit = allocation_limit(pool, request)
        if limit is None:
            return math.inf if self.multiplier < 0 else -math.inf
        return limit - pool.allocated_gb
