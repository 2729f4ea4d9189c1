"""Weighers rank the pools that passed the filters.

`scheduler_default_weighers` names the weighers in use; they are loaded
from the entry point group `manila_lite.scheduler.weighers`.
"""

import abc
from collections.abc import Sequence
import math
from typing import ClassVar

from manila_lite import exception
from manila_lite.host import Host
from manila_lite.scheduler import expressions
from manila_lite.scheduler.filters.capacity import list_allocation_limits
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


class Weigher(abc.ABC):
    """Scores pools; its multiplier sets its weight and direction."""

    name: ClassVar[str]
    repeatable: ClassVar[bool] = False
    """As that of filters."""

    def __init_subclass__(cls) -> None:
        cls.name = cls.__name__
        cls.repeatable = cls.__dict__.get('repeatable', False)

    def __init__(self, multiplier: float = 1.0):
        self.multiplier = multiplier

    def applies(self, request: PlacementRequest) -> bool:
        """Whether pools can differ in their score for this request."""
        return True

    @abc.abstractmethod
    def weigh(self, pool: Pool, request: PlacementRequest) -> float:
        """Return the score of the pool, on any scale."""

    def scores(self, pools: Sequence[Pool], request: PlacementRequest) -> list[float]:
        """Return `weigh` of each pool; overridden where it is faster."""
        weigh = self.weigh
        return [weigh(pool, request) for pool in pools]


class CapacityWeigher(Weigher):
    """Prefer free capacity; a negative multiplier fills pools up.

    A pool of unknown capacity comes last either way.
    """

    repeatable = True

    def weigh(self, pool: Pool, request: PlacementRequest) -> float:
        return self.scores([pool], request)[0]

    def scores(self, pools: Sequence[Pool], request: PlacementRequest) -> list[float]:
        unknown = math.inf if self.multiplier < 0 else -math.inf
        limits = list_allocation_limits(pools, request)
        return [
            unknown if limit is None else limit - pool.allocated_gb
            for pool, limit in zip(pools, limits, strict=True)
        ]


class GoodnessWeigher(Weigher):
    """Evaluate the pool's `goodness_function`; 0 unless within 0..100."""

    repeatable = True

    def weigh(self, pool: Pool, request: PlacementRequest) -> float:
        function = pool.capabilities.get('goodness_function')
        if function is None:
            return 0.0
        try:
            value = expressions.to_number(
                expressions.evaluate(
                    str(function), expressions.names_for(pool, request)
                )
            )
        except exception.InvalidExpression:
            return 0.0
        return value if value is not None and 0 <= value <= 100 else 0.0

    def scores(self, pools: Sequence[Pool], request: PlacementRequest) -> list[float]:
        return [
            0.0
            if pool.capabilities.get('goodness_function') is None
            else self.weigh(pool, request)
            for pool in pools
        ]


class HostAffinityWeigher(Weigher):
    """Prefer the pool, the back end or the machine of the snapshot."""

    repeatable = True

    def applies(self, request: PlacementRequest) -> bool:
        return request.from_snapshot and request.host is not None

    def weigh(self, pool: Pool, request: PlacementRequest) -> float:
        if not request.from_snapshot or request.host is None:
            return 0.0
        if pool.host == request.host:
            return 3.0
        wanted = Host.parse(request.host)
        if pool.service_host == wanted.service_host:
            return 2.0
        machine = Host.parse(pool.host).machine
        return 1.0 if machine == wanted.machine else 0.0


class PoolWeigher(Weigher):
    """Prefer fewer share servers; a negative multiplier packs them."""

    repeatable = True

    def weigh(self, pool: Pool, request: PlacementRequest) -> float:
        servers = pool.capabilities.get('server_pools_mapping') or {}
        here = sum(
            any(found.get('pool_name') == pool.name for found in pools)
            for pools in servers.values()
        )
        return -float(here)
