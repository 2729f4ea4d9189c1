"""Migrate shares to other back ends, in two phases.

All work runs on the service of the source. The first phase is started and
then polled periodically; an administrator starts the second phase or cancels
the migration. Every step is idempotent, so abandoned work is simply run
again. `outcomes` records what has become of it.
"""

from collections.abc import Iterator
import contextlib
import logging

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.moves import share_migrations as moves
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.queries.shares import migrations
from manila_lite.db.rows import InstanceRow
from manila_lite.db.rows import ShareMigrationRow
from manila_lite.db.rows import ShareTaskRow
from manila_lite.db.session import Database
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.db.transitions import fire_matching
from manila_lite.messages import Action
from manila_lite.messages import detail_in
from manila_lite.rpc.contract import Client
from manila_lite.rpc.contract import implements
from manila_lite.rpc.contract import work_kinds
from manila_lite.rpc.share import ShareMigrationRpc
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.manager.driver_probe import BackendUnresponsive
from manila_lite.share.manager.driver_probe import DriverProbe
from manila_lite.share.manager.driver_view import share_migration_view
from manila_lite.share.manager.driver_view.share_migration_view import (
    DriverArguments,
)
from manila_lite.share.manager.driver_view.share_migration_view import (
    LoadedShareMigration,
)
from manila_lite.share.manager.endpoint import outdated
from manila_lite.share.manager.endpoint import require_status
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.share.manager.migrations.outcomes import (
    ShareMigrationOutcomes,
)
from manila_lite.share.manager.servers.migration_progress import Progress
from manila_lite.share.manager.servers.migration_progress import read_progress
from manila_lite.states.access_rule import RulesStatus
from manila_lite.states.share_task import RUNNING
from manila_lite.states.share_task import SHARE_TASK
from manila_lite.states.share_task import ShareTask
from manila_lite.work import table
from manila_lite.work.job import JobContext
from manila_lite.work.job import outside_of_jobs
from manila_lite.work.notify import notify_user
from manila_lite.work.table import Claim

LOG = logging.getLogger(__name__)

CAST_PAUSE = 2.0
"""Seconds between checks whether rules have been cast to read-only."""

CAST_TIMEOUT = 600
"""Seconds after which a missing cast to read-only fails the migration."""

CAPABILITIES = (
    'writable',
    'preserve_metadata',
    'nondisruptive',
    'preserve_snapshots',
)

_CONTINUE = work_kinds(ShareMigrationRpc)[
    'share_migration.continue_share_migration'
]


class ShareMigrationRefused(exception.ManilaLiteError):
    """The driver cannot fulfil the request; this call has done nothing."""

    message = 'The share cannot be migrated: {reason}'


