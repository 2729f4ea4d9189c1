"""Allocate capacity on the best pool, and hand the work over to it."""

from collections.abc import Callable, Collection, Sequence
import dataclasses
import logging
import random
import typing

from manila_lite import exception
from manila_lite.db.queries.services import incarnations, pools as pool_rows
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.rows import InstanceRow
from manila_lite.db.session import Session
from manila_lite.host import Host
from manila_lite.messages import Detail
from manila_lite.rpc import share as share_rpc
from manila_lite.rpc.contract import work_kinds
from manila_lite.rpc.share import BINARY
from manila_lite.scheduler.choose import Choice, choose
from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.filters.capacity import allocation_limits
from manila_lite.scheduler.filters.places import ServiceUp
from manila_lite.scheduler.pool_reader import PoolReader
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest
from manila_lite.scheduler.weighers import Weigher
from manila_lite.work import table, waiting
from manila_lite.work.job import JobContext

LOG = logging.getLogger(__name__)

HANDED_OVER = {
    durable.method: durable
    for contract in (
        share_rpc.ProvisioningRpc,
        share_rpc.ManagingRpc,
        share_rpc.ReplicationRpc,
        share_rpc.ShareGroupsRpc,
        share_rpc.ShareMigrationRpc,
    )
    for durable in work_kinds(contract).values()
}

FIRST_DELAY = 1.0
"""Seconds until a request looks again for a back end that is starting."""

MAX_ROUNDS = 5
"""How often to choose again when rivals took the capacity."""

MAX_CANDIDATES = 10
"""How many pools to try of one choice, before it is too old."""


class FiltersAndWeighers(typing.NamedTuple):
    """The configured filters and weighers, in order."""

    filters: Sequence[Filter]
    weighers: Sequence[Weigher]
    extend_filters: Sequence[Filter]


