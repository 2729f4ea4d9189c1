"""Place share instances: choose a pool, allocate capacity, hand over."""

import collections
from collections.abc import Callable, Sequence
import logging
import random
import typing

import orjson

from manila_lite import exception
from manila_lite.db.moves import replicas as replica_moves
from manila_lite.db.queries.admin import pools as pool_rows
from manila_lite.db.queries.admin import services
from manila_lite.db.queries.networks import subnets as subnet_rows
from manila_lite.db.queries.replicas import replicas as replica_rows
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.queries.types import types as share_types
from manila_lite.db.rows import InstanceRow
from manila_lite.db.rows import PoolRow
from manila_lite.db.session import Database
from manila_lite.db.session import Session
from manila_lite.messages import Detail
from manila_lite.rpc import share as share_rpc
from manila_lite.rpc.contract import implements
from manila_lite.rpc.contract import work_kinds
from manila_lite.rpc.scheduler import PlacementRpc
from manila_lite.scheduler.choose import Choice
from manila_lite.scheduler.choose import choose
from manila_lite.scheduler.destinations import rejection_reasons
from manila_lite.scheduler.filters.capacity import allocation_limit
from manila_lite.scheduler.filters.service_up import ServiceUp
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.work import table

LOG = logging.getLogger(__name__)

_HANDED_OVER = {
    durable.method: durable
    for contract in (
        share_rpc.ProvisioningRpc,
        share_rpc.ManagingRpc,
        share_rpc.ReplicationRpc,
    )
    for durable in work_kinds(contract).values()
}

MAX_ROUNDS = 5
"""How often to choose again when rivals took the capacity."""


class FiltersAndWeighers(typing.NamedTuple):
    """The configured filters and weighers, in order."""

    filters: Sequence[typing.Any]
    weighers: Sequence[typing.Any]
    extend_filters: Sequence[typing.Any]


