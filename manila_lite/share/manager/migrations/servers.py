"""Put shares that are migrated on share servers of their destination."""

import dataclasses

from manila_lite.db.queries.servers import share_servers
from manila_lite.db.queries.shares import migrations
from manila_lite.db.session import Session
from manila_lite.rpc.contract import implements, work
from manila_lite.rpc.share import MigrationServersRpc
from manila_lite.share.manager.driver_view.share_migration_view import (
    LoadedShareMigration,
)
from manila_lite.share.manager.endpoint import is_on
from manila_lite.share.manager.migrations.steps import ShareMigrationSteps
from manila_lite.share.manager.servers.demand import failure_detail
from manila_lite.share.manager.servers.setup import ServerSetup
from manila_lite.states.share_task import ShareTask
from manila_lite.work.job import JobContext
from manila_lite.work.table import Claim


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
