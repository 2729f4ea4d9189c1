"""Place shares by capacity, with over-subscription and reserve."""

from manila_lite.scheduler.expressions import to_number
from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.filters.extra_specs import matches
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


class CapacityFilter(Filter):
    """Require enough capacity for the requested size."""

    detail = '009'

    def rejection_reason(
        self, pool: Pool, request: PlacementRequest
    ) -> str | None:
        if not request.size:
            return None  # the share is already on the pool
        limit = allocation_limit(pool, request)
        if limit is None or pool.allocated_gb + request.size <= limit:
            return None
        return (
            f'{request.size} GiB requested, {pool.allocated_gb:g} GiB '
            f'allocated, limit {limit:g} GiB'
        )


def allocation_limit(pool: Pool, request: PlacementRequest) -> float | None:
    """Return the upper bound of `allocated_gb` for this request.

    None means no limit. A share fits if and only if `allocated_gb + size`
    is within the limit. Placing a share increments `allocated_gb` and
    `pending_gb` alike and does not change the limit, so it can guard an
    UPDATE between two reports.

    The total less the reserve, times the over-subscription ratio of thin
    shares, bounds all that we allocate. Others may use the pool as well,
    so the reported free (and, of thin pools, provisioned) capacity bounds
    what we have added since the report.
    """
    total, free = pool.total_gb, pool.free_gb
    percent = _reserved_percentage(pool, request)
    reserve = 0.0 if total is None else total * percent / 100
    ratio = _over_subscription(pool, request)
    reported = pool.allocated_gb - pool.pending_gb
    limits = []
    if total is not None:
        allocatable = (total - reserve) * ratio
        limits.append(allocatable)
        provisioned = to_number(
            pool.capabilities.get('provisioned_capacity_gb')
        )
        if ratio > 1 and provisioned is not None:
            limits.append(reported + allocatable - provisioned)
    if free is not None:
        limits.append(reported + (free - reserve) * ratio)
    return min(limits, default=None)


def _reserved_percentage(pool: Pool, request: PlacementRequest) -> float:
    """Return the reserved percentage; a specific value of 0 is unset."""
    specific = None
    if request.is_extend:
        specific = pool.capabilities.get('reserved_share_extend_percentage')
    elif request.from_snapshot:
        specific = pool.capabilities.get('reserved_snapshot_percentage')
    general = pool.capabilities.get('reserved_percentage')
    return to_number(specific) or to_number(general) or 0.0


def _over_subscription(pool: Pool, request: PlacementRequest) -> float:
    """Return the over-subscription ratio; 1 for thick shares."""
    if not matches(pool.capabilities.get('thin_provisioning'), '<is> True'):
        return 1.0
    wanted = request.spec('thin_provisioning')
    if wanted is not None and not matches(True, wanted):
        return 1.0
    ratio = to_number(pool.capabilities.get('max_over_subscription_ratio'))
    return 1.0 if ratio is None else max(1.0, ratio)
