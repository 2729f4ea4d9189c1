"""What the steps of share migrations share; destinations on servers."""

import dataclasses
from typing import Annotated

from manila_lite import exception
from manila_lite.conf import Option
from manila_lite.db.moves import share_migrations as moves
from manila_lite.db.queries.servers import share_servers
from manila_lite.db.queries.shares import migrations
from manila_lite.db.rows import ShareMigrationRow
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire_matching
from manila_lite.messages import Action, Detail, detail_in, explanation_in
from manila_lite.quota import shares as migration_quota
from manila_lite.rpc.contract import Client, implements, work
from manila_lite.rpc.share import MigrationServersRpc, ShareMigrationRpc
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.manager.driver_view import migration_view
from manila_lite.share.manager.driver_view.migration_view import (
    LoadedShareMigration,
    ShareMigrationArguments,
)
from manila_lite.share.manager.driver_view.share_view import NameTemplates
from manila_lite.share.manager.endpoint import is_on, require_status
from manila_lite.share.manager.migrations.outcomes import ShareMigrationOutcomes
from manila_lite.share.manager.servers.demand import failure_detail
from manila_lite.share.manager.servers.setup import ServerSetup
from manila_lite.states.share_task import SHARE_TASK, ShareTask
from manila_lite.work.job import JobContext
from manila_lite.work.notify import notify_user
from manila_lite.work.table import Claim


class ShareMigrationRefused(exception.Invalid):
    """The driver cannot fulfil the request; this call has done nothing."""

    message = 'The share cannot be migrated: {reason}'


def is_copied(migration: ShareMigrationRow) -> bool:
    """Return whether the data service has copied everything."""
    return migration.progress == 100


@dataclasses.dataclass(eq=False)
class ShareMigrationSteps:
    """The base class of endpoints."""

    driver: ShareDriver
    outcomes: ShareMigrationOutcomes
    work: Client[ShareMigrationRpc]
    names: NameTemplates
    message_ttl: Annotated[int, Option('message_ttl')]

    def expect(
        self, session: Session, job: Claim, *task_states: str
    ) -> LoadedShareMigration:
        """Return the migration if it still waits for this work."""
        task = migrations.find_task(session, job.resource_id, lock_shared=True)
        if task is None:
            raise exception.ShareNotFound(share_id=job.resource_id)
        require_status(job, SHARE_TASK, task.id, task.task_state, *task_states)
        return migration_view.load_share_migration(session, job.resource_id)

    def _arguments(self, loaded: LoadedShareMigration) -> ShareMigrationArguments:
        return migration_view.share_migration_arguments(loaded, self.names)

    def _notify(
        self,
        session: Session,
        job: Claim,
        error: Exception,
        detail: Detail | None = None,
    ) -> None:
        notify_user(
            session,
            job,
            Action.UPDATE,
            detail or detail_in(error) or Detail.UNKNOWN_ERROR,
            self.message_ttl,
            explanation=(
                str(error)
                if isinstance(error, ShareMigrationRefused)
                else explanation_in(error)
            ),
        )

    def _clean_up(self, session: Session, job: Claim, error: Exception) -> bool:
        """Let other work remove what was copied; the migration fails."""
        self._notify(session, job, error)
        self._record_error(session, job, error)
        share_id = job.resource_id
        if fire_matching(session, SHARE_TASK, 'clean_up', {'id': share_id}):
            migration = migrations.get_open(session, share_id)
            self.work.on(migration.source_host).cancel_share_migration(
                session, job.request_context(), share_id=share_id
            )
        return True

    def _record_error(self, session: Session, job: Claim, error: Exception) -> None:
        migrations.set_error(session, job.resource_id, str(error))

    def _fail(self, session: Session, job: Claim, error: Exception) -> bool:
        """End the migration; what was copied may still be on the back ends."""
        self._notify(session, job, error)
        self._keep_remains(session, job.resource_id, str(error))
        moves.end_task(session, job.resource_id, 'failed')
        return True

    def _keep_remains(self, session: Session, share_id: str, reason: str) -> None:
        self.outcomes.restore_rules(session, share_id)
        migration_quota.keep_remains(session, share_id, reason)


@implements(MigrationServersRpc)
@dataclasses.dataclass(eq=False)
class MigrationServersEndpoint(ShareMigrationSteps):
    """Provides the share servers on one back end, as for new shares.

    The driver of the source is called when the destination is on its server,
    and not before.
    """

    setup: ServerSetup

    @work(expects=ShareTask.IN_PROGRESS)
    def provide_migration_server(self, job: JobContext, share_id: str) -> None:
        loaded: LoadedShareMigration = job.prepared
        destination = self.setup.provide_server(
            job, loaded.destination, stays_on=self._server_to_stay_on(loaded)
        )
        if destination is None:
            return
        job.hand_over(self.outcomes.request_start, job.claim, loaded.migration)

    def _server_to_stay_on(self, loaded: LoadedShareMigration) -> str | None:
        """Return the server of a share that its clients notice nothing of.

        None if it has to leave it: its addresses are those of the server.
        """
        source = loaded.source.row
        if (
            loaded.migration.nondisruptive
            and is_on(source, self.setup.service_host)
            and source.share_network_id == loaded.destination.row.share_network_id
        ):
            return source.share_server_id
        return None

    def failed_provide_migration_server(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        """Roll back at once, unless something may have been copied.

        That may be if an administrator has reset the status of the server.
        """
        migration = migrations.find_open(session, job.resource_id)
        instance_id = migration and migration.destination_instance_id
        server_id = instance_id and share_servers.find_server_id(session, instance_id)
        if server_id and not self.setup.fail_build(
            session, server_id, error, keep_addresses=job.attempt > 1
        ):
            return self._clean_up(session, job, error)
        self._notify(session, job, error, failure_detail(error))
        self._record_error(session, job, error)
        self.outcomes.roll_back(session, job.resource_id, 'failed')
        return True
