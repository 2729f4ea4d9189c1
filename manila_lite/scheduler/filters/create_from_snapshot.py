"""Place shares that are created from a snapshot."""

from manila_lite.host import Host
from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.filters.extra_specs import mismatch_reason
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


class CreateFromSnapshotFilter(Filter):
    """Require a pool that can create a share from the source snapshot.

    Back ends of one replication domain can copy from each other.
    """

    detail = '016'

    def applies(self, request: PlacementRequest) -> bool:
        return request.from_snapshot

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        if not request.from_snapshot:
            return None
        return mismatch_reason(
            pool, 'create_share_from_snapshot_support', '<is> True'
        ) or _out_of_reach(pool, request)


def _out_of_reach(pool: Pool, request: PlacementRequest) -> str | None:
    """Return why the pool cannot reach the snapshot; None if it can."""
    if (
        request.host is None
        or pool.service_host == Host.parse(request.host).service_host
    ):
        return None
    domain = pool.capabilities.get('replication_domain')
    if domain and domain == request.replication_domain:
        return None
    return (
        f'its replication domain is {domain}, that of the snapshot '
        f'{request.replication_domain}'
    )