@implements(ShareMigrationRpc)
class ShareMigrationsEndpoint:
    """Carries out the migrations of shares from one back end.

    `work` is the client of its contract, `interval` the number of seconds
    between polls, and `probe` makes driver calls with a time limit.
    """

    def __init__(
        self,
        db: Database,
        driver: ShareDriver,
        outcomes: ShareMigrationOutcomes,
        work: Client,
        service_host: str,
        *,
        name_template: str,
        interval: float,
        probe: DriverProbe,
        message_ttl: int,
    ):
        self.db = db
        self.driver = driver
        self.outcomes = outcomes
        self.work = work.on(service_host)
        self.name_template = name_template
        self.interval = interval
        self.probe = probe
        self.message_ttl = message_ttl

    # The first phase

    def prepare_start_share_migration(
        self, session: Session, job: Claim
    ) -> LoadedShareMigration:
        return self._expect(session, job, ShareTask.IN_PROGRESS)

    def start_share_migration(self, job: JobContext, share_id: str) -> None:
        loaded: LoadedShareMigration = job.prepared
        self._refuse_incompatible(loaded)
        if not loaded.migration.writable and not self._is_cast_done(
            job, loaded
        ):
            return
        with self._undo_late_call(job, loaded):
            self.driver.migration_start(
                driver_context(), *self._arguments(loaded)
            )
            job.hand_over(self._started, job.claim)

    def _refuse_incompatible(self, loaded: LoadedShareMigration) -> None:
        """Raise ShareMigrationRefused unless the driver can do all of it."""
        offer = self.driver.migration_check_compatibility(
            driver_context(),
            *share_migration_view.shares_for_driver(
                loaded, self.name_template
            ),
        )
        missing = [
            name
            for name in CAPABILITIES
            if getattr(loaded.migration, name) and not offer.get(name)
        ]
        if not offer.get('compatible'):
            raise ShareMigrationRefused(
                reason=f'the driver of {loaded.migration.source_host} cannot '
                f'migrate it to {loaded.migration.destination_host}'
            )
        if missing:
            raise ShareMigrationRefused(
                reason=f'the driver does not offer {", ".join(missing)}'
            )

    def _is_cast_done(
        self, job: JobContext, loaded: LoadedShareMigration
    ) -> bool:
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
                msg='access rules were not cast to read-only within '
                f'{CAST_TIMEOUT} s'
            )
        job.pause(CAST_PAUSE)
        return False

    def _started(self, session: Session, job: Claim) -> None:
        """Hand over to the work that polls the first phase."""
        share_id = job.resource_id
        table.hand_over(
            session, job, _CONTINUE, job.queue, {'share_id': share_id}
        )
        fire(session, SHARE_TASK, share_id, 'started', updated_at=session.now)
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

    def prepare_continue_share_migration(
        self, session: Session, job: Claim
    ) -> LoadedShareMigration:
        return self._expect(session, job, ShareTask.DRIVER_IN_PROGRESS)

    def continue_share_migration(self, job: JobContext, share_id: str) -> None:
        loaded: LoadedShareMigration = job.prepared
        arguments = self._arguments(loaded)
        with self._undo_late_call(job, loaded):
            if self.driver.migration_continue(driver_context(), *arguments):
                job.finish(self._copied, share_id)
            else:
                job.pause(
                    self.interval,
                    migrations.record_progress,
                    share_id,
                    *self._progress(arguments),
                )

    def _progress(self, arguments: DriverArguments) -> Progress:
        """Return what the driver reports, if it does."""
        try:
            result = self.probe.ask(
                self.driver.migration_get_progress,
                driver_context(),
                *arguments,
            )
        except BackendUnresponsive:
            return Progress()
        # An error here does not affect the copy itself.
        return Progress() if result.reason else read_progress(result.value)

    def _copied(self, session: Session, share_id: str) -> None:
        fire(
            session,
            SHARE_TASK,
            share_id,
            'phase1_done',
            updated_at=session.now,
        )
        migrations.record_progress(session, share_id, 100)

    def failed_continue_share_migration(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        return self._clean_up(session, job, error)

    def _clean_up(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        """Let other work remove what was copied; the migration fails."""
        self._notify(session, job, error)
        self._record_error(session, job, error)
        share_id = job.resource_id
        if fire_matching(
            session,
            SHARE_TASK,
            'clean_up',
            {'id': share_id},
            updated_at=session.now,
        ):
            self.work.cancel_share_migration(
                session, job.request_context(), share_id=share_id
            )
        return True

    def _record_error(
        self, session: Session, job: Claim, error: Exception
    ) -> None:
        migrations.set_error(session, job.resource_id, str(error))

    @contextlib.contextmanager
    def _undo_late_call(
        self, job: JobContext, loaded: LoadedShareMigration
    ) -> Iterator[None]:
        """Undo a driver call of the first phase that came too late.

        Around the call and its end. The worker may have been paused in the
        call until another one had taken over and the migration had been
        rolled back: no row refers to what the call made any more.
        """
        with contextlib.ExitStack() as stack:
            stack.callback(self._undo_if_rolled_back, job, loaded)
            yield
            stack.pop_all()

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
            self.driver.migration_cancel(
                driver_context(), *self._arguments(loaded)
            )

    def _after(
        self, session: Session, loaded: LoadedShareMigration
    ) -> tuple[ShareTaskRow | None, InstanceRow | None]:
        """Return the task and the destination as they are now."""
        return (
            migrations.find_task(session, loaded.source.row.share_id),
            share_instances.find(session, loaded.destination.row.id),
        )

    # The second phase

    def prepare_complete_share_migration(
        self, session: Session, job: Claim
    ) -> LoadedShareMigration:
        return self._expect(session, job, ShareTask.COMPLETING)

    def complete_share_migration(self, job: JobContext, share_id: str) -> None:
        loaded: LoadedShareMigration = job.prepared
        if loaded.migration.phase == 1:
            # Nothing says that all is copied.
            raise ShareMigrationRefused(
                reason='the second phase was not requested'
            )
        reply = (
            self.driver.migration_complete(
                driver_context(), *self._arguments(loaded)
            )
            or {}
        )
        job.finish(self.outcomes.complete, loaded, reply)

    def failed_complete_share_migration(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        self._notify(session, job, error)
        if isinstance(error, ShareMigrationRefused):
            self._keep_remains(session, job, error)
        else:
            moves.give_up(session, job.resource_id, str(error))
        moves.end_task(session, job.resource_id, 'failed')
        return True

    # Cancel

    def prepare_cancel_share_migration(
        self, session: Session, job: Claim
    ) -> LoadedShareMigration:
        return self._expect(session, job, ShareTask.CANCELLING)

    def cancel_share_migration(self, job: JobContext, share_id: str) -> None:
        loaded: LoadedShareMigration = job.prepared
        self.driver.migration_cancel(
            driver_context(), *self._arguments(loaded)
        )
        job.finish(
            self.outcomes.roll_back,
            share_id,
            'failed' if loaded.migration.error else 'cancelled',
        )

    def failed_cancel_share_migration(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        self._notify(session, job, error)
        self._keep_remains(session, job, error)
        moves.end_task(session, job.resource_id, 'failed')
        return True

    def _keep_remains(
        self, session: Session, job: Claim, error: Exception
    ) -> None:
        self.outcomes.restore_rules(session, job.resource_id)
        moves.keep_remains(session, job.resource_id, str(error))

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
            loaded = job.read(share_migration_view.load_migration, share_id)
            self.driver.migration_cancel(
                driver_context(), *self._arguments(loaded)
            )
        job.finish(self._settled, share_id)

    def _settled(self, session: Session, share_id: str) -> None:
        self.outcomes.roll_back(session, share_id, 'failed')

    def failed_settle_share_migration(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        migration = migrations.find_open(session, job.resource_id)
        if migration is not None and migration.phase == 2:
            moves.give_up(session, job.resource_id, str(error))
        else:
            self._keep_remains(session, job, error)
        self._notify(session, job, error)
        moves.end_task(session, job.resource_id, 'failed')
        return True

    # All

    def _expect(
        self, session: Session, job: Claim, task_state: str
    ) -> LoadedShareMigration:
        """Return the migration if it still waits for this work."""
        task = migrations.find_task(session, job.resource_id, lock_shared=True)
        if task is None:
            raise exception.ShareNotFound(share_id=job.resource_id)
        require_status(job, SHARE_TASK, task.id, task.task_state, task_state)
        return share_migration_view.load_migration(session, job.resource_id)

    def _arguments(self, loaded: LoadedShareMigration) -> DriverArguments:
        return share_migration_view.driver_arguments(
            loaded, self.name_template
        )

    def _notify(self, session: Session, job: Claim, error: Exception) -> None:
        notify_user(
            session,
            job,
            Action.UPDATE,
            detail_in(error),
            self.message_ttl,
            explanation=str(error),
        )

    # Calls

    def hear_share_migration(self, ctx: RequestContext, share_id: str) -> None:
        """Get the progress from the driver and store it."""
        try:
            task = self.db.read(migrations.find_task, share_id)
            if task is None or (
                task.task_state != ShareTask.DRIVER_IN_PROGRESS
            ):
                return
            loaded = self.db.read(
                share_migration_view.load_migration, share_id
            )
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
                migrations.record_progress,
                share_id,
                *read_progress(result.value),
            )


_CONTINUED = RUNNING - {ShareTask.STARTING}
"""The states in which other work, or an administrator, ends it."""
