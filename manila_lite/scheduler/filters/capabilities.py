"""Place shares by the capabilities of pools."""

from collections.abc import Sequence

from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.filters.extra_specs import mismatch_reason
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


class CapabilitiesFilter(Filter):
    """Require a matching capability for every extra spec.

    Extra specs of other scopes are ignored. `share_backend_name` and
    `replication_type` are included; their own filters are for filter
    lists without this one.
    """

    detail = '008'

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        return pool.capabilities.cached(request.demand, _mismatch, pool, request)

    def rejection_reasons(
        self, pools: Sequence[Pool], request: PlacementRequest
    ) -> list[str | None]:
        key = request.demand
        return [
            pool.capabilities.cached(key, _mismatch, pool, request) for pool in pools
        ]


def _mismatch(pool: Pool, request: PlacementRequest) -> str | None:
    """Return the first extra spec that the pool does not match."""
    # A share group has no protocol of its own.
    if request.share_proto and request.spec('storage_protocol') is None:
        wanted = f'<in> {request.share_proto}'
        reason = mismatch_reason(pool, 'storage_protocol', wanted)
        if reason is not None:
            return reason
    for key, wanted in request.extra_specs.items():
        reason = mismatch_reason(pool, key, wanted)
        if reason is not None:
            return reason
    return None
