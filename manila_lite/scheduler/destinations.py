"""Check whether a back end can hold all shares of a share server."""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import math
from typing import Any, NamedTuple

from manila_lite.scheduler.choose import choose
from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.filters.capacity import (
    Limits,
    allocation_limit,
    allocation_limits,
)
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest, required_capabilities


class Reservation(NamedTuple):
    """GiB to allocate on a pool within limits, as long as `reported_at` holds.

    The limits are those of `filters.capacity.Limits`.
    """

    host: str
    gb: int
    reported_at: float
    most_allocated: float | None
    most_pending: float | None


@dataclasses.dataclass
class _Room:
    """The room of a pool for one need; None means without limit."""

    pool: Pool
    gb: int | None
    limits: Limits


def rejection_reasons(
    pools: Sequence[Pool],
    needs: Sequence[Mapping[str, Any]],
    specs: Mapping[str, Mapping[str, Any]],
    filters: Sequence[Filter],
) -> list[str]:
    """Return the reasons why the pools cannot hold the shares, if any."""
    return plan(pools, needs, specs, filters)[0]


def plan(
    pools: Sequence[Pool],
    needs: Sequence[Mapping[str, Any]],
    specs: Mapping[str, Mapping[str, Any]],
    filters: Sequence[Filter],
) -> tuple[list[str], list[Reservation]]:
    """Return why the pools cannot hold the shares, or what to reserve.

    Every type must be accepted by some pool, and the total size must fit
    into the pools that accept any of the types. The driver decides how to
    spread shares over pools; the reservations are where they end up if it
    does not say. `specs` has the extra specs by share type id.
    """
    reasons: list[str] = []
    accepting: list[list[_Room]] = []
    for need in needs:
        request = _request(need, specs.get(need['share_type_id'], {}))
        choice = choose(request, pools, filters, ())
        if not choice.ranked:
            reasons.append(
                f'no pool accepts shares of type {need["share_type_id"]}: '
                + choice.explanation()
            )
        accepting.append(
            [
                _Room(
                    ranked.pool,
                    _free_gb(ranked.pool, request),
                    allocation_limits(ranked.pool, request),
                )
                for ranked in choice.ranked
            ]
        )
    if reasons:
        return list(dict.fromkeys(reasons)), []
    widest = _widest(room for rooms in accepting for room in rooms)
    total = sum(need['size'] for need in needs)
    free = [room.gb for room in widest]
    if None not in free:
        available = sum(gb for gb in free if gb is not None)
        if available < total:
            return [f'{total} GiB are needed, {available} GiB are available'], []
    return [], _reserve(needs, accepting, widest)


def _widest(rooms: Iterable[_Room]) -> list[_Room]:
    """Return the room of each pool for the type that it has most for."""
    found: dict[str, _Room] = {}
    for room in rooms:
        known = found.setdefault(room.pool.host, room)
        if _size(room) > _size(known):
            found[room.pool.host] = room
    return [found[host] for host in sorted(found)]


def _size(room: _Room) -> float:
    return math.inf if room.gb is None else room.gb


def _reserve(
    needs: Sequence[Mapping[str, Any]],
    accepting: Sequence[Sequence[_Room]],
    widest: Sequence[_Room],
) -> list[Reservation]:
    """Spread the sizes over the pools.

    Shares stay in a pool of the same name where they can, and those that
    few pools accept, or that may fill them least, come first. What is left
    over has room in total, but not in the pools that accept its type: the
    driver has to find a way.
    """
    placed: dict[str, int] = {}
    sums: dict[tuple[str, Limits], tuple[Pool, int]] = {}
    for need, rooms in sorted(
        zip(needs, accepting, strict=True),
        key=lambda item: (len(item[1]), max(map(_size, item[1]))),
    ):
        name = need.get('pool')
        preferred = sorted(rooms, key=lambda room: room.pool.name != name)
        left = need['size']
        for room in (*preferred, *widest):
            host = room.pool.host
            gb = int(min(left, max(0, _size(room) - placed.get(host, 0))))
            if not gb:
                continue
            left -= gb
            placed[host] = placed.get(host, 0) + gb
            known = sums.get((host, room.limits), (room.pool, 0))[1]
            sums[host, room.limits] = room.pool, known + gb
    return [
        Reservation(host, gb, pool.reported_at, *limits)
        # One after the other they are compared with the limits.
        for (host, limits), (pool, gb) in sorted(
            sums.items(), key=lambda item: _strictest_first(*item[0])
        )
    ]


def _strictest_first(host: str, limits: Limits) -> tuple[str, *tuple[float, ...]]:
    return (host, *(math.inf if limit is None else limit for limit in limits))


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


def _free_gb(pool: Pool, request: PlacementRequest) -> int | None:
    """Return the GiB that may still be placed; None: no known limit."""
    limit = allocation_limit(pool, request)
    if limit is None or math.isinf(limit):
        return None
    return max(0, math.floor(limit - pool.allocated_gb))
