"""Check whether a back end can hold all shares of a share server."""

from collections.abc import Mapping, Sequence
from typing import Any

from manila_lite.scheduler.choose import choose
from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.filters.capacity import allocation_limit
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest
from manila_lite.scheduler.request import required_capabilities


def rejection_reasons(
    pools: Sequence[Pool],
    needs: Sequence[Mapping[str, Any]],
    specs: Mapping[str, Mapping[str, Any]],
    filters: Sequence[Filter],
) -> list[str]:
    """Return the reasons why the pools cannot hold the shares, if any.

    Every type must be accepted by some pool, and the total size must fit
    into the pools that accept any of the types. The driver decides how to
    spread shares over pools. `specs` has the extra specs by share type id.
    """
    reasons: list[str] = []
    free_gb: dict[str, float | None] = {}
    for need in needs:
        request = _request(need, specs.get(need['share_type_id'], {}))
        choice = choose(request, pools, filters, ())
        if not choice.ranked:
            reasons.append(
                f'no pool accepts shares of type {need["share_type_id"]}: '
                + choice.explanation()
            )
        for ranked in choice.ranked:
            free_gb[ranked.pool.host] = _free_gb(ranked.pool, request)
    total = sum(need['size'] for need in needs)
    if not reasons and None not in free_gb.values():
        available = sum(gb for gb in free_gb.values() if gb is not None)
        if available < total:
            reasons.append(
                f'{total} GiB are needed, {available:g} GiB are available'
            )
    return reasons


def _request(
    need: Mapping[str, Any], extra_specs: Mapping[str, Any]
) -> PlacementRequest:
    return PlacementRequest(
        # Capacity is checked for all needs together.
        size=0,
        share_proto=need['share_proto'],
        extra_specs=required_capabilities(
            extra_specs,
            # The API service of an earlier release does not send it.
            need.get('has_qos_type', False),
        ),
        availability_zones=allowed_zones(extra_specs),
    )


def allowed_zones(extra_specs: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the zones of a share type; empty means any."""
    zones = extra_specs.get('availability_zones') or ''
    return tuple(zone.strip() for zone in zones.split(',') if zone.strip())


def _free_gb(pool: Pool, request: PlacementRequest) -> float | None:
    """Return the GiB that may still be placed; None: no known limit."""
    limit = allocation_limit(pool, request)
    return None if limit is None else max(0.0, limit - pool.allocated_gb)