@dataclasses.dataclass(eq=False)
class Allocator:
    """Chooses pools, and moves work to the share services of pools."""

    pools: PoolReader
    rules: FiltersAndWeighers
    wait_for_backends: float
    rng: random.Random | None = None

    def place(
        self,
        job: JobContext,
        request: PlacementRequest,
        filters: Sequence[Filter],
        on_allocated: Callable[..., None],
        *args: InstanceRow,
    ) -> None:
        """Allocate capacity on the best pool that still has it."""
        for attempt in range(MAX_ROUNDS):
            choice = self.choose(
                job,
                request,
                filters,
                self.rules.weighers,
                pools=self.pools.read() if attempt else None,
            )
            if choice is None:
                return
            # Pools may be a second old: the best may have changed only
            # because it reported again, and is still preferred.
            candidates = MAX_CANDIDATES if attempt else 1
            for ranked in choice.ranked[:candidates]:
                try:
                    job.hand_over(
                        self._allocate,
                        job.claim,
                        request,
                        ranked.pool,
                        on_allocated,
                        *args,
                    )
                except PoolChanged:
                    # It may just have reported: others are to see that.
                    self.pools.expire()
                    continue
                self.pools.note_allocation(ranked.pool.host, request.size)
                return
        raise exception.ServiceUnavailable(
            'Other placements took the capacity of every pool.'
        )

    def choose(
        self,
        job: JobContext,
        request: PlacementRequest,
        filters: Sequence[Filter],
        weighers: Sequence[Weigher] = (),
        pools: list[Pool] | None = None,
    ) -> Choice | None:
        """Return a choice of at least one pool; raise if there is none.

        What was read a moment ago is not enough to refuse a request. While
        a back end that may serve it is starting, the work is released and
        None returned.
        """
        if pools is None:
            pools = self.pools.recent()
        choice = self.rank(request, pools, filters, weighers)
        if not choice.ranked:
            choice = self.rank(request, self.pools.read(), filters, weighers)
        log_choice(job.resource_id, choice)
        if not choice.ranked and self._waits_for_start(job, request, choice):
            return None
        if choice.rejecting_filter == ServiceUp.name:
            # A service may be starting just now; the runner retries.
            raise exception.NoShareServiceUp(reason=choice.explanation())
        if not choice.ranked:
            raise exception.NoValidHost(
                reason=choice.explanation(),
                message_detail=Detail.of(choice.message_detail),
            )
        return choice

    def _waits_for_start(
        self, job: JobContext, request: PlacementRequest, choice: Choice
    ) -> bool:
        """Release the work while a back end is starting; whether it was.

        Raises NoValidHost when it has been waited for long enough.
        """
        starting = [
            host
            for host in job.read(
                incarnations.list_starting, BINARY, self.pools.down_time
            )
            if _may_serve(host, request)
        ]
        if not starting:
            return False
        age = job.read(waiting.seconds_since_request, job.claim)
        if age >= self.wait_for_backends:
            raise exception.NoValidHost(
                reason=f'{", ".join(starting)} did not report within '
                f'{self.wait_for_backends:g} s; {choice.explanation()}',
                message_detail=Detail.SHARE_BACKEND_NOT_READY_YET,
            )
        delay = min(max(FIRST_DELAY, age / 4), self.wait_for_backends - age)
        job.pause(delay, self._show_waiting, job.claim, starting, not request.stays)
        job.wake_after = delay
        return True

    def _show_waiting(
        self, session: Session, claim: table.Claim, starting: list[str], is_new: bool
    ) -> None:
        waiting.explain(session, claim, f'Waiting for {", ".join(starting)} to start.')
        if is_new:
            share_instances.set_progress(session, claim.resource_id, '0%')

    def rank(
        self,
        request: PlacementRequest,
        pools: Collection[Pool],
        filters: Sequence[Filter],
        weighers: Sequence[Weigher],
    ) -> Choice:
        """Return a choice of these pools, which may be none."""
        domain = _replication_domain(pools, request.host)
        return choose(
            dataclasses.replace(request, replication_domain=domain),
            pools,
            filters,
            weighers,
            self.rng,
            MAX_CANDIDATES,
        )

    def _allocate(
        self,
        session: Session,
        job: table.Claim,
        request: PlacementRequest,
        pool: Pool,
        on_allocated: Callable[..., None],
        *args: InstanceRow,
    ) -> None:
        limits = allocation_limits(pool, request)
        if not pool_rows.allocate(
            session,
            pool.host,
            request.size,
            pool.reported_at,
            down_time=self.pools.down_time,
            most_allocated=limits.allocated,
            most_pending=limits.pending,
        ):
            raise PoolChanged(host=pool.host)
        on_allocated(session, job, *args, pool)

    def hand_over(
        self,
        session: Session,
        job: table.Claim,
        method: str,
        queue: str,
        args: dict[str, typing.Any],
    ) -> None:
        table.hand_over(session, job, HANDED_OVER[method], queue, args)


class PoolChanged(exception.ManilaLiteError):
    """The pool was filled, closed or reported again since it was read."""

    message = 'Pool {host} can no longer take the share.'


def _may_serve(service_host: str, request: PlacementRequest) -> bool:
    """Whether a pool of this service may be wanted."""
    wanted = request.host if request.stays else request.only_host
    return wanted is None or Host.parse(wanted).service_host == service_host


def log_choice(resource_id: str, choice: Choice) -> None:
    level = logging.DEBUG if choice.ranked else logging.WARNING
    LOG.log(
        level,
        'Placing %s: %s',
        resource_id,
        choice.explanation() if LOG.isEnabledFor(level) else '',
    )


def _replication_domain(pools: Collection[Pool], host: str | None) -> str | None:
    """Return the replication domain of the pool's back end, if any."""
    if host is None:
        return None
    return next(
        (
            pool.capabilities.get('replication_domain')
            for pool in pools
            if pool.host == host
        ),
        None,
    )
