"""Placement by space, with over-subscription and reserve."""

from manila_lite.scheduler.expressions import to_number
from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.filters.extra_specs import matches
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


class CapacityFilter(Filter):
    """The pool has room for what is asked."""

    detail = '009'

    def rejection_reason(
        self, pool: Pool, request: PlacementRequest
    ) -> str | None:
        if not request.size:
            return None  # what it has already needs no room
        limit = allocation_limit(pool, request)
        if limit is None or pool.allocated_gb + request.size <= limit:
            return None
        return (
            f'{request.size} GiB asked, {pool.allocated_gb:g} GiB '
            f'allocated of at most {limit:g} GiB'
        )


def allocation_limit(pool: Pool, request: PlacementRequest) -> float | None:
    """How high `allocated_gb` may go for this request; None: no limit.

    A share fits exactly if `allocated_gb + size <= room`. Placing one
    moves `allocated_gb` and `pending_gb` together and leaves the room as
    it is, so between two reports it can be the guard of an UPDATE.

    What may be promised is the total less the reserve, times the
    over-subscription ratio where the share is thin. It bounds all we
    allocated. Others may use the pool too, so what its last report called
    free, and of a thin one provisioned, bounds what we added since.
    """
    total, free = pool.total_gb, pool.free_gb
    percent = _reserved_percentage(pool, request)
    reserve = 0.0 if total is None else total * percent / 100
    ratio = _over_subscription(pool, request)
    reported = pool.allocated_gb - pool.pending_gb
    limits = []
    if total is not None:
        promisable = (total - reserve) * ratio
        limits.append(promisable)
        provisioned = to_number(
            pool.capabilities.get('provisioned_capacity_gb')
        )
        if ratio > 1 and provisioned is not None:
            limits.append(reported + promisable - provisioned)
    if free is not None:
        limits.append(reported + (free - reserve) * ratio)
    return min(limits, default=None)


def _reserved_percentage(pool: Pool, request: PlacementRequest) -> float:
    """The part of the total kept free; a special one of 0 is not set."""
    special = None
    if request.is_extend:
        special = pool.capabilities.get('reserved_share_extend_percentage')
    elif request.from_snapshot:
        special = pool.capabilities.get('reserved_snapshot_percentage')
    general = pool.capabilities.get('reserved_percentage')
    return to_number(special) or to_number(general) or 0.0


def _over_subscription(pool: Pool, request: PlacementRequest) -> float:
    """How often the space may be promised: 1 where the share is thick."""
    if not matches(pool.capabilities.get('thin_provisioning'), '<is> True'):
        return 1.0
    wanted = request.spec('thin_provisioning')
    if wanted is not None and not matches(True, wanted):
        return 1.0
    ratio = to_number(pool.capabilities.get('max_over_subscription_ratio'))
    return 1.0 if ratio is None else max(1.0, ratio)
