"""Migrate shares that the data service copies.

The back end of the destination creates the share and, if the migration does
not succeed, removes it. The rest is done by that of the source.
"""

from manila_lite import exception
from manila_lite.db.queries.shares import instances as share_instances, migrations
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.rpc.contract import implements, work
from manila_lite.rpc.share import HostAssistedMigrationRpc
from manila_lite.share.drivers.base import ExportLocation, normalise_export_locations
from manila_lite.share.manager.driver_view import migration_view
from manila_lite.share.manager.driver_view.migration_view import LoadedShareMigration
from manila_lite.share.manager.endpoint import undo_if_gone
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.share.manager.migrations.steps import ShareMigrationSteps
from manila_lite.states.share_task import RUNNING, SHARE_TASK, ShareTask
from manila_lite.work.job import JobContext
from manila_lite.work.table import Claim


@implements(HostAssistedMigrationRpc)
class HostAssistedMigrationsEndpoint(ShareMigrationSteps):
    """The part of one back end in the copies of the data service."""

    # On the back end of the destination

    @work(expects=ShareTask.IN_PROGRESS, failed='_clean_up')
    def create_destination(
        self, job: JobContext, share_id: str, ignored: list[str]
    ) -> None:
        loaded: LoadedShareMigration = job.prepared
        _, destination, *_ = self._arguments(loaded)
        locations = normalise_export_locations(
            self.driver.create_share(
                driver_context(), destination, loaded.destination.share_server
            )
        )
        with undo_if_gone(
            job,
            share_instances.find,
            loaded.destination.row.id,
            lambda: self._delete(loaded),
        ):
            job.hand_over(self._created, job.claim, loaded, locations, ignored)

    def _created(
        self,
        session: Session,
        job: Claim,
        loaded: LoadedShareMigration,
        locations: list[ExportLocation],
        ignored: list[str],
    ) -> None:
        share_id = job.resource_id
        self.outcomes.request_copy(session, job, share_id, ignored)
        fire(session, SHARE_TASK, share_id, 'copy')
        migrations.record_progress(session, share_id, 0)
        share_instances.replace_export_locations(
            session, loaded.destination.row.id, locations
        )

    def prepare_remove_destination(
        self, session: Session, job: Claim
    ) -> LoadedShareMigration:
        """Unless an administrator has let the migration go on meanwhile."""
        task = migrations.find_task(session, job.resource_id, lock_shared=True)
        going_on = RUNNING - {ShareTask.STARTING, ShareTask.CANCELLING}
        if task is None or task.task_state in going_on:
            raise exception.InvalidStatus(
                resource='share',
                id=job.resource_id,
                status=task and task.task_state,
                event=job.kind,
                allowed='a state in which the migration ends',
            )
        return migration_view.load_share_migration(session, job.resource_id)

    @work(failed='_fail')
    def remove_destination(self, job: JobContext, share_id: str) -> None:
        loaded: LoadedShareMigration = job.prepared
        self._delete(loaded)
        job.finish(self._removed, share_id)

    def _removed(self, session: Session, share_id: str) -> None:
        task = migrations.find_task(session, share_id)
        migration = migrations.get_open(session, share_id)
        is_cancelled = (
            task is not None
            and task.task_state == ShareTask.CANCELLING
            and not migration.error
        )
        self.outcomes.roll_back(
            session, share_id, 'cancelled' if is_cancelled else 'failed'
        )

    def _delete(self, loaded: LoadedShareMigration) -> None:
        if loaded.lacks_server:
            return  # it was never created
        _, destination, *_ = self._arguments(loaded)
        try:
            self.driver.delete_share(
                driver_context(), destination, loaded.destination.share_server
            )
        except exception.ShareResourceNotFound:
            return

    # On the back end of the source

    @work(expects=(ShareTask.COPY_STARTING, ShareTask.COPYING), failed='_clean_up')
    def resume_share_copy(self, job: JobContext, share_id: str) -> None:
        job.hand_over(
            self.outcomes.request_copy,
            job.claim,
            share_id,
            self.driver.configuration.migration_ignore_files,
        )
