"""Place shares on a host named by the user."""

from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


class OnlyHostFilter(Filter):
    """Require the pool or the back end in the hint `only_host`."""

    def applies(self, request: PlacementRequest) -> bool:
        return request.only_host is not None

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        wanted = request.only_host
        if wanted is None or wanted in (pool.host, pool.service_host):
            return None
        return f'only_host is {wanted}'
