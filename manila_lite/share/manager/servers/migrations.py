"""Migrate share servers to this back end, in two phases.

All work runs on the service of the destination. The first phase is
started and then polled periodically; an administrator starts the second
phase or cancels the migration. Every step is idempotent, so abandoned
work is simply run again. `migration_phases` records the outcomes.
"""

from collections.abc import Callable, Mapping
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.admin import services
from manila_lite.db.queries.servers import migrations as server_migrations
from manila_lite.db.queries.servers import relocation as server_relocation
from manila_lite.db.queries.servers import share_servers
from manila_lite.db.rows import MigrationRow
from manila_lite.db.session import Database
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.rpc.contract import implements
from manila_lite.rpc.contract import work_kinds
from manila_lite.rpc.share import BINARY
from manila_lite.rpc.share import ServerMigrationRpc
from manila_lite.share.drivers.base import ServerMigrationCompatibility
from manila_lite.share.drivers.base import ServerMigrationStartReply
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.manager.driver_probe import BackendUnresponsive
from manila_lite.share.manager.driver_probe import DriverProbe
from manila_lite.share.manager.driver_probe import ProbeResult
from manila_lite.share.manager.driver_view import migration_view
from manila_lite.share.manager.driver_view import server_view
from manila_lite.share.manager.driver_view.migration_view import (
    DriverArguments,
)
from manila_lite.share.manager.driver_view.migration_view import (
    LoadedMigration,
)
from manila_lite.share.manager.driver_view.server_view import LoadedServer
from manila_lite.share.manager.driver_view.share_view import LoadedInstance
from manila_lite.share.manager.driver_view.share_view import MovingSnapshot
from manila_lite.share.manager.driver_view.share_view import NameTemplates
from manila_lite.share.manager.endpoint import outdated
from manila_lite.share.manager.endpoint import require_status
from manila_lite.share.manager.servers.migration_phases import (
    ServerMigrationPhases,
)
from manila_lite.share.manager.servers.migration_phases import is_abandoned
from manila_lite.share.manager.servers.migration_phases import store_details
from manila_lite.share.manager.servers.setup import ServerSetup
from manila_lite.states.access_rule import RulesStatus
from manila_lite.states.share_server import SHARE_SERVER
from manila_lite.states.share_server import SHARE_SERVER_TASK
from manila_lite.states.share_server import TaskState
from manila_lite.work import table
from manila_lite.work.runner import JobContext
from manila_lite.work.table import Claim

CAST_PAUSE = 2.0
"""Seconds between checks whether rules have been cast to read-only."""

CAST_TIMEOUT = 600
"""Seconds after which a missing cast to read-only fails the migration."""

_CONTINUE = work_kinds(ServerMigrationRpc)[
    'server_migration.continue_server_migration'
]

_UNMET = {
    'writable': 'the driver cannot keep the shares writable',
    'nondisruptive': 'the driver cannot migrate without disruption',
    'preserve_snapshots': 'the driver cannot preserve snapshots',
}


class ServerMigrationRefused(exception.ManilaLiteError):
    """The driver of the destination cannot fulfil the request."""

    message = 'The share server cannot be migrated: {reason}'


