"""Accept requests to move share servers to other back ends."""

import dataclasses
import datetime
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.admin import services
from manila_lite.db.queries.servers import migrations as server_migrations
from manila_lite.db.queries.servers import share_servers
from manila_lite.db.session import Database
from manila_lite.db.session import Session
from manila_lite.db.session import read_transaction
from manila_lite.db.session import transaction
from manila_lite.db.transitions import TransitionBatch
from manila_lite.db.transitions import fire
from manila_lite.rpc.contract import Client
from manila_lite.rpc.share import BINARY
from manila_lite.share.operations.servers import migration_checks
from manila_lite.share.operations.servers.migration_checks import (
    MigrationOptions,
)
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_server import SHARE_SERVER
from manila_lite.states.share_server import SHARE_SERVER_TASK
from manila_lite.states.share_server import ServerStatus
from manila_lite.states.share_server import TaskState
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE

CAPABILITIES = ('writable', 'nondisruptive', 'preserve_snapshots')
OPTIONAL_OPERATIONS = ('migration_cancel', 'migration_get_progress')

_COPIED = frozenset(
    {TaskState.PHASE1_DONE, TaskState.COMPLETING, TaskState.COMPLETED}
)


class MigrationCompatibility(typing.NamedTuple):
    """Whether a server could be moved, and what the driver offers.

    `supported` has a bool for each of `CAPABILITIES` and `ABILITIES`;
    `reasons` say why not, one sentence each.
    """

    compatible: bool
    supported: dict[str, bool]
    share_network_id: str | None
    reasons: list[str]


@dataclasses.dataclass(frozen=True)
class MigrationProgress:
    """How far a migration has come.

    `total` is in percent and None where nobody can tell. `heard_at` is
    when the driver last said anything, in UTC. The destination is None
    where there is none, or none any longer.
    """

    total: int | None
    task_state: str
    phase: int
    heard_at: datetime.datetime | None
    destination_server_id: str | None
    error: str | None


