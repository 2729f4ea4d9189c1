"""Preference by the share servers a pool already has."""

from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest
from manila_lite.scheduler.weighers import Weigher


class PoolWeigher(Weigher):
    """Fewer share servers are better; a negative multiplier packs them."""

    def weigh(self, pool: Pool, request: PlacementRequest) -> float:
        servers = pool.capabilities.get('server_pools_mapping') or {}
        here = sum(
            any(found.get('pool_name') == pool.name for found in pools)
            for pools in servers.values()
        )
        return -float(here)
