"""Migrate share servers to this back end, in two phases.

All work runs on the service of the destination. The first phase is
started and then polled periodically; an administrator starts the second
phase or cancels the migration. Every step is idempotent, so abandoned
work is simply run again. `migration_phases` records the outcomes.
"""

import dataclasses
import typing
from typing import Annotated

from manila_lite import exception
from manila_lite.conf import Option
from manila_lite.context import RequestContext
from manila_lite.db.queries.servers import (
    migrations as server_migrations,
    relocation as server_relocation,
    share_servers,
)
from manila_lite.db.session import Database, Session
from manila_lite.db.transitions import fire
from manila_lite.host import ServiceHost
from manila_lite.rpc.contract import implements, work, work_kinds
from manila_lite.rpc.share import ServerMigrationRpc
from manila_lite.share.drivers.base import ServerMigrationStartReply, ShareDriver
from manila_lite.share.manager.driver_probe import BackendUnresponsive, DriverProbe
from manila_lite.share.manager.driver_view import migration_view
from manila_lite.share.manager.driver_view.migration_view import (
    DriverArguments,
    LoadedMigration,
)
from manila_lite.share.manager.driver_view.share_view import NameTemplates
from manila_lite.share.manager.endpoint import outdated, require_status, undo_late_call
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.share.manager.servers.migration_checks import (
    MigrationChecks,
    Progress,
    WantedOptions,
    is_abandoned,
    read_progress,
)
from manila_lite.share.manager.servers.migration_destinations import (
    MigrationDestinations,
    write_step,
)
from manila_lite.share.manager.servers.migration_phases import (
    ServerMigrationPhases,
    store_details,
)
from manila_lite.share.manager.servers.setup import ServerSetup
from manila_lite.states.access_rule import RulesStatus
from manila_lite.states.share_server import SHARE_SERVER, SHARE_SERVER_TASK, TaskState
from manila_lite.work import table
from manila_lite.work.job import JobContext
from manila_lite.work.table import Claim

CAST_PAUSE = 2.0
"""Seconds between checks whether rules have been cast to read-only."""

CAST_TIMEOUT = 600
"""Seconds after which a missing cast to read-only fails the migration."""

_CONTINUE = work_kinds(ServerMigrationRpc)['server_migration.continue_server_migration']


