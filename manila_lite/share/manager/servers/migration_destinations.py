"""Choose or build the destination server of a migration."""

from collections.abc import Callable, Mapping
import dataclasses
import functools
import logging
import typing

from manila_lite import exception
from manila_lite.db.queries.servers import (
    migrations as server_migrations,
    share_servers,
)
from manila_lite.db.queries.services import services
from manila_lite.db.rows import MigrationRow, ShareServerRow
from manila_lite.db.session import Session
from manila_lite.rpc.share import BINARY
from manila_lite.share.drivers.base import ServerMigrationCompatibility, ShareDriver
from manila_lite.share.manager.driver_view import migration_view, server_view
from manila_lite.share.manager.driver_view.migration_view import LoadedMigration
from manila_lite.share.manager.driver_view.server_view import LoadedServer
from manila_lite.share.manager.driver_view.share_view import NameTemplates
from manila_lite.share.manager.endpoint import undo_if_gone
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.share.manager.servers.demand import key_for_driver
from manila_lite.share.manager.servers.migration_checks import (
    MigrationChecks,
    incompatibilities,
)
from manila_lite.share.manager.servers.migration_phases import (
    ServerMigrationPhases,
    store_details,
)
from manila_lite.share.manager.servers.setup import ServerSetup
from manila_lite.states.share_server import ServerStatus, TaskState
from manila_lite.work import table
from manila_lite.work.job import JobContext, outside_of_jobs

LOG = logging.getLogger(__name__)

_LEAVING = frozenset({ServerStatus.DELETING, ServerStatus.INACTIVE})
"""The statuses of a destination that is removed or waits for that."""


class ServerMigrationRefused(exception.Invalid):
    """The driver of the destination cannot fulfil the request."""

    message = 'The share server cannot be migrated: {reason}'


