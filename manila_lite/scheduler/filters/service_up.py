"""The base condition: somebody is there to do the work."""

from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


class ServiceUp(Filter):
    """The pool's service lives and is enabled; always asked, and first."""

    def rejection_reason(
        self, pool: Pool, request: PlacementRequest
    ) -> str | None:
        if not pool.service_up:
            return 'its service is down'
        if not pool.service_enabled:
            return 'its service is disabled'
        return None
