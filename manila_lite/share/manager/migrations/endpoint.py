"""Migrate shares to other back ends, in two phases.

All work runs on the service of the source. The first phase is started and
then polled periodically; an administrator starts the second phase or cancels
the migration. Every step is idempotent, so abandoned work is simply run
again. `outcomes` records how it ended.
"""

import dataclasses
import logging
from typing import Annotated

from manila_lite import exception
from manila_lite.conf import Option
from manila_lite.context import RequestContext
from manila_lite.db.moves import share_migrations as moves
from manila_lite.db.queries.shares import instances as share_instances, migrations
from manila_lite.db.rows import InstanceRow, ShareMigrationRow, ShareTaskRow
from manila_lite.db.session import Database, Session
from manila_lite.db.transitions import fire
from manila_lite.quota import shares as migration_quota
from manila_lite.rpc.contract import implements, work, work_kinds
from manila_lite.rpc.data import DRIVER_ONLY
from manila_lite.rpc.share import ShareMigrationRpc
from manila_lite.share.drivers.base import ConnectionSupport
from manila_lite.share.manager import removal
from manila_lite.share.manager.driver_probe import BackendUnresponsive, DriverProbe
from manila_lite.share.manager.driver_view import migration_view
from manila_lite.share.manager.driver_view.migration_view import (
    LoadedShareMigration,
    ShareMigrationArguments,
)
from manila_lite.share.manager.endpoint import outdated, undo_late_call
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.share.manager.migrations.steps import (
    ShareMigrationRefused,
    ShareMigrationSteps,
    is_copied,
)
from manila_lite.share.manager.servers.migration_checks import Progress, read_progress
from manila_lite.states.access_rule import RulesStatus
from manila_lite.states.share_task import RUNNING, SHARE_TASK, ShareTask
from manila_lite.work import table
from manila_lite.work.job import JobContext, outside_of_jobs
from manila_lite.work.table import Claim

LOG = logging.getLogger(__name__)

CAST_PAUSE = 2.0
"""Seconds between checks whether rules have been cast to read-only."""

CAST_TIMEOUT = 600
"""Seconds after which a missing cast to read-only fails the migration."""

CAPABILITIES = ('writable', 'preserve_metadata', 'nondisruptive', 'preserve_snapshots')

_CONTINUE = work_kinds(ShareMigrationRpc)['share_migration.continue_share_migration']


