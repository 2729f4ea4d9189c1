"""Place shares by the name of the back end."""

from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.filters.extra_specs import mismatch_reason
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


class ShareBackendNameFilter(Filter):
    """Require the back end name in the extra spec `share_backend_name`."""

    detail = '008'

    def applies(self, request: PlacementRequest) -> bool:
        return request.spec('share_backend_name') is not None

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        wanted = request.spec('share_backend_name')
        if wanted is None:
            return None
        return mismatch_reason(pool, 'share_backend_name', wanted)
