"""Accept requests to migrate share servers to other back ends."""

from collections.abc import Mapping, Sequence
import dataclasses
import datetime
import typing
from typing import Annotated

import orjson

from manila_lite import exception
from manila_lite.conf import Option
from manila_lite.context import RequestContext
from manila_lite.db import rows
from manila_lite.db.moves import servers
from manila_lite.db.queries.servers import (
    migrations as server_migrations,
    share_servers,
)
from manila_lite.db.queries.services import pools, services
from manila_lite.db.session import Database, Session, read_transaction, transaction
from manila_lite.db.transitions import TransitionBatch, fire
from manila_lite.host import Host
from manila_lite.rpc.contract import Client
from manila_lite.rpc.scheduler import PlacementRpc
from manila_lite.rpc.share import BINARY, ServerMigrationRpc
from manila_lite.share.operations.reset_events import check_phase
from manila_lite.share.operations.servers import migration_checks
from manila_lite.share.operations.servers.migration_checks import MigrationOptions
from manila_lite.share.operations.servers.share_servers import end_abandoned_migration
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_server import (
    RUNNING,
    SHARE_SERVER,
    SHARE_SERVER_TASK,
    ServerStatus,
    TaskState,
)
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE

CAPABILITIES = ('writable', 'nondisruptive', 'preserve_snapshots')
OPTIONAL_OPERATIONS = ('migration_cancel', 'migration_get_progress')

_COPIED = frozenset({TaskState.PHASE1_DONE, TaskState.COMPLETING, TaskState.COMPLETED})

_MAX_ROUNDS = 5
"""How often to plan again when others have changed pools or shares."""


class MigrationCompatibility(typing.NamedTuple):
    """Whether a server can be migrated, and what the driver supports.

    `supported` has a bool for each of `CAPABILITIES` and
    `OPTIONAL_OPERATIONS`; `reasons` say why not, one sentence each.
    """

    compatible: bool
    supported: dict[str, bool]
    share_network_id: str | None
    reasons: list[str]


@dataclasses.dataclass(frozen=True)
class MigrationProgress:
    """The progress of a migration.

    `total` is a percentage, or None if it is not known. `details` is what
    else the driver has reported, and `heard_at` is the time (UTC) of its
    last reply. The destination is None if
    there is none, or none any longer.
    """

    total: int | None
    details: dict[str, object]
    task_state: str
    phase: int
    heard_at: datetime.datetime | None
    destination_server_id: str | None
    error: str | None