@implements(PlacementRpc)
class PlacementEndpoint:
    """Places share instances from database rows; keeps no state."""

    def __init__(
        self,
        db: Database,
        rules: FiltersAndWeighers,
        *,
        down_time: float,
        rng: random.Random | None = None,
    ):
        self.db = db
        self.rules = rules
        self.down_time = down_time
        self.rng = rng

    def prepare_create_share_instance(
        self, session: Session, job: typing.Any
    ) -> typing.Any:
        instance = share_instances.get(session, job.resource_id)
        if (
            instance.status != InstanceStatus.CREATING
            or instance.host is not None
        ):
            raise exception.InvalidStatus(
                resource='share instance',
                id=instance.id,
                status=instance.status,
                event='place',
                allowed=f'{InstanceStatus.CREATING}, without a host',
            )
        return (
            instance,
            share_types.get_extra_specs(session, instance.share_type_id),
            self._affinity_hosts(session, job.args['hints']),
            self._subnets(session, instance.share_network_id),
            self._pools(session),
        )

    def create_share_instance(
        self,
        job: typing.Any,
        instance_id: str,
        zones: list[str],
        hints: dict[str, typing.Any],
        snapshot_id: str | None = None,
        source_host: str | None = None,
    ) -> None:
        instance, specs, affinity_hosts, subnets, pools = job.prepared
        if instance.share_type_id is None:
            raise exception.NoValidHost(
                reason='no share type was named and there is no default',
                message_detail=Detail.NO_DEFAULT_SHARE_TYPE,
            )
        request = PlacementRequest(
            size=instance.size,
            share_proto=instance.share_proto,
            extra_specs=specs,
            availability_zones=tuple(zones),
            subnets=subnets,
            same_host=affinity_hosts['same_host'],
            different_host=affinity_hosts['different_host'],
            only_host=hints.get('only_host'),
            share=_expression_values(instance),
            from_snapshot=snapshot_id is not None,
            host=source_host,
            replication_domain=_replication_domain(pools, source_host),
        )
        self._place(
            job,
            request,
            self.rules.filters,
            pools,
            self._hand_over_create,
            instance,
        )

    def _hand_over_create(
        self,
        session: Session,
        job: typing.Any,
        instance: InstanceRow,
        pool: Pool,
    ) -> None:
        share_instances.assign_host(session, instance.id, pool.host, pool.zone)
        args = {'instance_id': instance.id}
        method = 'create_share_instance'
        if job.args['snapshot_id'] is not None:
            method = 'create_share_from_snapshot'
            args['snapshot_id'] = job.args['snapshot_id']
        self._hand_over(session, job, method, pool.service_host, args)

    def prepare_create_share_replica(
        self, session: Session, job: typing.Any
    ) -> typing.Any:
        prepared = self.prepare_create_share_instance(session, job)
        hosts = replica_rows.get_hosts(session, prepared[0].share_id)
        return (*prepared, hosts)

    def create_share_replica(
        self,
        job: typing.Any,
        instance_id: str,
        zones: list[str],
        hints: dict[str, typing.Any],
    ) -> None:
        """Place a replica on a pool that can replicate the active one."""
        instance, specs, _, subnets, pools, (active, hosts) = job.prepared
        if active is None:
            raise exception.NoValidHost(
                reason='the share has no active replica',
                message_detail=Detail.NO_ACTIVE_REPLICA,
            )
        request = PlacementRequest(
            size=instance.size,
            share_proto=instance.share_proto,
            extra_specs=specs,
            availability_zones=tuple(zones),
            subnets=subnets,
            only_host=hints.get('only_host'),
            share=_expression_values(instance),
            host=active,
            replica_hosts=hosts,
            replication_domain=_replication_domain(pools, active),
        )
        self._place(
            job,
            request,
            self.rules.filters,
            pools,
            self._hand_over_replica,
            instance,
        )

    def _hand_over_replica(
        self,
        session: Session,
        job: typing.Any,
        instance: InstanceRow,
        pool: Pool,
    ) -> None:
        if pool.host in replica_rows.get_hosts(session, instance.share_id)[1]:
            raise CapacityTaken(host=pool.host)  # by another replica
        share_instances.assign_host(session, instance.id, pool.host, pool.zone)
        self._hand_over(
            session,
            job,
            'create_share_replica',
            pool.service_host,
            {'instance_id': instance.id},
        )

    def failed_create_share_replica(
        self, session: Session, job: typing.Any, error: Exception
    ) -> bool:
        replica_moves.mark_unplaced_failed(session, job.resource_id)
        return False

    def prepare_extend_share_instance(
        self, session: Session, job: typing.Any
    ) -> typing.Any:
        instance = share_instances.get(session, job.resource_id)
        if instance.status != InstanceStatus.EXTENDING:
            raise exception.InvalidStatus(
                resource='share instance',
                id=instance.id,
                status=instance.status,
                event='place',
                allowed=InstanceStatus.EXTENDING,
            )
        return (
            instance,
            share_types.get_extra_specs(session, instance.share_type_id),
            self._pools(session),
        )

    def extend_share_instance(
        self, job: typing.Any, instance_id: str, new_size: int, growth: int
    ) -> None:
        instance, specs, pools = job.prepared
        request = PlacementRequest(
            size=growth,
            share_proto=instance.share_proto,
            extra_specs=specs,
            share=_expression_values(instance),
            is_extend=True,
            host=instance.host,
        )
        self._place(
            job,
            request,
            self.rules.extend_filters,
            pools,
            self._hand_over_extend,
            instance,
        )

    def _hand_over_extend(
        self,
        session: Session,
        job: typing.Any,
        instance: InstanceRow,
        pool: Pool,
    ) -> None:
        self._hand_over(
            session,
            job,
            'extend_share_instance',
            pool.service_host,
            job.args | {'host': pool.host},
        )

    def prepare_manage_share_instance(
        self, session: Session, job: typing.Any
    ) -> typing.Any:
        instance = share_instances.get(session, job.resource_id)
        if instance.status != InstanceStatus.MANAGE_STARTING:
            raise exception.InvalidStatus(
                resource='share instance',
                id=instance.id,
                status=instance.status,
                event='place',
                allowed=InstanceStatus.MANAGE_STARTING,
            )
        return (
            instance,
            share_types.get_extra_specs(session, instance.share_type_id),
            [
                pool
                for pool in self._pools(session)
                if pool.host == instance.host
            ],
        )

    def manage_share_instance(
        self,
        job: typing.Any,
        instance_id: str,
        driver_options: dict[str, typing.Any],
    ) -> None:
        """Check that the given pool fits the share type; hand over."""
        instance, specs, pools = job.prepared
        request = PlacementRequest(
            size=0,
            share_proto=instance.share_proto,
            extra_specs=specs,
            share=_expression_values(instance),
            host=instance.host,
        )
        choice = choose(request, pools, self.rules.filters, ())
        self._log(job, choice)
        if choice.rejecting_filter == ServiceUp.name:
            raise exception.ServiceUnavailable(
                'The share service is not up: ' + choice.explanation()
            )
        if not choice.ranked:
            raise exception.NoValidHost(
                reason=choice.explanation(), message_detail=_detail(choice)
            )
        job.hand_over(
            self._hand_over,
            job.claim,
            'manage_share_instance',
            choice.ranked[0].pool.service_host,
            job.args,
        )

    def check_server_destination(
        self, ctx: typing.Any, host: str, needs: list[dict[str, typing.Any]]
    ) -> list[str]:
        """Return why a back end cannot hold the shares of a share server.

        Each of `needs` has share_type_id, share_proto and the total size
        (GiB) of the shares of one type and protocol. With
        `host@backend#pool` all of them must fit into that pool, otherwise
        into the pools of the back end together. Reserves nothing; an
        empty list means that they fit.
        """
        pools, specs = self.db.read(self._destination, host, needs)
        return rejection_reasons(pools, needs, specs, self.rules.filters)

    def _destination(
        self, session: Session, host: str, needs: list[dict[str, typing.Any]]
    ) -> typing.Any:
        found = [
            pool
            for pool in self._pools(session)
            if host in (pool.host, pool.service_host)
        ]
        return found, share_types.list_extra_specs(
            session, {need['share_type_id'] for need in needs}
        )

    def _place(
        self,
        job: typing.Any,
        request: PlacementRequest,
        filters: Sequence[typing.Any],
        pools: list[Pool],
        on_allocated: Callable[..., None],
        *args: typing.Any,
    ) -> None:
        """Allocate capacity on the best pool that still has it."""
        for _ in range(MAX_ROUNDS):
            choice = choose(
                request, pools, filters, self.rules.weighers, self.rng
            )
            self._log(job, choice)
            if choice.rejecting_filter == ServiceUp.name:
                # A service may be starting just now; the runner retries.
                raise exception.ServiceUnavailable(
                    'No share service is up: ' + choice.explanation()
                )
            if not choice.ranked:
                raise exception.NoValidHost(
                    reason=choice.explanation(), message_detail=_detail(choice)
                )
            for ranked in choice.ranked:
                try:
                    job.hand_over(
                        self._allocate,
                        job.claim,
                        request,
                        ranked.pool,
                        on_allocated,
                        *args,
                    )
                    return
                except CapacityTaken:
                    continue
            pools = job.read(self._pools)
        raise exception.ServiceUnavailable(
            'Other placements took the capacity of every pool.'
        )

    def _allocate(
        self,
        session: Session,
        job: typing.Any,
        request: PlacementRequest,
        pool: Pool,
        on_allocated: Callable[..., None],
        *args: typing.Any,
    ) -> None:
        if not pool_rows.allocate(
            session,
            pool.host,
            request.size,
            allocation_limit(pool, request),
            pool.reported_at,
        ):
            raise CapacityTaken(host=pool.host)
        on_allocated(session, job, *args, pool)

    def _hand_over(
        self,
        session: Session,
        job: typing.Any,
        method: str,
        queue: str,
        args: dict[str, typing.Any],
    ) -> None:
        durable = _HANDED_OVER[method]
        table.hand_over(
            session,
            job,
            kind=durable.kind,
            topic=durable.topic,
            queue=queue,
            args=args,
        )

    def _pools(self, session: Session) -> list[Pool]:
        return [
            _pool(row, self.down_time) for row in pool_rows.list_all(session)
        ]

    def _affinity_hosts(
        self, session: Session, hints: dict[str, typing.Any]
    ) -> dict[str, frozenset[str]]:
        wanted = {
            key: set(hints.get(key, ()))
            for key in ('same_host', 'different_host')
        }
        named = wanted['same_host'] | wanted['different_host']
        hosts = share_instances.list_hosts(session, named) if named else {}
        return {
            key: frozenset(host for id in ids for host in hosts.get(id, ()))
            for key, ids in wanted.items()
        }

    def _subnets(
        self, session: Session, share_network_id: str | None
    ) -> collections.Counter[str | None] | None:
        """Return the number of subnets of the network by zone."""
        if share_network_id is None:
            return None
        return collections.Counter(
            subnet.availability_zone
            for subnet in subnet_rows.list_for_network(
                session, share_network_id
            )
        )

    def _log(self, job: typing.Any, choice: Choice) -> None:
        level = logging.DEBUG if choice.ranked else logging.WARNING
        LOG.log(
            level,
            'Placing %s: %s',
            job.resource_id,
            choice.explanation() if LOG.isEnabledFor(level) else '',
        )