@implements(ShareMigrationRpc)
@dataclasses.dataclass(eq=False)
class ShareMigrationsEndpoint(ShareMigrationSteps):
    """Carries out the migrations of shares from one back end.

    `work` is the client of its contract, `interval` the number of seconds
    between polls, and `probe` makes driver calls with a time limit.
    """

    db: Database
    probe: DriverProbe
    interval: Annotated[float, Option('migration_driver_continue_update_interval')]

    # The first phase

    @work(expects=ShareTask.IN_PROGRESS)
    def start_share_migration(
        self, job: JobContext, share_id: str, needs_release_2: bool = False
    ) -> None:
        loaded: LoadedShareMigration = job.prepared
        if loaded.lacks_server:
            job.hand_over(self.outcomes.request_server, job.claim, loaded)
            return
        host_assisted = self._needs_host_assistance(loaded)
        if not loaded.migration.writable and not self._is_cast_done(job, loaded):
            return
        if host_assisted:
            self._request_destination(job, loaded)
            return
        with undo_late_call(self._undo_if_rolled_back, job, loaded):
            try:
                self.driver.migration_start(driver_context(), *self._arguments(loaded))
            except (exception.ServiceUnavailable, exception.WorkHandedOn):
                raise  # it is called again
            except Exception:
                if not self._can_be_host_assisted(loaded):
                    raise
                LOG.exception(
                    'The driver cannot migrate share %s; the data service copies it',
                    share_id,
                )
                self._cancel(loaded)
                self._request_destination(job, loaded)
            else:
                job.hand_over(self._started, job.claim)

    def _request_destination(
        self, job: JobContext, loaded: LoadedShareMigration
    ) -> None:
        job.hand_over(
            self.outcomes.request_destination,
            job.claim,
            loaded,
            self.driver.configuration.migration_ignore_files,
        )

    def _can_be_host_assisted(self, loaded: LoadedShareMigration) -> bool:
        """Return whether the data service can do all that was demanded."""
        return isinstance(self.driver, ConnectionSupport) and not any(
            getattr(loaded.migration, name) for name in DRIVER_ONLY
        )

    def _needs_host_assistance(self, loaded: LoadedShareMigration) -> bool:
        """Return whether the data service has to copy.

        It does on request, and if the driver cannot copy and nothing was
        demanded that only drivers offer. Raises ShareMigrationRefused if
        neither can do all that was demanded.
        """
        if loaded.migration.host_assisted:
            return True
        source, destination, _, _, *servers = self._arguments(loaded)
        offer = self.driver.migration_check_compatibility(
            driver_context(), source, destination, *servers
        )
        missing = [
            name
            for name in CAPABILITIES
            if getattr(loaded.migration, name) and not offer.get(name)
        ]
        if not offer.get('compatible'):
            if self._can_be_host_assisted(loaded):
                return True
            raise ShareMigrationRefused(
                reason=f'the driver of {loaded.migration.source_host} cannot '
                f'migrate it to {loaded.migration.destination_host}'
            )
        if missing:
            raise ShareMigrationRefused(
                reason=f'the driver does not offer {", ".join(missing)}'
            )
        return False

    def _is_cast_done(self, job: JobContext, loaded: LoadedShareMigration) -> bool:
        """Return whether all rules are read-only; pause the work if not."""
        if not loaded.migration.casts_rules:
            job.pause(CAST_PAUSE, self.outcomes.cast_rules, loaded)
            return False
        status = loaded.source.row.access_rules_status
        if status == RulesStatus.ACTIVE:
            return True
        if status == RulesStatus.ERROR:
            raise exception.ShareBackendException(
                msg='access rules could not be cast to read-only'
            )
        waited = self.db.utcnow() - (
            loaded.migration.updated_at or loaded.migration.created_at
        )
        if waited.total_seconds() > CAST_TIMEOUT:
            raise exception.ShareBackendException(
                msg=f'access rules were not cast to read-only within {CAST_TIMEOUT} s'
            )
        job.pause(CAST_PAUSE)
        return False

    def _started(self, session: Session, job: Claim) -> None:
        """Hand over to the work that polls the first phase."""
        share_id = job.resource_id
        table.hand_over(session, job, _CONTINUE, job.queue, {'share_id': share_id})
        fire(session, SHARE_TASK, share_id, 'started')
        migrations.record_progress(session, share_id, None)

    def failed_start_share_migration(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        has_run_before = job.abandoned or job.attempt > 1
        if isinstance(error, ShareMigrationRefused) and not has_run_before:
            self._notify(session, job, error)
            self._record_error(session, job, error)
            self.outcomes.roll_back(session, job.resource_id, 'failed')
            return True
        return self._clean_up(session, job, error)

    @work(expects=ShareTask.DRIVER_IN_PROGRESS, failed='_clean_up')
    def continue_share_migration(self, job: JobContext, share_id: str) -> None:
        loaded: LoadedShareMigration = job.prepared
        if loaded.migration.host_assisted:
            # The driver would take the copy for complete.
            raise ShareMigrationRefused(reason='its data is copied by the data service')
        arguments = self._arguments(loaded)
        with undo_late_call(self._undo_if_rolled_back, job, loaded):
            if self.driver.migration_continue(driver_context(), *arguments):
                job.finish(self._copied, share_id)
            else:
                job.pause(
                    self.interval,
                    migrations.record_progress,
                    share_id,
                    *self._progress(arguments),
                )

    def _progress(self, arguments: ShareMigrationArguments) -> Progress:
        """Return what the driver reports, if it does."""
        try:
            result = self.probe.ask(
                self.driver.migration_get_progress, driver_context(), *arguments
            )
        except BackendUnresponsive:
            return Progress()
        # An error here does not affect the copy itself.
        return Progress() if result.reason else read_progress(result.value)

    def _copied(self, session: Session, share_id: str) -> None:
        fire(session, SHARE_TASK, share_id, 'phase1_done')
        migrations.record_progress(session, share_id, 100)

    def _undo_if_rolled_back(
        self, job: JobContext, loaded: LoadedShareMigration
    ) -> None:
        task, destination = job.read(self._after, loaded)
        if destination is not None and (
            task is None or task.task_state != ShareTask.CANCELLING
        ):
            return
        LOG.warning(
            'A late call for the migration of share %s is undone',
            loaded.source.row.share_id,
        )
        # The claim is lost as well, so this is not done for the job.
        with outside_of_jobs():
            self.driver.migration_cancel(driver_context(), *self._arguments(loaded))

    def _after(
        self, session: Session, loaded: LoadedShareMigration
    ) -> tuple[ShareTaskRow | None, InstanceRow | None]:
        """Return the task and the destination as they are now."""
        return (
            migrations.find_task(session, loaded.source.row.share_id),
            share_instances.find(session, loaded.destination.row.id),
        )

    # The second phase

    @work(expects=ShareTask.COMPLETING)
    def complete_share_migration(self, job: JobContext, share_id: str) -> None:
        loaded: LoadedShareMigration = job.prepared
        if loaded.migration.phase == 1:
            # Nothing says that all is copied.
            raise ShareMigrationRefused(reason='the second phase was not requested')
        if loaded.migration.host_assisted:
            self._delete_source(job, loaded)
            job.finish(self.outcomes.complete, loaded, {})
            return
        reply = (
            self.driver.migration_complete(driver_context(), *self._arguments(loaded))
            or {}
        )
        job.finish(self.outcomes.complete, loaded, reply)

    def _delete_source(self, job: JobContext, loaded: LoadedShareMigration) -> None:
        """Delete the source, of which the destination is a full copy."""
        if not is_copied(loaded.migration):
            raise ShareMigrationRefused(reason='the copy is not complete')
        source, *_ = self._arguments(loaded)
        removing = removal.begin(
            job, self.driver, loaded.source.row, source, loaded.source.share_server
        )
        with removing():
            self.driver.delete_share(
                driver_context(), source, loaded.source.share_server
            )

    def failed_complete_share_migration(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        self._notify(session, job, error)
        migration = migrations.find_open(session, job.resource_id)
        if (
            migration is not None
            and migration.host_assisted
            and migration.phase == 2
            and is_copied(migration)
        ):
            # Nothing but the deletion of the source has failed.
            self.outcomes.complete(
                session,
                migration_view.load_share_migration(session, job.resource_id),
                {},
                str(error),
            )
            return True
        if isinstance(error, ShareMigrationRefused):
            self._keep_remains(session, job.resource_id, str(error))
        else:
            migration_quota.give_up(session, job.resource_id, str(error))
        moves.end_task(session, job.resource_id, 'failed')
        return True

    # Cancel

    @work(expects=ShareTask.CANCELLING, failed='_fail')
    def cancel_share_migration(self, job: JobContext, share_id: str) -> None:
        loaded: LoadedShareMigration = job.prepared
        if loaded.migration.host_assisted:
            self._request_removal(job, loaded)
            return
        self._cancel(loaded)
        job.finish(
            self.outcomes.roll_back,
            share_id,
            'failed' if loaded.migration.error else 'cancelled',
        )

    def _request_removal(self, job: JobContext, loaded: LoadedShareMigration) -> None:
        """Remove the destination; a data service may have died with a connection."""
        source, _, _, _, server, _ = self._arguments(loaded)
        self.driver.connection_end(driver_context(), source, server)
        job.hand_over(self.outcomes.request_removal, job.claim, loaded)

    def _cancel(self, loaded: LoadedShareMigration) -> None:
        """Let the driver remove what it may have copied."""
        if not loaded.lacks_server:
            self.driver.migration_cancel(driver_context(), *self._arguments(loaded))

    # Abandoned migrations

    def prepare_settle_share_migration(
        self, session: Session, job: Claim
    ) -> ShareMigrationRow | None:
        task = migrations.find_task(session, job.resource_id, lock_shared=True)
        state = task and task.task_state
        if state in _CONTINUED:
            raise outdated(
                job,
                SHARE_TASK,
                job.resource_id,
                state,
                'a state that no other work continues',
            )
        return migrations.find_open(session, job.resource_id)

    def settle_share_migration(self, job: JobContext, share_id: str) -> None:
        """End a migration that was lost before it began, or was reset."""
        migration: ShareMigrationRow | None = job.prepared
        if migration is not None and migration.phase == 2:
            raise exception.InvalidShare(
                reason='the second phase of the migration was abandoned'
            )
        if migration is not None and migration.destination_instance_id:
            loaded = job.read(migration_view.load_share_migration, share_id)
            if migration.host_assisted:
                self._request_removal(job, loaded)
                return
            self._cancel(loaded)
        job.finish(self._end_abandoned, share_id)

    def _end_abandoned(self, session: Session, share_id: str) -> None:
        self.outcomes.roll_back(session, share_id, 'failed')

    def failed_settle_share_migration(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        self.end_lost(session, job.resource_id, str(error))
        self._notify(session, job, error)
        return True

    def end_lost(self, session: Session, share_id: str, reason: str) -> None:
        """End a migration without another call of a driver."""
        migration = migrations.find_open(session, share_id)
        if migration is not None and migration.phase == 2:
            migration_quota.give_up(session, share_id, reason)
        else:
            self._keep_remains(session, share_id, reason)
        moves.end_task(session, share_id, 'failed')

    # Calls

    def hear_share_migration(self, ctx: RequestContext, share_id: str) -> None:
        """Get the progress from the driver and store it."""
        try:
            task = self.db.read(migrations.find_task, share_id)
            if task is None or (task.task_state != ShareTask.DRIVER_IN_PROGRESS):
                return
            loaded = self.db.read(migration_view.load_share_migration, share_id)
            # Threads that serve calls must not wait for slow drivers.
            result = self.probe.poll(
                loaded.migration.id,
                self.driver.migration_get_progress,
                driver_context(),
                *self._arguments(loaded),
            )
        except exception.ManilaLiteError:
            return  # it has ended meanwhile, or the back end is slow
        if not result.reason:
            self.db.write(
                migrations.record_progress, share_id, *read_progress(result.value)
            )


_CONTINUED = RUNNING - {ShareTask.STARTING}
"""The states in which other work, or an administrator, ends it."""