@dataclasses.dataclass(eq=False)
class ServerMigrations:
    """Operations on server migrations.

    A request is refused before anything has changed. As published, a state
    that does not allow `check` or `start` is a Conflict, and one that does
    not allow a request about a running migration is Invalid.
    """

    db: Database
    scheduler: Client[PlacementRpc]
    work: Client[ServerMigrationRpc]
    down_time: Annotated[float, Option('service_down_time')]

    # Start

    def check(
        self, ctx: RequestContext, server_id: str, options: MigrationOptions
    ) -> MigrationCompatibility:
        """Return whether a server can be migrated; changes nothing."""
        plan = self._plan(server_id, options, snapshots=True)
        reasons = plan.network_reasons or self._reasons_without_room(ctx, options, plan)
        if reasons:
            return MigrationCompatibility(
                False,
                dict.fromkeys((*CAPABILITIES, *OPTIONAL_OPERATIONS), False),
                None,
                reasons,
            )
        reply = self.work.on(options.dest_host).check_server_migration(
            ctx, share_server_id=server_id, **dataclasses.asdict(options)
        )
        reasons = list(reply.get('reasons', ()))
        return MigrationCompatibility(
            not reasons,
            {
                name: bool(reply.get(name))
                for name in (*CAPABILITIES, *OPTIONAL_OPERATIONS)
            },
            plan.share_network_id if not reasons else None,
            reasons,
        )

    def start(
        self, ctx: RequestContext, server_id: str, options: MigrationOptions
    ) -> None:
        """Accept a migration; of concurrent requests only one is accepted."""
        for _ in range(_MAX_ROUNDS):
            plan = self._plan(server_id, options)
            if plan.network_reasons:
                refusal = (
                    exception.InvalidInput
                    if plan.serves_zone
                    else exception.ShareServerNotMigratable
                )
                raise refusal(reason='; '.join(plan.network_reasons))
            answer = self.scheduler.plan_server_destination(
                ctx, host=options.dest_host, needs=plan.needs
            )
            if answer['reasons']:
                raise exception.ShareServerNotMigratable(
                    reason='; '.join(answer['reasons'])
                )
            try:
                self._accept(ctx, server_id, options, plan, answer['reservations'])
            except _PlanOutdated:
                continue
            return
        raise exception.ServiceUnavailable(
            'Other placements took the capacity of the destination.'
        )

    @read_transaction
    def _plan(
        self,
        session: Session,
        server_id: str,
        options: MigrationOptions,
        *,
        snapshots: bool = False,
    ) -> migration_checks.MigrationPlan:
        """Check the request and return the plan of the migration."""
        rows = server_migrations.list_server_with_shares(session, server_id)
        if not rows:
            raise exception.ShareServerNotFound(share_server_id=server_id)
        networks = server_migrations.list_networks_with_subnets(
            session, {rows[0].share_network_id, options.new_share_network_id}, server_id
        )
        migration_checks.refuse_unknown_network(rows[0], networks, options)
        migration_checks.refuse_destination(rows[0], options)
        service = self._service(session, options.dest_host)
        migration_checks.refuse_status(rows[0])
        migration_checks.refuse_shares(
            rows,
            server_migrations.list_snapshot_instances(session, server_id)
            if snapshots
            else (),
            options,
        )
        return migration_checks.plan_migration(rows, service, networks, options)

    def _service(self, session: Session, host: str) -> typing.Any:
        service_host = Host.parse(host).service_host
        service = services.get(session, service_host, BINARY)
        if not services.is_up(service, self.down_time):
            raise exception.ServiceIsDown(binary=BINARY, host=service_host)
        return service

    def _reasons_without_room(
        self,
        ctx: RequestContext,
        options: MigrationOptions,
        plan: migration_checks.MigrationPlan,
    ) -> list[str]:
        """Ask the scheduler why the destination has no room for the shares."""
        return self.scheduler.check_server_destination(
            ctx, host=options.dest_host, needs=plan.needs
        )

    @transaction
    def _accept(
        self,
        session: Session,
        ctx: RequestContext,
        server_id: str,
        options: MigrationOptions,
        plan: migration_checks.MigrationPlan,
        reservations: Sequence[Mapping[str, typing.Any]],
    ) -> None:
        """Move the server and everything on it in one guarded step.

        The capacity of the destination is reserved in the same step. After
        the first guard no share can be added to the server, so what is read
        from then on is complete.
        """
        moves = TransitionBatch(session)
        moves.fire_one(SHARE_SERVER, server_id, 'migrate')
        rows = server_migrations.list_server_with_shares(session, server_id)
        snapshots = server_migrations.list_snapshot_instances(session, server_id)
        migration_checks.refuse_shares(rows, snapshots, options)
        moves.fire(
            SHARE_SERVER_TASK,
            'start',
            {server_id: rows[0].task_state or TaskState.NONE},
        )
        moves.fire(
            SHARE_INSTANCE,
            'migrate_server',
            {row.instance_id: row.instance_status for row in rows},
        )
        # After these moves no share is put into the recycle bin, and no
        # replica can be created.
        rows = server_migrations.list_server_with_shares(session, server_id)
        migration_checks.refuse_soft_deleted(rows)
        if any(row.replica_state is not None for row in rows):
            migration_checks.refuse_share_replicas(rows)
        moves.fire(
            SNAPSHOT_INSTANCE,
            'migrate_server',
            {row.id: row.status for row in snapshots},
        )
        moves.write()
        if server_migrations.sum_shares(rows) != plan.needs:
            raise _PlanOutdated(server_id=server_id)
        servers.end_open_migrations(session, server_id)
        destination = Host.parse(options.dest_host)
        server_migrations.insert(
            session,
            reserved=self._reserve(session, server_id, reservations),
            source_server_id=server_id,
            source_host=rows[0].host,
            destination_host=destination.service_host,
            destination_pool=destination.pool or None,
            old_share_network_id=rows[0].share_network_id,
            new_share_network_id=plan.share_network_id,
            writable=options.writable,
            nondisruptive=options.nondisruptive,
            preserve_snapshots=options.preserve_snapshots,
            project_id=rows[0].project_id,
            user_id=rows[0].user_id,
        )
        self.work.on(destination.service_host).start_server_migration(
            session, ctx, share_server_id=server_id
        )

    def _reserve(
        self,
        session: Session,
        server_id: str,
        reservations: Sequence[Mapping[str, typing.Any]],
    ) -> dict[str, int]:
        """Allocate all of this, or raise; return the GiB by pool."""
        reserved: dict[str, int] = {}
        for one in reservations:
            if not pools.allocate(session, **one, down_time=self.down_time):
                raise _PlanOutdated(server_id=server_id)
            reserved[one['host']] = reserved.get(one['host'], 0) + one['gb']
        return reserved

    # Complete or cancel

    @transaction
    def complete(self, session: Session, ctx: RequestContext, server_id: str) -> str:
        """Request the second phase; return the id of the destination."""
        migration = self._continue(session, server_id, 'complete')
        server = share_servers.get(session, server_id)
        if (
            migration.destination_server_id is None
            or server.status != ServerStatus.SERVER_MIGRATING
        ):
            raise exception.InvalidShareServer(
                reason=f'{server_id} is not being migrated'
            )
        server_migrations.update(session, migration.id, phase=2)
        self.work.on(migration.destination_host).complete_server_migration(
            session, ctx, share_server_id=server_id
        )
        return migration.destination_server_id

    @transaction
    def cancel(self, session: Session, ctx: RequestContext, server_id: str) -> None:
        """Request that the migration is rolled back."""
        migration = self._continue(session, server_id, 'cancel')
        if not migration.can_cancel:
            raise exception.InvalidShareServer(
                reason=f'the driver cannot cancel the migration of {server_id}'
            )
        self.work.on(migration.destination_host).cancel_server_migration(
            session, ctx, share_server_id=server_id
        )

    def _continue(self, session: Session, server_id: str, event: str) -> typing.Any:
        """Fire the event and return the running migration."""
        # The guard comes first: of two requests the second sees its effect.
        try:
            fire(session, SHARE_SERVER_TASK, server_id, event)
        except exception.InvalidStatus as error:
            raise exception.InvalidShareServer(reason=error.public_message) from error
        migration = server_migrations.find_open(session, server_id)
        if migration is None:
            raise exception.InvalidShareServer(
                reason=f'{server_id} is not being migrated'
            )
        self._service(session, migration.destination_host)
        return migration

    # Progress

    def progress(self, ctx: RequestContext, server_id: str) -> MigrationProgress:
        """Return the progress of the newest migration from a server.

        The back end is asked; if it does not answer, the last known progress
        is returned. The source may be gone.
        """
        migration = self._get_latest(server_id)
        if (
            migration.open_for is not None
            and migration.task_state == TaskState.MIGRATING
        ):
            self._refresh(ctx, migration)
        return _progress(self._get_latest(server_id))

    def _refresh(self, ctx: RequestContext, migration: rows.LatestMigrationRow) -> None:
        work = self.work.on(migration.destination_host)
        try:
            work.hear_server_migration(ctx, share_server_id=migration.source_server_id)
        except exception.ServiceUnavailable:
            return  # the last known progress is returned

    @read_transaction
    def _get_latest(self, session: Session, server_id: str) -> rows.LatestMigrationRow:
        migration = server_migrations.find_latest(session, server_id)
        if migration is None:
            share_servers.get(session, server_id)  # raises NotFound
            raise exception.InvalidShareServer(
                reason=f'{server_id} is not being migrated'
            )
        return migration

    # Administration

    @transaction
    def reset_task_state(
        self, session: Session, ctx: RequestContext, server_id: str, task_state: str
    ) -> None:
        """Set the task state to one of `TaskState`."""
        fire(
            session,
            SHARE_SERVER_TASK,
            server_id,
            SHARE_SERVER_TASK.reset_event(task_state),
        )
        migration = server_migrations.find_open(session, server_id)
        if migration is not None:
            check_phase(
                'share server',
                server_id,
                migration,
                task_state,
                first=RUNNING - {TaskState.COMPLETING},
                copied={TaskState.PHASE1_DONE},
            )
        end_abandoned_migration(session, ctx, self.work, server_id)


class _PlanOutdated(exception.ManilaLiteError):
    """The pools or the shares have changed since the migration was planned."""

    message = 'The plan to migrate share server {server_id} is outdated.'


def _progress(migration: rows.LatestMigrationRow) -> MigrationProgress:
    task_state = migration.outcome or migration.task_state or TaskState.COMPLETED
    total = migration.progress
    if task_state in _COPIED:
        total = 100
    elif task_state != TaskState.MIGRATING:
        total = None
    is_destination_gone = migration.outcome not in (None, TaskState.COMPLETED) and (
        migration.phase == 1
    )
    return MigrationProgress(
        total,
        orjson.loads(migration.progress_details or '{}'),
        task_state,
        migration.phase,
        migration.heard_at,
        None if is_destination_gone else migration.destination_server_id,
        migration.error,
    )
