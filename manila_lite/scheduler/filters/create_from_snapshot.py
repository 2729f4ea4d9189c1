"""Placement of a share made from a snapshot."""

from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.filters.extra_specs import mismatch_reason
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


class CreateFromSnapshotFilter(Filter):
    """The pool can make a share from the snapshot, if that is asked.

    Back ends can copy from each other if they replicate within one domain.
    """

    detail = '016'

    def rejection_reason(
        self, pool: Pool, request: PlacementRequest
    ) -> str | None:
        if not request.from_snapshot:
            return None
        return mismatch_reason(
            pool, 'create_share_from_snapshot_support', '<is> True'
        ) or _why_too_far(pool, request)


def _why_too_far(pool: Pool, request: PlacementRequest) -> str | None:
    """Why the pool cannot reach the snapshot; None if it can."""
    if (
        request.host is None
        or pool.service_host == request.host.partition('#')[0]
    ):
        return None
    domain = pool.capabilities.get('replication_domain')
    if domain and domain == request.replication_domain:
        return None
    return (
        f'its replication domain is {domain}, that of the snapshot '
        f'{request.replication_domain}'
    )
