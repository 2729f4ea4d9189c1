"""Prefer pools by the number of their share servers."""

from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest
from manila_lite.scheduler.weighers import Weigher


class PoolWeigher(Weigher):
    """Prefer fewer share servers; a negative multiplier packs them."""

    def weigh(self, pool: Pool, request: PlacementRequest) -> float:
        servers = pool.capabilities.get('server_pools_mapping') or {}
        here = sum(
            any(found.get('pool_name') == pool.name for found in pools)
            for pools in servers.values()
        )
        return -float(here)
