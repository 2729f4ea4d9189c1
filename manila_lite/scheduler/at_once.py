"""Place shares and their growth without a claim, several in one transaction.

A claim keeps others from the work while its effects go on. Those of a placement
are in one transaction, whose guards see whether the work is still new and the
instance without a host, so that it needs none. What depends on more than the
share and its type is left to the claim and to `manager`: shares on networks, in
groups, from snapshots, with affinity, and those that a pool has refused. So is
what no pool can hold.
"""

from collections.abc import Collection, Mapping, Sequence
import itertools
import operator
import typing

import orjson

from manila_lite import exception, metrics
from manila_lite.context import RequestContext, logged_as
from manila_lite.db.queries.services import pools as pool_rows
from manila_lite.db.queries.shares import placements
from manila_lite.db.queries.shares.placements import Place, Placement
from manila_lite.db.session import Database, Session
from manila_lite.rpc.contract import work_kinds
from manila_lite.rpc.scheduler import PlacementRpc
from manila_lite.scheduler.allocation import (
    HANDED_OVER,
    MAX_CANDIDATES,
    PoolChanged,
    log_choice,
)
from manila_lite.scheduler.filters.capacity import allocation_limits
from manila_lite.scheduler.manager import PlacementEndpoint, expression_values
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.rankings import Rankings
from manila_lite.scheduler.request import PlacementRequest, required_capabilities
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.work import table

_KINDS = work_kinds(PlacementRpc)
_CREATE, _EXTEND = (
    next(one for one in _KINDS.values() if one.method == method)
    for method in ('create_share_instance', 'extend_share_instance')
)


class Chosen(typing.NamedTuple):
    """A pool for an instance or its growth, and the arguments of the work there."""

    pool: Pool
    kind: str
    needs_release: int | None
    work_id: str
    instance_id: str
    request: PlacementRequest
    args: Mapping[str, typing.Any]


_BY_POOL = operator.attrgetter('pool.host')


def _by_method(one: Chosen) -> tuple[str, int]:
    return one.kind, one.needs_release or 0


class AlreadyTaken(exception.ManilaLiteError):
    """Other work, or another process, was faster."""

    message = 'Some of the shares are placed, claimed or deleted.'


