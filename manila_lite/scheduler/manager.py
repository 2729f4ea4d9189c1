"""Place share instances: choose a pool, allocate capacity, hand over."""

import collections
from collections.abc import Iterator, Mapping
import contextlib
import random
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.moves import (
    share_migrations as migration_moves,
    shares as share_moves,
)
from manila_lite.db.queries.groups import share_groups
from manila_lite.db.queries.networks import subnets as subnet_rows
from manila_lite.db.queries.replicas import replicas as replica_rows
from manila_lite.db.queries.shares import (
    affinity,
    instances as share_instances,
    migrations as share_migrations,
    placements,
)
from manila_lite.db.queries.types import types as share_types
from manila_lite.db.queries.types.qos_types import DEFAULT_OF_SHARE_TYPE
from manila_lite.db.rows import ExpressionRow, InstanceRow
from manila_lite.db.session import Database, Session
from manila_lite.host import Host
from manila_lite.messages import Detail
from manila_lite.quota import shares as migration_quota
from manila_lite.rpc.contract import implements
from manila_lite.rpc.scheduler import PlacementRpc
from manila_lite.scheduler import destinations
from manila_lite.scheduler.allocation import Allocator, FiltersAndWeighers, PoolChanged
from manila_lite.scheduler.destinations import allowed_zones
from manila_lite.scheduler.filters.places import for_all
from manila_lite.scheduler.pool_reader import PoolReader
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import (
    PlacementRequest,
    replica_capabilities,
    required_capabilities,
)
from manila_lite.states.share_group import GroupStatus
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.share_task import ShareTask
from manila_lite.work.job import JobContext
from manila_lite.work.table import Claim