class ServerMigrations:
    """What is refused is refused before anything has changed.

    Errors of the state of things are a Conflict for `check` and `start`,
    and Invalid for what concerns a migration under way: the published
    codes.
    """

    def __init__(
        self, db: Database, scheduler: Client, work: Client, down_time: float
    ):
        self.db = db
        self.scheduler = scheduler
        self.work = work
        self.down_time = down_time

    # Begin

    def check(
        self, ctx: RequestContext, server_id: str, wish: MigrationOptions
    ) -> MigrationCompatibility:
        """Whether a server could be moved; nothing is left behind."""
        found = self._look(server_id, wish, snapshots=True)
        reasons = found.network_reasons or self._no_room(ctx, wish, found)
        if reasons:
            return MigrationCompatibility(
                False,
                dict.fromkeys((*CAPABILITIES, *OPTIONAL_OPERATIONS), False),
                None,
                reasons,
            )
        answer = self.work.on(wish.dest_host).check_server_migration(
            ctx, share_server_id=server_id, **dataclasses.asdict(wish)
        )
        reasons = list(answer.get('reasons', ()))
        return MigrationCompatibility(
            not reasons,
            {
                name: bool(answer.get(name))
                for name in (*CAPABILITIES, *OPTIONAL_OPERATIONS)
            },
            found.share_network_id if not reasons else None,
            reasons,
        )

    def start(
        self, ctx: RequestContext, server_id: str, wish: MigrationOptions
    ) -> None:
        """Accept a migration; of several at once one is accepted."""
        found = self._look(server_id, wish)
        if found.network_reasons:
            raise exception.InvalidInput(
                reason='; '.join(found.network_reasons)
            )
        reasons = self._no_room(ctx, wish, found)
        if reasons:
            raise exception.ShareServerNotMigratable(reason='; '.join(reasons))
        self._accept(ctx, server_id, wish, found)

    @read_transaction
    def _look(
        self,
        session: Session,
        server_id: str,
        wish: MigrationOptions,
        *,
        snapshots: bool = False,
    ) -> migration_checks.MigrationPlan:
        """What the migration is about, checked."""
        rows = server_migrations.list_server_with_shares(session, server_id)
        if not rows:
            raise exception.ShareServerNotFound(share_server_id=server_id)
        migration_checks.refuse_destination(rows[0], wish)
        service = self._service(session, wish.dest_host)
        networks = server_migrations.list_networks_with_subnets(
            session,
            {rows[0].share_network_id, wish.new_share_network_id},
            server_id,
        )
        migration_checks.refuse_status(rows[0])
        migration_checks.refuse_shares(
            rows,
            server_migrations.list_snapshot_instances(session, server_id)
            if snapshots
            else (),
            wish,
        )
        return migration_checks.plan_migration(rows, service, networks, wish)

    def _service(self, session: Session, host: str) -> typing.Any:
        service_host = host.partition('#')[0]
        service = services.get(session, service_host, BINARY)
        if not services.is_up(service, self.down_time):
            raise exception.ServiceIsDown(binary=BINARY, host=service_host)
        return service

    def _no_room(
        self,
        ctx: RequestContext,
        wish: MigrationOptions,
        found: migration_checks.MigrationPlan,
    ) -> list[str]:
        """Why the destination cannot hold the shares, by the scheduler."""
        return self.scheduler.check_server_destination(
            ctx, host=wish.dest_host, needs=found.needs
        )

    @transaction
    def _accept(
        self,
        session: Session,
        ctx: RequestContext,
        server_id: str,
        wish: MigrationOptions,
        found: migration_checks.MigrationPlan,
    ) -> None:
        """The one guarded step: all of the server changes, or nothing.

        Behind the guard nobody puts a share on the server, so what is
        read there is all there is.
        """
        moves = TransitionBatch(session)
        moves.fire_one(SHARE_SERVER, server_id, 'migrate')
        rows = server_migrations.list_server_with_shares(session, server_id)
        snapshots = server_migrations.list_snapshot_instances(
            session, server_id
        )
        migration_checks.refuse_shares(rows, snapshots, wish)
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
        if any(row.replica_state is not None for row in rows):
            # Since these moves nobody makes a replica.
            migration_checks.refuse_share_replicas(
                server_migrations.list_server_with_shares(session, server_id)
            )
        moves.fire(
            SNAPSHOT_INSTANCE,
            'migrate_server',
            {row.id: row.status for row in snapshots},
        )
        moves.write()
        service_host, _, pool = wish.dest_host.partition('#')
        server_migrations.insert(
            session,
            source_server_id=server_id,
            source_host=rows[0].host,
            destination_host=service_host,
            destination_pool=pool or None,
            old_share_network_id=rows[0].share_network_id,
            new_share_network_id=found.share_network_id,
            writable=wish.writable,
            nondisruptive=wish.nondisruptive,
            preserve_snapshots=wish.preserve_snapshots,
            project_id=rows[0].project_id,
            user_id=rows[0].user_id,
        )
        self.work.on(service_host).start_server_migration(
            session, ctx, share_server_id=server_id
        )

    # End

    @transaction
    def complete(
        self, session: Session, ctx: RequestContext, server_id: str
    ) -> str:
        """Have the second phase begin; the id of the destination."""
        migration = self._under_way(session, server_id, 'complete')
        server_migrations.update(session, migration.id, phase=2)
        self.work.on(migration.destination_host).complete_server_migration(
            session, ctx, share_server_id=server_id
        )
        return migration.destination_server_id

    @transaction
    def cancel(
        self, session: Session, ctx: RequestContext, server_id: str
    ) -> None:
        """Have everything go back to what it was."""
        migration = self._under_way(session, server_id, 'cancel')
        if not migration.can_cancel:
            raise exception.InvalidShareServer(
                reason=f'the driver cannot cancel the migration of {server_id}'
            )
        self.work.on(migration.destination_host).cancel_server_migration(
            session, ctx, share_server_id=server_id
        )

    def _under_way(
        self, session: Session, server_id: str, event: str
    ) -> typing.Any:
        """The migration that now goes on with this event."""
        # The guard first: of two requests the second finds what it did.
        try:
            fire(session, SHARE_SERVER_TASK, server_id, event)
        except exception.InvalidStatus as error:
            raise exception.InvalidShareServer(
                reason=error.public_message
            ) from error
        server = share_servers.get(session, server_id)
        migration = server_migrations.find_open(session, server_id)
        if migration is None or server.status != ServerStatus.SERVER_MIGRATING:
            raise exception.InvalidShareServer(
                reason=f'{server_id} is not being migrated'
            )
        self._service(session, migration.destination_host)
        return migration

    # Look

    def progress(
        self, ctx: RequestContext, server_id: str
    ) -> MigrationProgress:
        """How far the newest migration from a server has come.

        The back end is asked; where it does not answer, what is known is
        told. The source may be gone.
        """
        before = self._latest(server_id)
        if (
            before.open_for is not None
            and before.task_state == TaskState.MIGRATING
        ):
            self._hear(ctx, before)
        return _progress(self._latest(server_id))

    def _hear(self, ctx: RequestContext, migration: typing.Any) -> None:
        work = self.work.on(migration.destination_host)
        try:
            work.hear_server_migration(
                ctx, share_server_id=migration.source_server_id
            )
        except exception.ServiceUnavailable:
            return  # what was heard before, and when, is told

    @read_transaction
    def _latest(self, session: Session, server_id: str) -> typing.Any:
        migration = server_migrations.find_latest(session, server_id)
        if migration is None:
            share_servers.get(session, server_id)  # or there is none
            raise exception.InvalidShareServer(
                reason=f'{server_id} is not being migrated'
            )
        return migration

    # Administration

    @transaction
    def reset_task_state(
        self,
        session: Session,
        ctx: RequestContext,
        server_id: str,
        task_state: str,
    ) -> None:
        """Set the task state by decree, by its name in the design."""
        fire(
            session,
            SHARE_SERVER_TASK,
            server_id,
            SHARE_SERVER_TASK.reset_event(task_state),
        )


def _progress(migration: typing.Any) -> MigrationProgress:
    task_state = (
        migration.outcome or migration.task_state or TaskState.COMPLETED
    )
    total = migration.progress
    if task_state in _COPIED:
        total = 100
    elif task_state != TaskState.MIGRATING:
        total = None
    gone = migration.outcome not in (None, TaskState.COMPLETED) and (
        migration.phase == 1
    )
    return MigrationProgress(
        total,
        task_state,
        migration.phase,
        migration.heard_at,
        None if gone else migration.destination_server_id,
        migration.error,
    )
