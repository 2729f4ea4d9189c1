"""Prefer pools by an expression of their back end."""

from collections.abc import Sequence

from manila_lite import exception
from manila_lite.scheduler import expressions
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest
from manila_lite.scheduler.weighers import Weigher


class GoodnessWeigher(Weigher):
    """Evaluate the pool's `goodness_function`; 0 unless within 0..100."""

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
