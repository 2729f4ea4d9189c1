"""Place shares together with other shares, or apart from them."""

from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


class AffinityFilter(Filter):
    """Require a pool with one of the shares in the hint `same_host`."""

    def applies(self, request: PlacementRequest) -> bool:
        return bool(request.same_host)

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        if not request.same_host or pool.host in request.same_host:
            return None
        return 'it holds none of the shares in same_host'


class AntiAffinityFilter(Filter):
    """Require a pool without the shares in the hint `different_host`."""

    def applies(self, request: PlacementRequest) -> bool:
        return bool(request.different_host)

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        if pool.host not in request.different_host:
            return None
        return 'it holds a share in different_host'