@implements(ServerMigrationRpc)
@dataclasses.dataclass(eq=False)
class ServerMigrationsEndpoint:
    """Carries out share server migrations to one back end.

    `setup` builds share servers, `interval` is the number of seconds
    between polls, and `probe` makes driver calls with a time limit.
    """

    db: Database
    driver: ShareDriver
    phases: ServerMigrationPhases
    setup: ServerSetup
    service_host: ServiceHost
    names: NameTemplates
    probe: DriverProbe
    interval: Annotated[
        float, Option('server_migration_driver_continue_update_interval')
    ]

    def __post_init__(self) -> None:
        self.checks = MigrationChecks(self.db, self.driver, self.probe)
        self.destinations = MigrationDestinations(
            self.driver,
            self.phases,
            self.setup,
            self.checks,
            self.names,
            self.service_host,
        )

    # Begin

    @work(expects=TaskState.STARTING, failed='_failed')
    def start_server_migration(self, job: JobContext, share_server_id: str) -> None:
        loaded: LoadedMigration = job.prepared
        if loaded.destination is None:
            loaded = self.destinations.choose(job, loaded)
        if not loaded.migration.is_set_up:
            loaded = self.destinations.set_up(job, loaded)
        if not loaded.migration.writable and not self._is_cast_done(job, loaded):
            job.pause(CAST_PAUSE)
            return
        with undo_late_call(self.destinations.undo_if_rolled_back, job, loaded):
            reply = (
                self.driver.share_server_migration_start(
                    driver_context(),
                    *migration_view.driver_arguments(loaded, self.names),
                )
                or {}
            )
            job.hand_over(self._started, job.claim, loaded, reply)

    def _is_cast_done(self, job: JobContext, loaded: LoadedMigration) -> bool:
        """Return whether all rules are read-only; start the cast if not."""
        if not loaded.migration.casts_rules:
            write_step(job, 'cast', self.phases.cast_rules, loaded)
            return False
        states = job.read(server_relocation.get_rules_statuses, loaded.source.row.id)
        if RulesStatus.ERROR in states:
            raise exception.ShareBackendException(
                msg='access rules could not be cast to read-only'
            )
        if RulesStatus.OUT_OF_SYNC not in states:
            return True
        waited = self.db.utcnow() - (
            loaded.migration.updated_at or loaded.migration.created_at
        )
        if waited.total_seconds() > CAST_TIMEOUT:
            raise exception.ShareBackendException(
                msg='access rules were not cast to read-only on the source '
                f'within {CAST_TIMEOUT} s'
            )
        return False

    def _started(
        self,
        session: Session,
        job: Claim,
        loaded: LoadedMigration,
        reply: ServerMigrationStartReply,
    ) -> None:
        """Hand over to the work that polls the first phase."""
        table.hand_over(
            session, job, _CONTINUE, job.queue, {'share_server_id': job.resource_id}
        )
        fire(session, SHARE_SERVER_TASK, job.resource_id, 'started')
        store_details(
            session,
            loaded.chosen_destination.row.id,
            reply.get('backend_details') or {},
        )
        server_migrations.record_progress(session, loaded.migration.id, None)

    # Continue

    @work(expects=TaskState.MIGRATING, failed='_failed')
    def continue_server_migration(self, job: JobContext, share_server_id: str) -> None:
        loaded: LoadedMigration = job.prepared
        arguments = migration_view.driver_arguments(loaded, self.names)
        with undo_late_call(self.destinations.undo_if_rolled_back, job, loaded):
            if self.driver.share_server_migration_continue(
                driver_context(), *arguments
            ):
                job.finish(self._copied, loaded)
            else:
                job.pause(
                    self.interval,
                    server_migrations.record_progress,
                    loaded.migration.id,
                    *self._progress(loaded, arguments),
                )

    def _progress(
        self, loaded: LoadedMigration, arguments: DriverArguments
    ) -> Progress:
        """Return what the driver reports, if it does."""
        if not loaded.migration.tells_progress:
            return Progress()
        try:
            result = self.probe.ask(
                self.driver.share_server_migration_get_progress,
                driver_context(),
                *arguments,
            )
        except BackendUnresponsive:
            return Progress()
        # An error here does not affect the copy itself.
        return Progress() if result.reason else read_progress(result.value)

    def _copied(self, session: Session, loaded: LoadedMigration) -> None:
        fire(session, SHARE_SERVER_TASK, loaded.source.row.id, 'phase1_done')
        server_migrations.record_progress(session, loaded.migration.id, 100)

    # Complete or cancel

    @work(expects=TaskState.COMPLETING, failed='_failed')
    def complete_server_migration(self, job: JobContext, share_server_id: str) -> None:
        loaded: LoadedMigration = job.prepared
        if loaded.migration.phase == 1 or loaded.destination is None:
            # The task state was reset: nothing says that all is copied.
            raise exception.InvalidShareServer(
                reason='the second phase was not requested'
            )
        server = (
            loaded.source
            if loaded.migration.nondisruptive
            else loaded.chosen_destination
        )
        reply = (
            self.driver.share_server_migration_complete(
                driver_context(),
                *migration_view.driver_arguments(loaded, self.names),
                job.read(self.setup.network_info, server.row.id),
            )
            or {}
        )
        job.finish(self.phases.complete, loaded, reply)

    @work(expects=TaskState.CANCELLING, failed='_failed')
    def cancel_server_migration(self, job: JobContext, share_server_id: str) -> None:
        self.destinations.cancel(job.prepared)
        job.finish(self.phases.roll_back, share_server_id, 'cancelled')

    # Abandoned migrations

    def prepare_settle_server_migration(
        self, session: Session, job: Claim
    ) -> LoadedMigration | None:
        server = share_servers.get(session, job.resource_id, lock_shared=True)
        migration = server_migrations.find_open(session, job.resource_id)
        if not is_abandoned(server, migration):
            raise outdated(
                job, SHARE_SERVER, server.id, server.status, 'migrating without a task'
            )
        if migration is None or migration.phase == 2:
            return None
        return migration_view.load_migration(session, job.resource_id)

    @work(failed='_failed')
    def settle_server_migration(self, job: JobContext, share_server_id: str) -> None:
        """Fail the migration of a server whose task is missing or reset."""
        loaded: LoadedMigration | None = job.prepared
        if loaded is not None and loaded.migration.can_cancel:
            self.destinations.cancel(loaded)
        job.finish(self.phases.fail, share_server_id, 'the migration was abandoned')

    def _failed(self, session: Session, job: Claim, error: Exception) -> bool:
        self.phases.fail(session, job.resource_id, str(error))
        return True

    def expect(self, session: Session, job: Claim, task_state: str) -> LoadedMigration:
        """Return the migration if it still waits for this work."""
        server = share_servers.get(session, job.resource_id, lock_shared=True)
        require_status(job, SHARE_SERVER_TASK, server.id, server.task_state, task_state)
        return migration_view.load_migration(session, job.resource_id)

    # Calls

    def check_server_migration(
        self,
        ctx: RequestContext,
        share_server_id: str,
        dest_host: str,
        writable: bool,
        nondisruptive: bool,
        preserve_snapshots: bool,
        new_share_network_id: str | None = None,
    ) -> dict[str, typing.Any]:
        """Return what the driver supports, and `reasons` why not enough.

        This leaves nothing behind, even when the driver never replies.
        """
        return self.checks.answer(
            share_server_id,
            dest_host,
            WantedOptions(writable, nondisruptive, preserve_snapshots),
            new_share_network_id,
        )

    def hear_server_migration(self, ctx: RequestContext, share_server_id: str) -> None:
        """Get the progress from the driver and store it."""
        try:
            loaded = self.db.read(migration_view.load_migration, share_server_id)
        except exception.ManilaLiteError:
            return  # it has ended meanwhile
        if loaded.destination is None or (
            loaded.source.row.task_state != TaskState.MIGRATING
            or not loaded.migration.tells_progress
        ):
            return
        try:
            # Threads that serve calls must not wait for slow drivers.
            result = self.probe.poll(
                loaded.migration.id,
                self.driver.share_server_migration_get_progress,
                driver_context(),
                *migration_view.driver_arguments(loaded, self.names),
            )
        except exception.ManilaLiteError:
            return
        if not result.reason:
            self.db.write(
                server_migrations.record_progress,
                loaded.migration.id,
                *read_progress(result.value),
            )
