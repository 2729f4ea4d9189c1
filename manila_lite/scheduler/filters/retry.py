"""Placement where it was not tried before."""

from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


class RetryFilter(Filter):
    """The share was not tried on this pool before."""

    detail = '013'

    def rejection_reason(
        self, pool: Pool, request: PlacementRequest
    ) -> str | None:
        if pool.host not in request.attempted:
            return None
        return 'it was tried before'


class IgnoreAttemptedHostsFilter(RetryFilter):
    """The same rule under its other published name and message."""

    detail = '011'
