"""Place share groups, and shares with their groups."""

from manila_lite.host import Host
from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest
from manila_lite.states.share_group import IN_POOL


class ConsistentSnapshotFilter(Filter):
    """Require the consistency of snapshots that a group demands."""

    def applies(self, request: PlacementRequest) -> bool:
        return (
            request.consistent_snapshot_support is not None
            and request.group_host is None
        )

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        stats = pool.capabilities.get('share_group_stats') or {}
        found = stats.get('consistent_snapshot_support')
        if found == request.consistent_snapshot_support:
            return None
        return (
            f'its consistent_snapshot_support is {found}, the share group '
            f'needs {request.consistent_snapshot_support}'
        )


class ShareGroupFilter(Filter):
    """Require the back end of the group of a share.

    If its snapshots are consistent within a pool, all its shares are in the
    same pool.
    """

    def applies(self, request: PlacementRequest) -> bool:
        return request.group_host is not None

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        wanted = request.group_host
        if wanted is None or pool.host == wanted:
            return None
        if (
            request.consistent_snapshot_support != IN_POOL
            and pool.service_host == Host.parse(wanted).service_host
        ):
            return None
        return f'the share group is on {wanted}'
