"""Placement by the kind of replication."""

from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.filters.extra_specs import why_unmet
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


class ShareReplicationFilter(Filter):
    """The pool replicates in the way that the extra spec asks for."""

    detail = '014'

    def why_not(self, pool: Pool, request: PlacementRequest) -> str | None:
        wanted = request.spec('replication_type')
        if wanted is None:
            return None
        return why_unmet(pool, 'replication_type', wanted)
