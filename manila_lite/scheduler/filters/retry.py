"""Place shares on pools where they have not been tried."""

from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


class RetryFilter(Filter):
    """Reject pools on which this share has been tried before."""

    detail = '013'
    circumstantial = True

    def applies(self, request: PlacementRequest) -> bool:
        return bool(request.attempted)

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        if pool.host not in request.attempted:
            return None
        return 'it was tried before'


class IgnoreAttemptedHostsFilter(RetryFilter):
    """The same filter under its other published name and message."""

    detail = '011'
    circumstantial = True