class AtOnce:
    """Places the shares that hints tell of."""

    def __init__(self, db: Database, placement: PlacementEndpoint, release: int):
        self.db = db
        self.placement = placement
        self.release = release
        rules = placement.rules
        self._rankings = Rankings(
            rules.filters, rules.weighers, placement.allocator.rng, MAX_CANDIDATES
        )

    def place(self, work_ids: list[str]) -> Collection[str]:
        """Place what is plain, or nothing; return the ids of the work."""
        found = self.db.read(
            placements.list_placements, work_ids, (_CREATE.kind, _EXTEND.kind)
        )
        chosen = self._choose(found)
        if not chosen:
            return ()
        pools = self.placement.pools
        try:
            self.db.write(self._place, chosen, fsync=False)
        except (PoolChanged, AlreadyTaken):
            pools.expire()
            return ()
        for one in chosen:
            pools.note_allocation(one.pool.host, one.request.size)
            metrics.CLAIMS.increment(one.kind)
        return {one.work_id for one in chosen}

    def _choose(self, found: Sequence[Placement]) -> list[Chosen]:
        """Return the best pool of each instance, as if they came one by one."""
        wanted = [
            (one, args, request)
            for one in found
            for args in [_KINDS[one.row.kind].defaults | orjson.loads(one.row.args)]
            for request in [_request(one, args)]
            if request is not None
        ]
        if not wanted:
            return []
        pools = {pool.host: pool for pool in self.placement.pools.recent()}
        chosen = []
        for one, args, request in wanted:
            pool = self._best(one, request, pools.values())
            if pool is not None:
                pools[pool.host] = pool.with_allocation(request.size)
                chosen.append(self._chosen(one, args, request, pool))
        return chosen

    def _best(
        self, one: Placement, request: PlacementRequest, pools: Collection[Pool]
    ) -> Pool | None:
        rules = self.placement.rules
        choice = self._rankings.choose(request, pools)
        if choice is None:
            choice = self.placement.allocator.rank(
                request,
                pools,
                rules.extend_filters if request.is_extend else rules.filters,
                rules.weighers,
            )
        if not choice.ranked:
            return None
        with logged_as(_context(one)):
            log_choice(one.row.id, choice)
        return choice.ranked[0].pool

    def _chosen(
        self,
        one: Placement,
        args: dict[str, typing.Any],
        request: PlacementRequest,
        pool: Pool,
    ) -> Chosen:
        durable = HANDED_OVER[_KINDS[one.row.kind].method]
        given = durable.complete(
            args | {'host': pool.host}
            if request.is_extend
            else {
                'instance_id': one.row.id,
                'placement': self.placement.next_placement(args, pool),
            }
        )
        return Chosen(
            pool,
            one.row.kind,
            durable.needed_release(given),
            one.row.work_id,
            one.row.id,
            request,
            given,
        )

    def _place(self, session: Session, chosen: Sequence[Chosen]) -> None:
        if not pool_rows.allocate_all(
            session,
            [
                _allocation(list(group))
                for _, group in itertools.groupby(
                    sorted(chosen, key=_BY_POOL), _BY_POOL
                )
            ],
            down_time=self.placement.pools.down_time,
        ):
            raise PoolChanged(
                host=' or '.join(sorted({_BY_POOL(one) for one in chosen}))
            )
        new = {
            one.instance_id: Place(one.pool.host, one.pool.zone)
            for one in chosen
            if not one.request.is_extend
        }
        if new and not placements.assign_hosts(session, new):
            raise AlreadyTaken
        for (kind, _), works in itertools.groupby(
            sorted(chosen, key=_by_method), _by_method
        ):
            if not table.hand_over_new(
                session,
                {one.work_id: (one.pool.service_host, one.args) for one in works},
                kind,
                HANDED_OVER[_KINDS[kind].method],
                release=self.release,
            ):
                raise AlreadyTaken


def _allocation(group: Sequence[Chosen]) -> pool_rows.Allocation:
    """Return what these shares need of the pool that they have in common."""
    pool = group[0].pool
    limits = [allocation_limits(pool, one.request) for one in group]
    return pool_rows.Allocation(
        pool.host,
        sum(one.request.size for one in group),
        pool.reported_at,
        most_allocated=_least(one.allocated for one in limits),
        most_pending=_least(one.pending for one in limits),
    )


def _request(one: Placement, args: Mapping[str, typing.Any]) -> PlacementRequest | None:
    """Return the request to place; None if it is not a plain one, or stale."""
    row = one.row
    specs = required_capabilities(
        one.extra_specs, has_qos_type=row.qos_type_id is not None
    )
    common: dict[str, typing.Any] = {
        'share_proto': row.share_proto,
        'extra_specs': specs,
        'share': expression_values(row),
    }
    if row.kind == _EXTEND.kind:
        if row.status != InstanceStatus.EXTENDING or args.keys() != set(_EXTEND.args):
            return None
        return PlacementRequest(
            size=args['growth'], is_extend=True, host=row.host, **common
        )
    given = _CREATE.without_defaults(args)
    depends_on_more = (
        row.share_type_id is None
        or row.share_network_id is not None
        or row.share_group_id is not None
        or given.keys() != {'instance_id', 'zones', 'hints'}
        or given['hints'].keys() - {'only_host'}
    )
    is_stale = row.status != InstanceStatus.CREATING or row.host is not None
    if depends_on_more or is_stale:
        return None
    return PlacementRequest(
        size=row.size,
        availability_zones=tuple(args['zones']),
        only_host=args['hints'].get('only_host'),
        **common,
    )


def _context(one: Placement) -> RequestContext:
    found = orjson.loads(one.row.context)
    return RequestContext(
        request_id=found.get('request_id'),
        user_id=found.get('user_id'),
        project_id=found.get('project_id'),
    )


def _least(limits: typing.Iterable[float | None]) -> float | None:
    return min((one for one in limits if one is not None), default=None)
