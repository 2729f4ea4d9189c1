"""Place shares by an expression of the back end."""

from collections.abc import Sequence

from manila_lite import exception
from manila_lite.scheduler import expressions
from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


class DriverFilter(Filter):
    """Require the pool's `filter_function`, if reported, to be true."""

    detail = '010'
    circumstantial = True

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        function = pool.capabilities.get('filter_function')
        if function is None:
            return None
        try:
            value = expressions.evaluate(
                str(function), expressions.names_for(pool, request)
            )
        except exception.InvalidExpression as error:
            return error.msg
        if expressions.to_bool(value):
            return None
        return f'its filter function {function!r} returns {value!r}'

    def rejection_reasons(
        self, pools: Sequence[Pool], request: PlacementRequest
    ) -> list[str | None]:
        return [
            None
            if pool.capabilities.get('filter_function') is None
            else self.rejection_reason(pool, request)
            for pool in pools
        ]
