"""Placement near to other shares, or away from them."""

from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


class AffinityFilter(Filter):
    """The pool holds one of the shares that the hint `same_host` names."""

    def rejection_reason(
        self, pool: Pool, request: PlacementRequest
    ) -> str | None:
        if not request.same_host or pool.host in request.same_host:
            return None
        return 'it holds none of the shares to be near to'


class AntiAffinityFilter(Filter):
    """The pool holds no share that the hint `different_host` names."""

    def rejection_reason(
        self, pool: Pool, request: PlacementRequest
    ) -> str | None:
        if pool.host not in request.different_host:
            return None
        return 'it holds a share to be away from'
