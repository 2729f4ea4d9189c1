"""One back end of a share service: its driver, report, work and endpoints."""

from collections.abc import Callable, Iterator
import contextlib
import dataclasses
import datetime
import logging
import math
import threading
import time
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db import errors
from manila_lite.db.queries import pages
from manila_lite.db.queries.services import disks, incarnations, pools
from manila_lite.db.queries.services.pools import PoolReport
from manila_lite.db.queries.services.releases import Release
from manila_lite.db.queries.shares import instances, shares
from manila_lite.db.session import Database, Session
from manila_lite.rpc.contract import Endpoints
from manila_lite.rpc.share import BINARY, TOPIC
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.manager.access.rules import (
    AccessEndpoint,
    SnapshotAccessEndpoint,
)
from manila_lite.share.manager.groups.lifecycle import ShareGroupsEndpoint
from manila_lite.share.manager.groups.snapshots import ShareGroupSnapshotsEndpoint
from manila_lite.share.manager.migrations.endpoint import ShareMigrationsEndpoint
from manila_lite.share.manager.migrations.host_assisted import (
    HostAssistedMigrationsEndpoint,
)
from manila_lite.share.manager.migrations.steps import MigrationServersEndpoint
from manila_lite.share.manager.recovery.reconciliation import ReconciliationEndpoint
from manila_lite.share.manager.replication.replicas import ReplicasEndpoint
from manila_lite.share.manager.replication.roles import ReplicaRolesEndpoint
from manila_lite.share.manager.replication.snapshots import ReplicatedSnapshotsEndpoint
from manila_lite.share.manager.replication.updates import ReplicaUpdatesEndpoint
from manila_lite.share.manager.servers.lifecycle import ShareServersEndpoint
from manila_lite.share.manager.servers.migrations import ServerMigrationsEndpoint
from manila_lite.share.manager.servers.network_updates import NetworkUpdatesEndpoint
from manila_lite.share.manager.servers.setup import ServerSetup
from manila_lite.share.manager.shares.backups import DriverBackupsEndpoint
from manila_lite.share.manager.shares.deferred_deletion import DeferredDeletion
from manila_lite.share.manager.shares.ensuring import EnsuringEndpoint
from manila_lite.share.manager.shares.managing import ManagingEndpoint
from manila_lite.share.manager.shares.metadata import (
    ConnectionsEndpoint,
    ShareMetadataEndpoint,
)
from manila_lite.share.manager.shares.provisioning import ProvisioningEndpoint
from manila_lite.share.manager.shares.transfers import ShareTransfersEndpoint
from manila_lite.share.manager.snapshots import SnapshotsEndpoint
from manila_lite.work.runner import Runner


@dataclasses.dataclass(frozen=True, kw_only=True)
class BackendEndpoints(Endpoints):
    """What a share service does for one back end, by concern."""

    provisioning: ProvisioningEndpoint
    snapshots: SnapshotsEndpoint
    replicated_snapshots: ReplicatedSnapshotsEndpoint
    access: AccessEndpoint
    snapshot_access: SnapshotAccessEndpoint
    replication: ReplicasEndpoint
    replica_updates: ReplicaUpdatesEndpoint
    replica_roles: ReplicaRolesEndpoint
    managing: ManagingEndpoint
    ensuring: EnsuringEndpoint
    share_metadata: ShareMetadataEndpoint
    share_transfers: ShareTransfersEndpoint
    share_groups: ShareGroupsEndpoint
    share_group_snapshots: ShareGroupSnapshotsEndpoint
    driver_backups: DriverBackupsEndpoint
    share_servers: ShareServersEndpoint
    network_updates: NetworkUpdatesEndpoint
    server_migrations: ServerMigrationsEndpoint
    share_migrations: ShareMigrationsEndpoint
    migration_servers: MigrationServersEndpoint
    host_assisted_migrations: HostAssistedMigrationsEndpoint
    connections: ConnectionsEndpoint
    reconciliation: ReconciliationEndpoint


DEFAULT_POOL = 'pool'
"""The name of the one pool of a back end that does not report pools."""


def pool_reports(
    stats: dict[str, typing.Any], service_host: str, now: datetime.datetime
) -> list[PoolReport]:
    """Return one report per pool; values of the back end apply to each.

    Capacities that are not numbers (`infinite`, `unknown`) become None.
    """
    common = {key: value for key, value in stats.items() if key != 'pools'}
    pools = stats.get('pools') or [{'pool_name': DEFAULT_POOL}]
    return [_report(common | pool, service_host, now) for pool in pools]


def _report(
    facts: dict[str, typing.Any], service_host: str, now: datetime.datetime
) -> PoolReport:
    facts['timestamp'] = now.isoformat(timespec='microseconds')
    return PoolReport(
        host=f'{service_host}#{facts["pool_name"]}',
        capabilities=facts,
        total_gb=_number(facts.get('total_capacity_gb')),
        free_gb=_number(facts.get('free_capacity_gb')),
    )


