"""Moves share servers to this back end, in two phases.

All the work is done by the service of the destination. One piece of it
begins a migration and then asks the driver, now and again, how the first
phase gets on; an administrator has the second phase begin, or the whole
cancelled. Every step ends in the same place when it is done twice, so
whoever finds it abandoned simply does it again. What became of it is
written down by `server_migration_phases`.
"""

from collections.abc import Mapping
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.admin import services
from manila_lite.db.queries.servers import migrations as server_migrations
from manila_lite.db.queries.servers import relocation as server_relocation
from manila_lite.db.queries.servers import share_servers
from manila_lite.db.session import Database
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.rpc.contract import implements
from manila_lite.rpc.contract import work_kinds
from manila_lite.rpc.share import BINARY
from manila_lite.rpc.share import ServerMigrationRpc
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.manager.driver_probe import BackendUnresponsive
from manila_lite.share.manager.driver_probe import DriverProbe
from manila_lite.share.manager.driver_probe import ProbeResult
from manila_lite.share.manager.driver_view import migration_view
from manila_lite.share.manager.driver_view import server_view
from manila_lite.share.manager.driver_view.migration_view import (
    LoadedMigration,
)
from manila_lite.share.manager.driver_view.share_view import NameTemplates
from manila_lite.share.manager.servers.migration_phases import (
    ServerMigrationPhases,
)
from manila_lite.share.manager.servers.migration_phases import is_abandoned
from manila_lite.share.manager.servers.migration_phases import store_details
from manila_lite.share.manager.servers.setup import ServerSetup
from manila_lite.states.access_rule import RulesStatus
from manila_lite.states.share_server import SHARE_SERVER_TASK
from manila_lite.states.share_server import TaskState
from manila_lite.work import table

CAST_PAUSE = 2.0
"""Seconds between looks whether rules have been cast to read-only."""

CAST_TIMEOUT = 600
"""Seconds after which a source that is not told its rules is given up."""

_CONTINUE = work_kinds(ServerMigrationRpc)[
    'server_migration.continue_server_migration'
]

_DEMANDS = {
    'writable': 'the driver cannot keep the shares writable meanwhile',
    'nondisruptive': 'the driver cannot migrate without a disruption',
    'preserve_snapshots': 'the driver cannot preserve snapshots',
}


class ServerMigrationRefused(exception.ManilaLiteError):
    """The driver of the destination cannot do what was asked for."""

    message = 'The share server cannot be migrated: {reason}'