@implements(PlacementRpc)
class PlacementEndpoint:
    """Places share instances from database rows.

    Its only state is what `PoolReader` has read a moment ago.
    """

    def __init__(
        self,
        db: Database,
        rules: FiltersAndWeighers,
        *,
        down_time: float,
        wait_for_backends: float,
        max_attempts: int = 1,
        rng: random.Random | None = None,
    ):
        self.db = db
        self.max_attempts = max_attempts
        self.rules = rules
        self.pools = PoolReader(db, down_time)
        self.allocator = Allocator(self.pools, rules, wait_for_backends, rng)

    def prepare_create_share_instance(self, session: Session, job: Claim) -> tuple:
        instance, specs = _read_waiting(
            session, job.resource_id, InstanceStatus.CREATING, is_placed=False
        )
        return (
            instance,
            specs,
            self._affinity_hosts(session, job.args['hints']),
            self._subnets(session, instance.share_network_id),
            instance.share_group_id
            and share_groups.find(session, instance.share_group_id),
        )

    def create_share_instance(
        self,
        job: JobContext,
        instance_id: str,
        zones: list[str],
        hints: dict[str, typing.Any],
        snapshot_id: str | None = None,
        source_host: str | None = None,
        attempted: list[str] | None = None,
        refusal: str | None = None,
    ) -> None:
        instance, specs, affinity_hosts, subnets, group = job.prepared
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
            attempted=frozenset(attempted or ()),
            share=expression_values(instance),
            from_snapshot=snapshot_id is not None,
            host=source_host,
            group_host=group and group.host,
            consistent_snapshot_support=(group and group.consistent_snapshot_support),
        )
        with _keeps_detail(refusal):
            self.allocator.place(
                job, request, self.rules.filters, self._hand_over_create, instance
            )

    def _hand_over_create(
        self, session: Session, job: Claim, instance: InstanceRow, pool: Pool
    ) -> None:
        placements.assign_host(session, instance.id, pool.host, pool.zone)
        args = {
            'instance_id': instance.id,
            'placement': self.next_placement(job.args, pool),
        }
        method = 'create_share_instance'
        if job.args['snapshot_id'] is not None:
            method = 'create_share_from_snapshot'
            args['snapshot_id'] = job.args['snapshot_id']
        self.allocator.hand_over(session, job, method, pool.service_host, args)

    def next_placement(
        self, args: dict[str, typing.Any], pool: Pool
    ) -> dict[str, typing.Any] | None:
        """Return the arguments to place the share again; None for never."""
        attempted = [*(args.get('attempted') or ()), pool.host]
        if (
            len(attempted) >= self.max_attempts
            or args['hints'].get('only_host') == pool.host
        ):
            return None
        return {
            'zones': args['zones'],
            'hints': args['hints'],
            'snapshot_id': args['snapshot_id'],
            'source_host': args['source_host'],
            'attempted': attempted,
        }

    def prepare_create_share_replica(self, session: Session, job: Claim) -> tuple:
        prepared = self.prepare_create_share_instance(session, job)
        hosts = replica_rows.get_hosts(session, prepared[0].share_id)
        return (*prepared, hosts)

    def create_share_replica(
        self,
        job: JobContext,
        instance_id: str,
        zones: list[str],
        hints: dict[str, typing.Any],
    ) -> None:
        """Place a replica on a pool that can replicate the active one."""
        instance, specs, _, subnets, _, (active, hosts) = job.prepared
        if active is None:
            raise exception.NoValidHost(
                reason='the share has no active replica',
                message_detail=Detail.NO_ACTIVE_REPLICA,
            )
        request = PlacementRequest(
            size=instance.size,
            share_proto=instance.share_proto,
            extra_specs=replica_capabilities(specs),
            availability_zones=tuple(zones),
            subnets=subnets,
            only_host=hints.get('only_host'),
            share=expression_values(instance),
            host=active,
            replica_hosts=hosts,
        )
        self.allocator.place(
            job, request, self.rules.filters, self._hand_over_replica, instance
        )

    def _hand_over_replica(
        self, session: Session, job: Claim, instance: InstanceRow, pool: Pool
    ) -> None:
        if pool.host in replica_rows.get_hosts(session, instance.share_id)[1]:
            raise PoolChanged(host=pool.host)  # by another replica
        placements.assign_host(session, instance.id, pool.host, pool.zone)
        self.allocator.hand_over(
            session,
            job,
            'create_share_replica',
            pool.service_host,
            {'instance_id': instance.id},
        )

    def failed_create_share_replica(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        share_moves.mark_unplaced_failed(session, job.resource_id)
        return False

    # Share groups

    def prepare_create_share_group(self, session: Session, job: Claim) -> tuple:
        group = share_groups.get(session, job.resource_id)
        if group.status != GroupStatus.CREATING or group.host is not None:
            raise exception.InvalidStatus(
                resource='share group',
                id=group.id,
                status=group.status,
                event='place',
                allowed=f'{GroupStatus.CREATING}, without a host',
            )
        ids = share_groups.list_share_types(session, [group.id])[group.id]
        return (
            group,
            share_types.list_extra_specs(session, ids),
            self._subnets(session, group.share_network_id),
        )

    def create_share_group(
        self,
        job: JobContext,
        share_group_id: str,
        zones: list[str],
        on_network: bool = False,
    ) -> None:
        """Place a group in a pool that is right for all its share types."""
        group, specs, subnets = job.prepared
        requests = [
            PlacementRequest(
                size=0,
                share_proto='',
                extra_specs=of_type,
                availability_zones=tuple(zones),
                subnets=subnets,
                share={'project_id': group.project_id},
                consistent_snapshot_support=group.consistent_snapshot_support,
            )
            for of_type in specs.values()
        ]
        self.allocator.place(
            job,
            requests[0],
            for_all(self.rules.filters, requests),
            self._hand_over_group,
        )

    def _hand_over_group(self, session: Session, job: Claim, pool: Pool) -> None:
        share_groups.assign_host(session, job.resource_id, pool.host, pool.zone)
        self.allocator.hand_over(
            session,
            job,
            'create_share_group',
            pool.service_host,
            {'share_group_id': job.resource_id, 'on_network': job.args['on_network']},
        )

    # Existing shares

    def prepare_extend_share_instance(self, session: Session, job: Claim) -> tuple:
        return _read_waiting(session, job.resource_id, InstanceStatus.EXTENDING)

    def extend_share_instance(
        self, job: JobContext, instance_id: str, new_size: int, growth: int
    ) -> None:
        instance, specs = job.prepared
        request = PlacementRequest(
            size=growth,
            share_proto=instance.share_proto,
            extra_specs=specs,
            share=expression_values(instance),
            is_extend=True,
            host=instance.host,
        )
        self.allocator.place(
            job, request, self.rules.extend_filters, self._hand_over_extend, instance
        )

    def _hand_over_extend(
        self, session: Session, job: Claim, instance: InstanceRow, pool: Pool
    ) -> None:
        self.allocator.hand_over(
            session,
            job,
            'extend_share_instance',
            pool.service_host,
            job.args | {'host': pool.host},
        )

    def prepare_manage_share_instance(self, session: Session, job: Claim) -> tuple:
        return _read_waiting(session, job.resource_id, InstanceStatus.MANAGE_STARTING)

    def manage_share_instance(
        self, job: JobContext, instance_id: str, driver_options: dict[str, typing.Any]
    ) -> None:
        """Check that the given pool fits the share type; hand over."""
        instance, specs = job.prepared
        request = PlacementRequest(
            size=0,
            share_proto=instance.share_proto,
            extra_specs=specs,
            share=expression_values(instance),
            is_manage=True,
            host=instance.host,
        )
        choice = self.allocator.choose(job, request, self.rules.filters)
        if choice is None:
            return
        job.hand_over(
            self.allocator.hand_over,
            job.claim,
            'manage_share_instance',
            choice.ranked[0].pool.service_host,
            job.args,
        )

    # Migrations

    def prepare_migrate_share_to_host(self, session: Session, job: Claim) -> tuple:
        task = share_migrations.find_task(session, job.resource_id, lock_shared=True)
        if task is None or task.task_state != ShareTask.STARTING:
            raise exception.InvalidStatus(
                resource='share',
                id=job.resource_id,
                status=task and task.task_state,
                event='place',
                allowed=ShareTask.STARTING,
            )
        migration = share_migrations.get_open(session, job.resource_id)
        instance, specs = _read_instance(session, migration.source_instance_id)
        if migration.new_share_type_id is not None:
            wanted = share_types.get_extra_specs(session, migration.new_share_type_id)
            specs = required_capabilities(
                wanted, has_qos_type=bool(wanted.get(DEFAULT_OF_SHARE_TYPE))
            )
        return (
            instance,
            specs,
            self._affinity_hosts(session, affinity.get_hints(session, job.resource_id)),
            self._subnets(session, migration.destination_network_id),
        )

    def migrate_share_to_host(
        self, job: JobContext, share_id: str, host: str, needs_release_2: bool = False
    ) -> None:
        """Allocate capacity on the destination of a migration."""
        instance, specs, affinity_hosts, subnets = job.prepared
        request = PlacementRequest(
            size=instance.size,
            share_proto=instance.share_proto,
            extra_specs=specs,
            availability_zones=allowed_zones(specs),
            subnets=subnets,
            same_host=affinity_hosts['same_host'],
            different_host=affinity_hosts['different_host'],
            share=expression_values(instance),
            only_host=host,
        )
        self.allocator.place(
            job, request, self.rules.filters, self._hand_over_migration, instance
        )

    def _hand_over_migration(
        self, session: Session, job: Claim, instance: InstanceRow, pool: Pool
    ) -> None:
        migration_moves.place(session, instance, pool.host, pool.zone)
        self.allocator.hand_over(
            session,
            job,
            'start_share_migration',
            Host.parse(instance.host).service_host,
            {
                'share_id': instance.share_id,
                'needs_release_2': job.args['needs_release_2'],
            },
        )

    def failed_migrate_share_to_host(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        migration_quota.roll_back(session, job.resource_id, str(error))
        return False

    def check_server_destination(
        self, ctx: RequestContext, host: str, needs: list[dict[str, typing.Any]]
    ) -> list[str]:
        """Return why a back end cannot hold the shares of a share server.

        Each of `needs` has share_type_id, share_proto and the total size
        (GiB) of the shares of one type and protocol. With
        `host@backend#pool` all of them must fit into that pool, otherwise
        into the pools of the back end together. Reserves nothing; an
        empty list means that they fit.
        """
        return self._plan_destination(host, needs)[0]

    def plan_server_destination(
        self, ctx: RequestContext, host: str, needs: list[dict[str, typing.Any]]
    ) -> dict[str, typing.Any]:
        """Return where to reserve capacity for a server, or why not.

        The arguments are those of `check_server_destination`; a need may
        have the name of the pool that its shares are on. The result has
        `reasons`, and the fields of `destinations.Reservation` of each of
        the `reservations`. Nothing is allocated yet.
        """
        reasons, reservations = self._plan_destination(host, needs)
        return {
            'reasons': reasons,
            'reservations': [one._asdict() for one in reservations],
        }

    def _plan_destination(
        self, host: str, needs: list[dict[str, typing.Any]]
    ) -> tuple[list[str], list[destinations.Reservation]]:
        pools = [
            pool for pool in self.pools.read() if host in (pool.host, pool.service_host)
        ]
        specs = self.db.read(
            share_types.list_extra_specs, {need['share_type_id'] for need in needs}
        )
        return destinations.plan(pools, needs, specs, self.rules.filters)

    def _affinity_hosts(
        self, session: Session, hints: dict[str, typing.Any]
    ) -> dict[str, frozenset[str]]:
        wanted = {
            key: set(hints.get(key, ())) for key in ('same_host', 'different_host')
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
            for subnet in subnet_rows.list_for_network(session, share_network_id)
        )


@contextlib.contextmanager
def _keeps_detail(refusal: str | None) -> Iterator[None]:
    """Let users see why the last pool refused, if no other one is found."""
    try:
        yield
    except exception.NoValidHost as error:
        if refusal is None:
            raise
        raise exception.NoValidHost(
            reason=error.params['reason'], message_detail=Detail.of(refusal)
        ) from error


def expression_values(instance: ExpressionRow) -> dict[str, typing.Any]:
    """Return the values that expressions see as `share.x`."""
    return {
        'id': instance.share_id,
        'project_id': instance.project_id,
        'size': instance.size,
        'share_proto': instance.share_proto,
        'host': instance.host,
        'name': instance.display_name,
    }


def _read_instance(
    session: Session, instance_id: str
) -> tuple[InstanceRow, Mapping[str, str]]:
    """Return an instance and the capabilities that its pool must have."""
    instance, specs = share_instances.get_with_extra_specs(session, instance_id)
    return instance, required_capabilities(
        specs, has_qos_type=instance.qos_type_id is not None
    )


def _read_waiting(
    session: Session, instance_id: str, status: str, *, is_placed: bool = True
) -> tuple[InstanceRow, Mapping[str, str]]:
    """Do the same if the instance waits for this placement, or raise."""
    instance, specs = _read_instance(session, instance_id)
    if instance.status != status or not is_placed and instance.host is not None:
        allowed = status if is_placed else f'{status}, without a host'
        raise exception.InvalidStatus(
            resource='share instance',
            id=instance_id,
            status=instance.status,
            event='place',
            allowed=allowed,
        )
    return instance, specs
