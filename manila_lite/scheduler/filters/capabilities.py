"""Placement by what pools report."""

from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.filters.extra_specs import mismatch_reason
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


class CapabilitiesFilter(Filter):
    """Every extra spec without a foreign scope is met by a capability.

    That includes `share_backend_name` and `replication_type`; the filters
    of their own are for lists of filters without this one.
    """

    detail = '008'

    def rejection_reason(
        self, pool: Pool, request: PlacementRequest
    ) -> str | None:
        if request.spec('storage_protocol') is None:
            wanted = f'<in> {request.share_proto}'
            reason = mismatch_reason(pool, 'storage_protocol', wanted)
            if reason is not None:
                return reason
        for key, wanted in request.extra_specs.items():
            reason = mismatch_reason(pool, key, wanted)
            if reason is not None:
                return reason
        return None