@implements(ServerMigrationRpc)
class ServerMigrationsEndpoint:
    """The migrations to one back end.

    `setup` makes share servers, `interval` is in seconds, `questions`
    asks drivers that may never answer.
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

    def prepare_start_server_migration(self, session: Session, job):
        return self._expect(session, job, TaskState.STARTING)

    def start_server_migration(self, job, share_server_id):
        moving = job.prepared
        if moving.destination is None:
            moving = self._find_place(job, moving)
        if not moving.migration.is_set_up:
            moving = self._set_up(job, moving)
        if not moving.migration.writable and not self._are_cast(job, moving):
            job.pause(CAST_PAUSE, lambda session: None)
            return
        answer = (
            self.driver.share_server_migration_start(
                RequestContext(),
                *migration_view.driver_arguments(moving, self.names),
            )
            or {}
        )
        job.hand_over(self._started, job.claim, moving, answer)

    def _find_place(self, job, moving: LoadedMigration) -> LoadedMigration:
        """Have a destination be made, or chosen by the driver."""
        if self.setup.networks is None:
            raise ServerMigrationRefused(
                reason='the destination makes no share servers'
            )
        answer = self.check(job.read, moving)
        reasons = incompatibilities(answer, moving.migration)
        if reasons:
            raise ServerMigrationRefused(reason='; '.join(reasons))
        chosen = None
        if not moving.migration.nondisruptive:
            chosen = self._choose(job, moving)
        return self._write(job, 'placed', self._place, moving, answer, chosen)

    def _choose(self, job, moving: LoadedMigration) -> str | None:
        offered = job.read(self._suitable, moving)
        found = self.driver.choose_share_server_compatible_for_migration(
            RequestContext(),
            [server_view.server_for_driver(one) for one in offered],
            server_view.server_for_driver(moving.source),
            *migration_view.contents_for_driver(
                moving.shares, moving.snapshots, self.names
            ),
        )
        return None if found is None else found['id']

    def _suitable(self, session: Session, moving: LoadedMigration):
        ids = share_servers.list_suitable(
            session,
            self.service_host,
            self._subnets(session, moving),
            sum(found.row.size for found in moving.shares),
            self.setup.limits,
        )
        return list(server_view.load_servers(session, ids).values())

    def _subnets(self, session: Session, moving: LoadedMigration) -> list[str]:
        """The subnets that the destination is to have addresses in."""
        zone = services.get(session, self.service_host, BINARY).zone
        network_id = moving.migration.new_share_network_id
        return [
            row.id
            for row in share_servers.list_zone_subnets(
                session, network_id, zone
            )
        ]

    def _place(
        self,
        session: Session,
        moving: LoadedMigration,
        answer,
        chosen: str | None,
    ) -> None:
        server_migrations.update(
            session,
            moving.migration.id,
            can_cancel=bool(answer.get('migration_cancel')),
            tells_progress=bool(answer.get('migration_get_progress')),
        )
        if chosen is not None:
            self.phases.adopt_destination(session, moving, chosen)
            return
        # Without a disruption the addresses of the source come with it.
        subnets = (
            []
            if moving.migration.nondisruptive
            else self._subnets(session, moving)
        )
        self.phases.make_destination(
            session,
            moving,
            self.setup.values(
                session,
                session.new_id(),
                moving.migration.new_share_network_id,
            ),
            subnets,
        )

    def _set_up(self, job, moving: LoadedMigration) -> LoadedMigration:
        """Give the destination addresses, and have the driver make it.

        Without a disruption the driver makes it as it starts, and in the
        end it takes the addresses over.
        """
        details: dict[str, typing.Any] = {}
        if not moving.migration.nondisruptive:
            self.setup.allocate(moving.destination)
            details = (
                self.driver.setup_server(
                    job.read(
                        self.setup.network_info, moving.destination.row.id
                    ),
                    metadata={
                        'request_host': moving.dest_host,
                        'migration': True,
                        'source_share_server_id': moving.source.row.id,
                    },
                )
                or {}
            )
        try:
            return self._write(job, 'set up', self._is_set_up, moving, details)
        except exception.ManilaLiteError:
            self._unmake(job, moving.destination.row.id, details)
            raise

    def _is_set_up(
        self, session: Session, moving: LoadedMigration, details
    ) -> None:
        server_migrations.update(session, moving.migration.id, is_set_up=True)
        store_details(session, moving.destination.row.id, details)

    def _unmake(self, job, server_id: str, details) -> None:
        """Remove what was made for a server that is gone meanwhile."""
        if job.read(share_servers.find, server_id) is None:
            self.driver.teardown_server({'server_id': server_id, **details})

    def _are_cast(self, job, moving: LoadedMigration) -> bool:
        """Whether clients can only read; else they soon can."""
        if not moving.migration.casts_rules:
            self._write(job, 'cast', self.phases.cast_rules, moving)
            return False
        states = job.read(
            server_relocation.get_rules_statuses, moving.source.row.id
        )
        if RulesStatus.ERROR in states:
            raise exception.ShareBackendException(
                msg='access rules could not be cast to read-only'
            )
        if RulesStatus.OUT_OF_SYNC not in states:
            return True
        waited = self.db.utcnow() - moving.migration.updated_at
        if waited.total_seconds() > CAST_TIMEOUT:
            raise exception.ShareBackendException(
                msg=f'the source has not been told in {CAST_TIMEOUT} s '
                'that access rules are cast to read-only'
            )
        return False

    def _write(self, job, step: str, function, *args) -> LoadedMigration:
        """Write a part of the work, if it is still ours; how all is now."""

        def write(session: Session) -> LoadedMigration:
            table.checkpoint(session, job.claim, step)
            function(session, *args)
            return migration_view.load_migration(session, job.resource_id)

        return self.db.write(write, by=job.claim)

    def _started(
        self, session: Session, job, moving: LoadedMigration, answer
    ) -> None:
        """From now on the driver is asked how it gets on."""
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
            moving.destination.row.id,
            answer.get('backend_details') or {},
        )
        server_migrations.record_progress(session, moving.migration.id, None)

    def failed_start_server_migration(self, session, job, error):
        return self._failed(session, job, error)

    # Go on

    def prepare_continue_server_migration(self, session: Session, job):
        return self._expect(session, job, TaskState.MIGRATING)

    def continue_server_migration(self, job, share_server_id):
        moving = job.prepared
        asked = migration_view.driver_arguments(moving, self.names)
        if self.driver.share_server_migration_continue(
            RequestContext(), *asked
        ):
            job.finish(self._is_copied, moving)
        else:
            job.pause(
                self.interval,
                server_migrations.record_progress,
                moving.migration.id,
                self._progress(moving, asked),
            )

    def _progress(self, moving: LoadedMigration, asked) -> int | None:
        """What the driver says in percent; None when it cannot tell."""
        if not moving.migration.tells_progress:
            return None
        try:
            answer = self.probe.ask(
                self.driver.share_server_migration_get_progress,
                RequestContext(),
                *asked,
            )
        except exception.ManilaLiteError:
            return None
        # Whatever is the matter, the copy itself goes on.
        return None if answer.reason else progress_percent(answer.value)

    def _is_copied(self, session: Session, moving: LoadedMigration) -> None:
        fire(session, SHARE_SERVER_TASK, moving.source.row.id, 'phase1_done')
        server_migrations.record_progress(session, moving.migration.id, 100)

    def failed_continue_server_migration(self, session, job, error):
        return self._failed(session, job, error)

    # End

    def prepare_complete_server_migration(self, session: Session, job):
        return self._expect(session, job, TaskState.COMPLETING)

    def complete_server_migration(self, job, share_server_id):
        moving = job.prepared
        server = (
            moving.source
            if moving.migration.nondisruptive
            else moving.destination
        )
        answer = (
            self.driver.share_server_migration_complete(
                RequestContext(),
                *migration_view.driver_arguments(moving, self.names),
                job.read(self.setup.network_info, server.row.id),
            )
            or {}
        )
        job.finish(self.phases.complete, moving, answer)

    def failed_complete_server_migration(self, session, job, error):
        return self._failed(session, job, error)

    def prepare_cancel_server_migration(self, session: Session, job):
        return self._expect(session, job, TaskState.CANCELLING)

    def cancel_server_migration(self, job, share_server_id):
        self.driver.share_server_migration_cancel(
            RequestContext(),
            *migration_view.driver_arguments(job.prepared, self.names),
        )
        job.finish(self.phases.put_back, share_server_id, 'cancelled')

    def failed_cancel_server_migration(self, session, job, error):
        return self._failed(session, job, error)

    # Whatever is left over

    def prepare_settle_server_migration(self, session: Session, job):
        server = share_servers.get(session, job.resource_id, lock_shared=True)
        migration = server_migrations.find_open(session, job.resource_id)
        if not is_abandoned(server, migration):
            raise exception.InvalidStatus(
                resource='share server',
                id=server.id,
                status=server.status,
                event=job.kind,
                allowed='migrating without a task',
            )
        return None

    def settle_server_migration(self, job, share_server_id):
        """Put a server to rest whose task was reset, or never was."""
        job.finish(
            self.phases.fail,
            share_server_id,
            'nobody went on with the migration',
        )

    def failed_settle_server_migration(self, session, job, error):
        return self._failed(session, job, error)

    def _failed(self, session: Session, job, error: Exception) -> bool:
        self.phases.fail(session, job.resource_id, str(error))
        return True

    def _expect(
        self, session: Session, job, task_state: str
    ) -> LoadedMigration:
        """What moves, if it still waits for this work."""
        server = share_servers.get(session, job.resource_id, lock_shared=True)
        if server.task_state != task_state:
            raise exception.InvalidStatus(
                resource='share server',
                id=server.id,
                status=server.task_state,
                event=job.kind,
                allowed=task_state,
            )
        return migration_view.load_migration(session, job.resource_id)

    # Calls

    def check_server_migration(
        self,
        ctx,
        share_server_id,
        dest_host,
        writable,
        nondisruptive,
        preserve_snapshots,
        new_share_network_id=None,
    ):
        """What the driver offers, and `reasons` why that is not enough.

        Nothing is left behind, not even when the driver never answers.
        """
        wish = _Wish(writable, nondisruptive, preserve_snapshots)
        source, shares, snapshots = self.db.read(_all_on, share_server_id)
        try:
            answer = self.probe.ask(
                self._asked(
                    self.db.read,
                    source,
                    dest_host,
                    shares,
                    snapshots,
                    new_share_network_id or source.row.share_network_id,
                ),
                RequestContext(),
            )
        except BackendUnresponsive as away:
            answer = ProbeResult(None, str(away))
        if answer.reason:
            return {'compatible': False, 'reasons': [answer.reason]}
        said = answer.value or {}
        return {
            **{
                name: bool(said.get(name))
                for name in (
                    'compatible',
                    *_DEMANDS,
                    'migration_cancel',
                    'migration_get_progress',
                )
            },
            'reasons': incompatibilities(said, wish),
        }

    def hear_server_migration(self, ctx, share_server_id):
        """Ask the driver how far it has come, and note the answer."""
        try:
            moving = self.db.read(
                migration_view.load_migration, share_server_id
            )
        except exception.ManilaLiteError:
            return  # it has ended meanwhile
        if moving.destination is None or (
            moving.source.row.task_state != TaskState.MIGRATING
            or not moving.migration.tells_progress
        ):
            return
        try:
            # Who answers calls does not wait for drivers that think.
            answer = self.probe.poll(
                moving.migration.id,
                self.driver.share_server_migration_get_progress,
                RequestContext(),
                *migration_view.driver_arguments(moving, self.names),
            )
        except exception.ManilaLiteError:
            return
        if not answer.reason:
            self.db.write(
                server_migrations.record_progress,
                moving.migration.id,
                progress_percent(answer.value),
            )

    def check(self, read, moving: LoadedMigration) -> Mapping[str, typing.Any]:
        """What the driver offers for a migration."""
        ask = self._asked(
            read,
            moving.source,
            moving.dest_host,
            moving.shares,
            moving.snapshots,
            moving.migration.new_share_network_id,
        )
        return ask(RequestContext()) or {}

    def _asked(self, read, source, dest_host, shares, snapshots, network_id):
        networks = [
            read(migration_view.network_for_driver, id, source.row.id)
            for id in (source.row.share_network_id, network_id)
        ]
        return lambda context: (
            self.driver.share_server_migration_check_compatibility(
                context,
                server_view.server_for_driver(source),
                dest_host,
                *networks,
                migration_view.request_spec(shares, snapshots),
            )
        )


class _Wish(typing.NamedTuple):
    writable: bool
    nondisruptive: bool
    preserve_snapshots: bool


def _all_on(session: Session, server_id: str):
    return (
        server_view.load_server(session, server_id),
        *migration_view.load_contents(session, server_id),
    )


def incompatibilities(
    answer: Mapping[str, typing.Any], wish: typing.Any
) -> list[str]:
    """Why what a driver offers is not what was asked for."""
    if not answer.get('compatible'):
        return [
            'the driver of the destination cannot migrate the share server'
        ]
    return [
        reason
        for name, reason in _DEMANDS.items()
        if getattr(wish, name) and not answer.get(name)
    ]


def progress_percent(answer: typing.Any) -> int | None:
    """The progress in an answer of a driver, if it makes sense."""
    try:
        total = int(float(answer['total_progress']))
    except (TypeError, KeyError, ValueError, OverflowError):
        return None
    return min(100, max(0, total))