def _number(value: typing.Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


LOG = logging.getLogger(__name__)

STARTING = 'The driver is starting.'
FIRST_RETRY, LAST_RETRY = 1.0, 60.0


class Backend:
    """Starts a driver, keeps its service row current, and runs its work.

    A driver that fails to start is retried with growing pauses. Until it
    is up, the service row reports it as down and no work is claimed. It
    also reports it as down while the driver finds its storage unusable or
    cannot report, and while it has occupied all workers, or the report, for
    `hang_time` seconds; with 0 it does not wait for that.
    """

    def __init__(
        self,
        db: Database,
        driver: ShareDriver,
        runner: Runner,
        endpoints: BackendEndpoints,
        deferred_deletion: DeferredDeletion,
        *,
        host: str,
        zone: str,
        incarnation: str,
        enabled: bool,
        down_time: float,
        hang_time: float,
        expire: Callable[['Backend', str], None],
        release: Release | None = None,
        servers: ServerSetup | None = None,
        pause: Callable[[float], bool] | None = None,
        warning: Callable[[], str | None] = lambda: None,
    ):
        self.db = db
        self.driver = driver
        self.runner = runner
        self.endpoints = endpoints
        self.deferred_deletion = deferred_deletion
        self.host = host
        self.zone = zone
        self.incarnation = incarnation
        self.enabled = enabled
        self.down_time = down_time
        self.hang_time = hang_time
        self.release = release
        self.servers = servers
        self.health: str | None = STARTING
        self._failed_report: str | None = None
        self._reporting_since: float | None = None
        self._reported_at: datetime.datetime | None = None
        self._expire = expire
        self._warning = warning
        self._recover: Callable[[], object] | None = None
        self._stop = threading.Event()
        self._beating = threading.Lock()
        self._pause = pause or self._stop.wait
        self._thread = threading.Thread(
            target=self._bring_up, name=f'{host}-start', daemon=True
        )

    def start_recovery_after(
        self, seconds: float, request_pass: Callable[[datetime.datetime], object]
    ) -> None:
        """Request a pass over what is in flight since before this call.

        It runs `seconds` after the driver is up and ignores requests that
        are accepted from now on.
        """
        started_at = self.db.utcnow()

        def recover() -> None:
            if not self._stop.wait(seconds):
                request_pass(started_at)

        self._recover = recover

    def start(self) -> None:
        """Register the service and start the driver in the background.

        If the database does not allow it now, a heartbeat registers it.
        """
        try:
            self.register()
        except errors.UNAVAILABLE as error:
            LOG.warning('%s is not registered yet: %s', self.host, error)
        self._thread.start()

    def register(self) -> None:
        """Register the service; if its row is locked, a heartbeat does."""
        incarnations.register_if_free(
            self.db,
            host=self.host,
            binary=BINARY,
            topic=TOPIC,
            zone=self.zone,
            incarnation=self.incarnation,
            enabled=self.enabled,
            health=self.health,
            warning=self._warning(),
            release=self.release,
            down_time=self.down_time,
        )

    def drain(self) -> None:
        """Begin no more work; the service row says that it is stopping."""
        self._stop.set()
        self.runner.drain()
        if self.runner.is_busy:
            # The database may not answer.
            threading.Thread(
                target=self._show_stopping, name=f'{self.host}-stopping', daemon=True
            ).start()

    def _show_stopping(self) -> None:
        with contextlib.suppress(*errors.UNAVAILABLE):
            self.beat()

    def stop(self, timeout: float) -> bool:
        """Stop claiming work; return True when running work has ended."""
        self._stop.set()
        if not self.runner.stop(timeout):
            return False
        # If the database is down, the row is found to be dead later.
        with contextlib.suppress(*errors.UNAVAILABLE):
            self.deregister(self.incarnation)
        return True

    def deregister(self, incarnation: str) -> None:
        """Record that this or another process of the back end has ended.

        Raises DatabaseBusy if the row of the service is locked.
        """
        self.db.write(
            incarnations.deregister,
            retry_limit=incarnations.ROW_PATIENCE,
            host=self.host,
            binary=BINARY,
            incarnation=incarnation,
            down_time=self.down_time,
        )

    def _bring_up(self) -> None:
        retry = FIRST_RETRY
        while not self._stop.is_set():
            try:
                self.set_up()
            except Exception as error:
                LOG.error(
                    'The driver of %s failed to start: %s',
                    self.host,
                    error,
                    exc_info=not isinstance(error, exception.DriverError),
                )
                self.health = f'The driver failed to start: {error}'
                # If the database is down, a later heartbeat reports it.
                with contextlib.suppress(*errors.UNAVAILABLE):
                    self.beat()
                if self._pause(retry):
                    return
                retry = min(retry * 2, LAST_RETRY)
            else:
                self.runner.start()
                LOG.info('Back end %s is up', self.host)
                if self._recover is not None:
                    threading.Thread(
                        target=self._recover, daemon=True, name=f'{self.host}-recovery'
                    ).start()
                return

    def set_up(self) -> None:
        """Start the driver, report its pools, and mark the service up."""
        self.driver.do_setup(RequestContext())
        self.driver.has_shares = self.db.read(_expects_shares, self.host)
        self.driver.check_for_setup_error()
        self.endpoints.ensuring.start()
        self.driver.initialized = True
        self.report()
        self.health = self._failed_report = None
        self.beat()

    def beat(self) -> None:
        """Write the heartbeat, with the reason if the driver is down.

        The driver may come up meanwhile; what was known before that must
        not be written after it.
        """
        with self._beating:
            registered = incarnations.beat(
                self.db,
                host=self.host,
                binary=BINARY,
                incarnation=self.incarnation,
                health=self.down_reason(),
                warning=self._warning(),
                down_time=self.down_time,
            )
        if not registered and not self._stop.is_set():
            self.register()

    @property
    def is_well(self) -> bool:
        """Whether a heartbeat has nothing to say but that there is one."""
        return self.down_reason() is None and self._warning() is None

    @contextlib.contextmanager
    def keep_well(self) -> Iterator[bool]:
        """Let no heartbeat be written in the block; whether it is well.

        That is false as well if one is being written.
        """
        if not self._beating.acquire(blocking=False):
            yield False
            return
        try:
            yield self.is_well
        finally:
            self._beating.release()

    def down_reason(self) -> str | None:
        """Return what is wrong with the back end; None if it is up."""
        if self.health is not None:
            return self.health
        if self._stop.is_set():
            return incarnations.STOPPING
        reason = self._failed_report
        if reason is None and self._hangs_since(self._reporting_since):
            reason = (
                'The driver does not answer: it has not reported for more '
                f'than {self.hang_time:g} s.'
            )
        if reason is not None:
            return (
                f'{reason} The figures are stale since '
                f'{self._reported_at:%Y-%m-%dT%H:%M:%SZ}.'
            )
        if self._hangs_since(self.runner.busy_since()):
            return (
                'The driver does not answer: it has occupied all workers '
                f'for more than {self.hang_time:g} s.'
            )
        return None

    def _hangs_since(self, moment: float | None) -> bool:
        return (
            bool(self.hang_time)
            and moment is not None
            and time.monotonic() - moment >= self.hang_time
        )

    def report(self) -> None:
        """Check the storage, get the pools from the driver, store them."""
        known = self.db.read(pools.get_known_allocations, self.host)
        self._reporting_since = time.monotonic()
        try:
            self.driver.check_health()
            stats = self.driver.get_share_stats(refresh=True)
        finally:
            self._reporting_since = None
        now = self.db.utcnow()
        if self.servers is not None:
            stats = self.servers.complete_stats(stats)
        self.db.write(
            pools.save_report, self.host, pool_reports(stats, self.host, now), known
        )
        self._reported_at = now

    def report_or_be_down(self) -> None:
        """Report; the back end is down until the driver can do so again."""
        before = self._failed_report
        try:
            self.report()
            self._failed_report = None
        except Exception as error:
            if isinstance(error, errors.UNAVAILABLE) and not isinstance(
                error, exception.DriverError
            ):
                raise  # it says nothing about the back end
            self._failed_report = f'The driver cannot report: {error}'
            if before != self._failed_report:
                LOG.warning(
                    'Back end %s is down: %s',
                    self.host,
                    error,
                    exc_info=not isinstance(error, exception.DriverError),
                )
        if self._failed_report is None and before is not None:
            LOG.info('Back end %s is up again', self.host)
        if self._failed_report != before:
            self.beat()

    def expire(self) -> None:
        """Delete the shares whose time in the recycle bin has expired."""
        after = pages.BEGINNING
        while self.driver.initialized:
            expired = self.db.read(shares.list_expired, self.host, after)
            if not expired:
                return
            for row in expired:
                self._expire(self, row.id)
            last = expired[-1]
            after = (last.scheduled_to_be_deleted_at, last.id)

    @property
    def call_endpoints(
        self,
    ) -> list[ServerMigrationsEndpoint | ShareMigrationsEndpoint | ConnectionsEndpoint]:
        """The endpoints whose synchronous calls this back end answers."""
        return [
            self.endpoints.server_migrations,
            self.endpoints.share_migrations,
            self.endpoints.connections,
        ]

    @property
    def is_started(self) -> bool:
        """Whether the driver has started; it may hang since."""
        return self.health is None

    @property
    def is_up(self) -> bool:
        return self.down_reason() is None


def _expects_shares(session: Session, service_host: str) -> bool:
    """Whether the storage of a back end must have shares, so cannot be new."""
    return instances.has_data_on_service(
        session, service_host
    ) and not disks.is_declared_lost(session, service_host)


def wait_until_up(backends: list[Backend], timeout: float) -> bool:
    """Wait for the drivers; return False when one is not up in time."""
    deadline = time.monotonic() + timeout
    for backend in backends:
        backend._thread.join(max(0.0, deadline - time.monotonic()))
    return all(backend.is_started for backend in backends)
