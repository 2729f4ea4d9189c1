"""Place shares by capacity, with over-subscription and reserve."""

from collections.abc import Sequence
from typing import NamedTuple

from manila_lite.scheduler.expressions import to_number
from manila_lite.scheduler.filters import Filter, Reason
from manila_lite.scheduler.filters.capabilities import matches
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


class CapacityFilter(Filter):
    """Require enough capacity for the requested size."""

    detail = '009'
    circumstantial = True
    repeatable = True

    def applies(self, request: PlacementRequest) -> bool:
        return request.size != 0

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        if not request.size:
            return None  # the share is already on the pool
        limit = allocation_limit(pool, request)
        if limit is None or pool.allocated_gb + request.size <= limit:
            return None
        return Reason(
            f'{request.size} GiB requested, {pool.allocated_gb:g} GiB '
            f'allocated, limit {limit:g} GiB',
            f'{request.size} GiB requested, less may be allocated',
        )

    def rejection_reasons(
        self, pools: Sequence[Pool], request: PlacementRequest
    ) -> list[str | None]:
        limits = list_allocation_limits(pools, request)
        return [
            None
            if limit is None or pool.allocated_gb + request.size <= limit
            else self.rejection_reason(pool, request)
            for pool, limit in zip(pools, limits, strict=True)
        ]


class Limits(NamedTuple):
    """Upper bounds of what we allocate on a pool; None is no limit.

    `allocated` bounds all that we allocate, `pending` what we have added
    since the report. Both depend on the report and the request only, so
    they can guard an UPDATE until the next report.
    """

    allocated: float | None
    pending: float | None


def allocation_limits(pool: Pool, request: PlacementRequest) -> Limits:
    """Return the limits of a pool for this request.

    The total less the reserve, times the over-subscription ratio of thin
    shares, bounds all that we allocate. Others may use the pool as well,
    so the reported free (and, of thin pools, provisioned) capacity bounds
    what we have added since the report.
    """
    return pool.capabilities.cached(request.capacity_demand, _limits, pool, request)


def _limits(pool: Pool, request: PlacementRequest) -> Limits:
    total, free = pool.total_gb, pool.free_gb
    percent = _reserved_percentage(pool, request)
    reserve = 0.0 if total is None else total * percent / 100
    is_thin = _is_thin(pool, request)
    ratio = _over_subscription(pool) if is_thin else 1.0
    allocated = None
    pending = []
    if total is not None:
        allocated = (total - reserve) * ratio
        provisioned = to_number(pool.capabilities.get('provisioned_capacity_gb'))
        if is_thin and provisioned is not None:
            pending.append(allocated - provisioned)
    if free is not None:
        pending.append((free - reserve) * ratio)
    return Limits(allocated, min(pending, default=None))


def allocation_limit(pool: Pool, request: PlacementRequest) -> float | None:
    """Return the upper bound of `allocated_gb` for this request.

    None means no limit. A share fits if and only if `allocated_gb + size`
    is within the limit.
    """
    return list_allocation_limits([pool], request)[0]


def list_allocation_limits(
    pools: Sequence[Pool], request: PlacementRequest
) -> list[float | None]:
    """Return the `allocation_limit` of each pool."""
    key = request.capacity_demand
    limits = []
    for pool in pools:
        limit, pending = pool.capabilities.cached(key, _limits, pool, request)
        if pending is not None:
            by_pending = pool.allocated_gb - pool.pending_gb + pending
            if limit is None or by_pending < limit:
                limit = by_pending
        limits.append(limit)
    return limits


def _reserved_percentage(pool: Pool, request: PlacementRequest) -> float:
    """Return the reserved percentage; a specific value of 0 is unset."""
    specific = None
    if request.is_extend:
        specific = pool.capabilities.get('reserved_share_extend_percentage')
    elif request.from_snapshot:
        specific = pool.capabilities.get('reserved_snapshot_percentage')
    general = pool.capabilities.get('reserved_percentage')
    return to_number(specific) or to_number(general) or 0.0


def _is_thin(pool: Pool, request: PlacementRequest) -> bool:
    """Return whether the share would be a thin one."""
    if not matches(pool.capabilities.get('thin_provisioning'), '<is> True'):
        return False
    wanted = request.spec('thin_provisioning')
    return wanted is None or matches(True, wanted)


def _over_subscription(pool: Pool) -> float:
    ratio = to_number(pool.capabilities.get('max_over_subscription_ratio'))
    return 1.0 if ratio is None else max(1.0, ratio)