@implements(ServerMigrationRpc)
class ServerMigrationsEndpoint:
    """Carries out share server migrations to one back end.

    `setup` builds share servers, `interval` is the number of seconds
    between polls, and `probe` makes driver calls with a time limit.
    """

    def __init__(
        self,
        db: Database,
        driver: ShareDriver,
        phases: ServerMigrationPhases,
        setup: ServerSetup,
        service_host: str,
        *,
        names: NameTemplates,
        interval: float,
        probe: DriverProbe,
    ):
        self.db = db
        self.driver = driver
        self.phases = phases
        self.setup = setup
        self.service_host = service_host
        self.names = names
        self.interval = interval
        self.probe = probe

    # Begin

    def prepare_start_server_migration(
        self, session: Session, job: Claim
    ) -> LoadedMigration:
        return self._expect(session, job, TaskState.STARTING)

    def start_server_migration(
        self, job: JobContext, share_server_id: str
    ) -> None:
        loaded: LoadedMigration = job.prepared
        if loaded.destination is None:
            loaded = self._choose_destination(job, loaded)
        if not loaded.migration.is_set_up:
            loaded = self._set_up(job, loaded)
        if not loaded.migration.writable and not self._is_cast_done(
            job, loaded
        ):
            job.pause(CAST_PAUSE, lambda session: None)
            return
        reply = (
            self.driver.share_server_migration_start(
                RequestContext(),
                *migration_view.driver_arguments(loaded, self.names),
            )
            or {}
        )
        job.hand_over(self._started, job.claim, loaded, reply)

    def _choose_destination(
        self, job: JobContext, loaded: LoadedMigration
    ) -> LoadedMigration:
        """Let the driver choose a destination, or create one."""
        if self.setup.networks is None:
            raise ServerMigrationRefused(
                reason='the destination does not handle share servers'
            )
        reply = self.check(job.read, loaded)
        reasons = incompatibilities(reply, loaded.migration)
        if reasons:
            raise ServerMigrationRefused(reason='; '.join(reasons))
        chosen = None
        if not loaded.migration.nondisruptive:
            chosen = self._choose(job, loaded)
        return self._write(
            job, 'placed', self._set_destination, loaded, reply, chosen
        )

    def _choose(self, job: JobContext, loaded: LoadedMigration) -> str | None:
        offered = job.read(self._suitable, loaded)
        chosen = self.driver.choose_share_server_compatible_for_migration(
            RequestContext(),
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
        )
        return list(server_view.load_servers(session, ids).values())

    def _subnets(self, session: Session, loaded: LoadedMigration) -> list[str]:
        """Return the ids of the subnets for the destination's addresses."""
        zone = services.get(session, self.service_host, BINARY).zone
        network_id = loaded.migration.new_share_network_id
        return [
            row.id
            for row in share_servers.list_zone_subnets(
                session, network_id, zone
            )
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
            []
            if loaded.migration.nondisruptive
            else self._subnets(session, loaded)
        )
        self.phases.create_destination(
            session,
            loaded,
            self.setup.initial_columns(
                session,
                session.new_id(),
                loaded.migration.new_share_network_id,
            ),
            subnets,
        )

    def _set_up(
        self, job: JobContext, loaded: LoadedMigration
    ) -> LoadedMigration:
        """Allocate addresses and set up the destination server.

        In a nondisruptive migration the driver sets it up itself at the
        start, and the addresses are taken over at the end.
        """
        details: Mapping[str, typing.Any] = {}
        if not loaded.migration.nondisruptive:
            self.setup.allocate(loaded.chosen_destination)
            details = (
                self.driver.setup_server(
                    job.read(
                        self.setup.network_info,
                        loaded.chosen_destination.row.id,
                    ),
                    metadata={
                        'request_host': loaded.dest_host,
                        'migration': True,
                        'source_share_server_id': loaded.source.row.id,
                    },
                )
                or {}
            )
        try:
            return self._write(
                job, 'set up', self._record_set_up, loaded, details
            )
        except exception.ManilaLiteError:
            self._undo_set_up(job, loaded.chosen_destination.row.id, details)
            raise

    def _record_set_up(
        self,
        session: Session,
        loaded: LoadedMigration,
        details: Mapping[str, typing.Any],
    ) -> None:
        server_migrations.update(session, loaded.migration.id, is_set_up=True)
        store_details(session, loaded.chosen_destination.row.id, details)

    def _undo_set_up(
        self,
        job: JobContext,
        server_id: str,
        details: Mapping[str, typing.Any],
    ) -> None:
        """Tear down the server if its row no longer exists."""
        if job.read(share_servers.find, server_id) is None:
            self.driver.teardown_server({'server_id': server_id, **details})

    def _is_cast_done(self, job: JobContext, loaded: LoadedMigration) -> bool:
        """Return whether all rules are read-only; start the cast if not."""
        if not loaded.migration.casts_rules:
            self._write(job, 'cast', self.phases.cast_rules, loaded)
            return False
        states = job.read(
            server_relocation.get_rules_statuses, loaded.source.row.id
        )
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

    def _write(
        self,
        job: JobContext,
        step: str,
        function: Callable[..., object],
        *args: typing.Any,
    ) -> LoadedMigration:
        """Write a step under the claim; return the migration as it is then."""

        def write(session: Session) -> LoadedMigration:
            table.checkpoint(session, job.claim, step)
            function(session, *args)
            return migration_view.load_migration(session, job.resource_id)

        return self.db.write(write, by=job.claim)

    def _started(
        self,
        session: Session,
        job: Claim,
        loaded: LoadedMigration,
        reply: ServerMigrationStartReply,
    ) -> None:
        """Hand over to the work that polls the first phase."""
        table.hand_over(
            session,
            job,
            kind=_CONTINUE.kind,
            topic=_CONTINUE.topic,
            queue=job.queue,
            args={'share_server_id': job.resource_id},
        )
        fire(session, SHARE_SERVER_TASK, job.resource_id, 'started')
        store_details(
            session,
            loaded.chosen_destination.row.id,
            reply.get('backend_details') or {},
        )
        server_migrations.record_progress(session, loaded.migration.id, None)

    def failed_start_server_migration(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        return self._failed(session, job, error)

    # Continue

    def prepare_continue_server_migration(
        self, session: Session, job: Claim
    ) -> LoadedMigration:
        return self._expect(session, job, TaskState.MIGRATING)

    def continue_server_migration(
        self, job: JobContext, share_server_id: str
    ) -> None:
        loaded: LoadedMigration = job.prepared
        arguments = migration_view.driver_arguments(loaded, self.names)
        if self.driver.share_server_migration_continue(
            RequestContext(), *arguments
        ):
            job.finish(self._copied, loaded)
        else:
            job.pause(
                self.interval,
                server_migrations.record_progress,
                loaded.migration.id,
                self._progress(loaded, arguments),
            )

    def _progress(
        self, loaded: LoadedMigration, arguments: DriverArguments
    ) -> int | None:
        """Return the reported progress in percent, or None."""
        if not loaded.migration.tells_progress:
            return None
        try:
            result = self.probe.ask(
                self.driver.share_server_migration_get_progress,
                RequestContext(),
                *arguments,
            )
        except exception.ManilaLiteError:
            return None
        # An error here does not affect the copy itself.
        return None if result.reason else progress_percent(result.value)

    def _copied(self, session: Session, loaded: LoadedMigration) -> None:
        fire(session, SHARE_SERVER_TASK, loaded.source.row.id, 'phase1_done')
        server_migrations.record_progress(session, loaded.migration.id, 100)

    def failed_continue_server_migration(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        return self._failed(session, job, error)

    # Complete or cancel

    def prepare_complete_server_migration(
        self, session: Session, job: Claim
    ) -> LoadedMigration:
        return self._expect(session, job, TaskState.COMPLETING)

    def complete_server_migration(
        self, job: JobContext, share_server_id: str
    ) -> None:
        loaded: LoadedMigration = job.prepared
        server = (
            loaded.source
            if loaded.migration.nondisruptive
            else loaded.chosen_destination
        )
        reply = (
            self.driver.share_server_migration_complete(
                RequestContext(),
                *migration_view.driver_arguments(loaded, self.names),
                job.read(self.setup.network_info, server.row.id),
            )
            or {}
        )
        job.finish(self.phases.complete, loaded, reply)

    def failed_complete_server_migration(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        return self._failed(session, job, error)

    def prepare_cancel_server_migration(
        self, session: Session, job: Claim
    ) -> LoadedMigration:
        return self._expect(session, job, TaskState.CANCELLING)

    def cancel_server_migration(
        self, job: JobContext, share_server_id: str
    ) -> None:
        self.driver.share_server_migration_cancel(
            RequestContext(),
            *migration_view.driver_arguments(job.prepared, self.names),
        )
        job.finish(self.phases.roll_back, share_server_id, 'cancelled')

    def failed_cancel_server_migration(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        return self._failed(session, job, error)

    # Abandoned migrations

    def prepare_settle_server_migration(
        self, session: Session, job: Claim
    ) -> None:
        server = share_servers.get(session, job.resource_id, lock_shared=True)
        migration = server_migrations.find_open(session, job.resource_id)
        if not is_abandoned(server, migration):
            raise outdated(
                job,
                SHARE_SERVER,
                server.id,
                server.status,
                'migrating without a task',
            )
        return None

    def settle_server_migration(
        self, job: JobContext, share_server_id: str
    ) -> None:
        """Fail the migration of a server whose task is missing or reset."""
        job.finish(
            self.phases.fail, share_server_id, 'the migration was abandoned'
        )

    def failed_settle_server_migration(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        return self._failed(session, job, error)

    def _failed(self, session: Session, job: Claim, error: Exception) -> bool:
        self.phases.fail(session, job.resource_id, str(error))
        return True

    def _expect(
        self, session: Session, job: Claim, task_state: str
    ) -> LoadedMigration:
        """Return the migration if it still waits for this work."""
        server = share_servers.get(session, job.resource_id, lock_shared=True)
        require_status(
            job, SHARE_SERVER_TASK, server.id, server.task_state, task_state
        )
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
        options = _Options(writable, nondisruptive, preserve_snapshots)
        source, shares, snapshots = self.db.read(
            _load_server_and_contents, share_server_id
        )
        try:
            result = self.probe.ask(
                self._compatibility_call(
                    self.db.read,
                    source,
                    dest_host,
                    shares,
                    snapshots,
                    new_share_network_id or source.row.share_network_id,
                ),
                RequestContext(),
            )
        except BackendUnresponsive as error:
            result = ProbeResult(None, str(error))
        if result.reason:
            return {'compatible': False, 'reasons': [result.reason]}
        reply = result.value or {}
        return {
            **{
                name: bool(reply.get(name))
                for name in (
                    'compatible',
                    *_UNMET,
                    'migration_cancel',
                    'migration_get_progress',
                )
            },
            'reasons': incompatibilities(reply, options),
        }

    def hear_server_migration(
        self, ctx: RequestContext, share_server_id: str
    ) -> None:
        """Get the progress from the driver and store it."""
        try:
            loaded = self.db.read(
                migration_view.load_migration, share_server_id
            )
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
                RequestContext(),
                *migration_view.driver_arguments(loaded, self.names),
            )
        except exception.ManilaLiteError:
            return
        if not result.reason:
            self.db.write(
                server_migrations.record_progress,
                loaded.migration.id,
                progress_percent(result.value),
            )

    def check(
        self, read: Callable[..., typing.Any], loaded: LoadedMigration
    ) -> ServerMigrationCompatibility:
        """Return what the driver supports for a migration."""
        call = self._compatibility_call(
            read,
            loaded.source,
            loaded.dest_host,
            loaded.shares,
            loaded.snapshots,
            loaded.migration.new_share_network_id,
        )
        return call(RequestContext()) or {}

    def _compatibility_call(
        self,
        read: Callable[..., typing.Any],
        source: LoadedServer,
        dest_host: str,
        shares: list[LoadedInstance],
        snapshots: list[MovingSnapshot],
        network_id: str | None,
    ) -> Callable[[RequestContext], ServerMigrationCompatibility]:
        old_network, new_network = (
            read(migration_view.network_for_driver, id, source.row.id)
            for id in (source.row.share_network_id, network_id)
        )
        return lambda context: (
            self.driver.share_server_migration_check_compatibility(
                context,
                server_view.server_for_driver(source),
                dest_host,
                old_network,
                new_network,
                migration_view.request_spec(shares, snapshots),
            )
        )


ServerContents = tuple[
    LoadedServer, list[LoadedInstance], list[MovingSnapshot]
]
"""A server with the shares and snapshots on it."""


class _Options(typing.NamedTuple):
    writable: bool
    nondisruptive: bool
    preserve_snapshots: bool


def _load_server_and_contents(
    session: Session, server_id: str
) -> ServerContents:
    return (
        server_view.load_server(session, server_id),
        *migration_view.load_contents(session, server_id),
    )


def incompatibilities(
    reply: Mapping[str, object], options: _Options | MigrationRow
) -> list[str]:
    """Return the reasons why the driver cannot fulfil the request."""
    if not reply.get('compatible'):
        return [
            'the driver of the destination cannot migrate the share server'
        ]
    return [
        reason
        for name, reason in _UNMET.items()
        if getattr(options, name) and not reply.get(name)
    ]


def progress_percent(reply: typing.Any) -> int | None:
    """Return the progress in a driver's reply; None if it is invalid."""
    try:
        total = int(float(reply['total_progress']))
    except (TypeError, KeyError, ValueError, OverflowError):
        return None
    return min(100, max(0, total))
