"""Whether a back end can hold all that a share server has."""

from collections.abc import Mapping, Sequence
from typing import Any

from manila_lite.scheduler.choose import choose
from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.filters.capacity import allocation_limit
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


def rejection_reasons(
    pools: Sequence[Pool],
    needs: Sequence[Mapping[str, Any]],
    specs: Mapping[str, Mapping[str, Any]],
    filters: Sequence[Filter],
) -> list[str]:
    """Why the pools cannot hold the shares, one reason for each need.

    Every type must be allowed on some pool, and the total must fit into
    those that take any of it. How shares are spread over several pools is
    for the driver to judge. `specs` are extra specs by share type id.
    """
    reasons: list[str] = []
    rooms: dict[str, float | None] = {}
    for need in needs:
        request = _request(need, specs.get(need['share_type_id'], {}))
        choice = choose(request, pools, filters, ())
        if not choice.ranked:
            reasons.append(
                f'no pool takes shares of type {need["share_type_id"]}: '
                + ' '.join(choice.explanation().split())
            )
        for ranked in choice.ranked:
            rooms[ranked.pool.host] = _left(ranked.pool, request)
    total = sum(need['size'] for need in needs)
    if not reasons and None not in rooms.values():
        left = sum(gb for gb in rooms.values() if gb is not None)
        if left < total:
            reasons.append(
                f'{total} GiB are needed in all, and there is '
                f'room for {left:g} GiB'
            )
    return reasons


def _request(
    need: Mapping[str, Any], extra_specs: Mapping[str, Any]
) -> PlacementRequest:
    zones = extra_specs.get('availability_zones', '')
    return PlacementRequest(
        # Whether there is room is asked of all together.
        size=0,
        share_proto=need['share_proto'],
        extra_specs=extra_specs,
        availability_zones=tuple(
            zone.strip() for zone in zones.split(',') if zone.strip()
        ),
    )


def _left(pool: Pool, request: PlacementRequest) -> float | None:
    """GiB that may still be placed; None: no limit is known."""
    limit = allocation_limit(pool, request)
    return None if limit is None else max(0.0, limit - pool.allocated_gb)
