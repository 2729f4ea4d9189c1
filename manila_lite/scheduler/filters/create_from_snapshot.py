"""Placement of a share made from a snapshot."""

from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.filters.extra_specs import why_unmet
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


class CreateFromSnapshotFilter(Filter):
    """The pool can make a share from a snapshot, if that is asked."""

    detail = '016'

    def why_not(self, pool: Pool, request: PlacementRequest) -> str | None:
        if not request.from_snapshot:
            return None
        return why_unmet(pool, 'create_share_from_snapshot_support',
                         '<is> True')