class CapacityTaken(exception.ManilaLiteError):
    """Another placement took the capacity since the pool was read."""

    message = 'Pool {host} no longer has the capacity.'


def _detail(choice: Choice) -> Detail:
    return next(
        detail for detail in Detail if detail.value == choice.message_detail
    )


def _replication_domain(pools: list[Pool], host: str | None) -> str | None:
    """Return the replication domain of the pool's back end, if any."""
    return next(
        (
            pool.capabilities.get('replication_domain')
            for pool in pools
            if pool.host == host
        ),
        None,
    )


def _expression_values(instance: InstanceRow) -> dict[str, typing.Any]:
    """Return the values that expressions see as `share.x`."""
    return {
        'id': instance.share_id,
        'project_id': instance.project_id,
        'size': instance.size,
        'share_proto': instance.share_proto,
        'host': instance.host,
        'name': instance.display_name,
    }


def _pool(row: PoolRow, down_time: float) -> Pool:
    return Pool(
        host=row.host,
        capabilities=orjson.loads(row.capabilities),
        zone=row.zone,
        service_up=services.is_up(row, down_time),
        service_enabled=not row.disabled,
        total_gb=row.total_gb,
        free_gb=row.free_gb,
        allocated_gb=row.allocated_gb,
        pending_gb=row.pending_gb,
        reported_at=row.reported_at,
    )
