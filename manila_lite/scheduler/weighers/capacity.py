"""Prefer pools by capacity."""

from collections.abc import Sequence
import math

from manila_lite.scheduler.filters.capacity import list_allocation_limits
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest
from manila_lite.scheduler.weighers import Weigher


class CapacityWeigher(Weigher):
    """Prefer free capacity; a negative multiplier fills pools up.

    A pool of unknown capacity comes last either way.
    """

    def weigh(self, pool: Pool, request: PlacementRequest) -> float:
        return self.scores([pool], request)[0]

    def scores(self, pools: Sequence[Pool], request: PlacementRequest) -> list[float]:
        unknown = math.inf if self.multiplier < 0 else -math.inf
        limits = list_allocation_limits(pools, request)
        return [
            unknown if limit is None else limit - pool.allocated_gb
            for pool, limit in zip(pools, limits, strict=True)
        ]