@dataclasses.dataclass(eq=False)
class MigrationDestinations:
    """Provides the servers that migrations to one back end end on."""

    driver: ShareDriver
    phases: ServerMigrationPhases
    setup: ServerSetup
    checks: MigrationChecks
    names: NameTemplates
    service_host: str

    def choose(self, job: JobContext, loaded: LoadedMigration) -> LoadedMigration:
        """Let the driver choose a destination, or create one."""
        if self.setup.networks is None:
            raise ServerMigrationRefused(
                reason='the destination does not handle share servers'
            )
        reply = self.checks.check(job.read, loaded)
        reasons = incompatibilities(reply, loaded.migration)
        if reasons:
            raise ServerMigrationRefused(reason='; '.join(reasons))
        chosen = None
        if not loaded.migration.nondisruptive:
            chosen = self._choose(job, loaded)
        return write_step(job, 'placed', self._set_destination, loaded, reply, chosen)

    def _choose(self, job: JobContext, loaded: LoadedMigration) -> str | None:
        offered = job.read(self._suitable, loaded)
        chosen = self.driver.choose_share_server_compatible_for_migration(
            driver_context(),
            [server_view.server_for_driver(one) for one in offered],
            server_view.server_for_driver(loaded.source),
            *migration_view.contents_for_driver(
                loaded.shares, loaded.snapshots, self.names
            ),
        )
        return None if chosen is None else chosen['id']

    def _suitable(
        self, session: Session, loaded: LoadedMigration
    ) -> list[LoadedServer]:
        ids = share_servers.list_suitable(
            session,
            self.service_host,
            self._subnets(session, loaded),
            sum(one.row.size for one in loaded.shares),
            self.setup.limits,
            encryption_key_ref=loaded.source.row.encryption_key_ref,
        )
        return list(server_view.load_servers(session, ids).values())

    def _subnets(self, session: Session, loaded: LoadedMigration) -> list[str]:
        """Return the ids of the subnets for the destination's addresses."""
        zone = services.get(session, self.service_host, BINARY).zone
        network_id = loaded.migration.new_share_network_id
        return [
            row.id for row in share_servers.list_zone_subnets(session, network_id, zone)
        ]

    def _set_destination(
        self,
        session: Session,
        loaded: LoadedMigration,
        reply: ServerMigrationCompatibility,
        chosen: str | None,
    ) -> None:
        server_migrations.update(
            session,
            loaded.migration.id,
            can_cancel=bool(reply.get('migration_cancel')),
            tells_progress=bool(reply.get('migration_get_progress')),
        )
        if chosen is not None:
            self.phases.adopt_destination(session, loaded, chosen)
            return
        # A nondisruptive migration takes over the addresses of the source.
        subnets = (
            [] if loaded.migration.nondisruptive else self._subnets(session, loaded)
        )
        self.phases.create_destination(
            session,
            loaded,
            self.setup.initial_columns(
                session, session.new_id(), loaded.migration.new_share_network_id
            ),
            subnets,
        )

    def set_up(self, job: JobContext, loaded: LoadedMigration) -> LoadedMigration:
        """Allocate addresses and set up the destination server.

        In a nondisruptive migration the driver sets it up itself at the
        start, and the addresses are taken over at the end.
        """
        details: Mapping[str, typing.Any] = {}
        server_id = loaded.chosen_destination.row.id
        if not loaded.migration.nondisruptive:
            self.setup.allocate(loaded.chosen_destination)
            details = (
                self.driver.setup_server(
                    job.read(self.setup.network_info, server_id),
                    metadata={
                        'request_host': loaded.dest_host,
                        'migration': True,
                        'source_share_server_id': loaded.source.row.id,
                        **key_for_driver(loaded.source.row.encryption_key_ref),
                    },
                )
                or {}
            )
        undo = functools.partial(
            self.driver.teardown_server, {'server_id': server_id, **details}
        )
        with undo_if_gone(job, share_servers.find, server_id, undo, _LEAVING):
            return write_step(job, 'set up', self._record_set_up, loaded, details)

    def _record_set_up(
        self,
        session: Session,
        loaded: LoadedMigration,
        details: Mapping[str, typing.Any],
    ) -> None:
        server_migrations.update(session, loaded.migration.id, is_set_up=True)
        store_details(session, loaded.chosen_destination.row.id, details)

    # The end of the first phase

    def cancel(self, loaded: LoadedMigration) -> None:
        """Let the driver remove what it has copied to the destination."""
        if loaded.destination is None:
            return  # nothing was begun
        self.driver.share_server_migration_cancel(
            driver_context(), *migration_view.driver_arguments(loaded, self.names)
        )

    def undo_if_rolled_back(self, job: JobContext, loaded: LoadedMigration) -> None:
        """Undo a driver call for a migration that is not under way any more."""
        row, server = job.read(self._after, loaded)
        if row is not None and (
            row.open_for is not None
            or row.phase == 2
            or row.outcome == TaskState.COMPLETED
        ):
            return
        LOG.warning(
            'A late call for the migration of share server %s is undone',
            loaded.source.row.id,
        )
        # The claim is lost as well, so this is not done for the job.
        with outside_of_jobs():
            if loaded.migration.can_cancel:
                self.cancel(loaded)
            if loaded.migration.made_destination and (
                server is None or server.status in _LEAVING
            ):
                self.driver.teardown_server(
                    server_view.details_for_driver(loaded.chosen_destination)
                )

    def _after(
        self, session: Session, loaded: LoadedMigration
    ) -> tuple[MigrationRow | None, ShareServerRow | None]:
        """Return the migration and its destination as they are now."""
        return (
            server_migrations.find(session, loaded.migration.id),
            share_servers.find(session, loaded.chosen_destination.row.id),
        )


def write_step(
    job: JobContext, step: str, function: Callable[..., object], *args: object
) -> LoadedMigration:
    """Write a step under the claim; return the migration as it is then."""

    def write(session: Session) -> LoadedMigration:
        table.checkpoint(session, job.claim, step)
        function(session, *args)
        return migration_view.load_migration(session, job.resource_id)

    return job.db.write(write, by=job.claim)
