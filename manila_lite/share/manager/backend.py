"""One back end of a share service: its driver, its report, its work."""

from collections.abc import Callable
import contextlib
import datetime
import logging
import threading
import time

from oslo_db import exception as db_exc

from manila_lite.context import RequestContext
from manila_lite.db.queries.admin import pools
from manila_lite.db.queries.admin import services
from manila_lite.db.queries.shares import shares
from manila_lite.db.session import Database
from manila_lite.rpc.share import BINARY
from manila_lite.rpc.share import TOPIC
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.manager import pool_reports
from manila_lite.share.manager.deferred_deletion import DeferredDeletion
from manila_lite.share.manager.endpoints import BackendEndpoints
from manila_lite.share.manager.servers.migrations import (
    ServerMigrationsEndpoint,
)
from manila_lite.share.manager.servers.setup import ServerSetup
from manila_lite.work.runner import Runner

LOG = logging.getLogger(__name__)

STARTING = 'The driver is starting.'
FIRST_RETRY, LAST_RETRY = 1.0, 60.0


class Backend:
    """Starts a driver, keeps its service row current, and runs its work.

    A driver that fails to start is retried with growing pauses. Until it
    is up, the service row reports it as down and no work is claimed.
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
        expire: Callable[['Backend', str], None],
        servers: ServerSetup | None = None,
        pause: Callable[[float], bool] | None = None,
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
        self.servers = servers
        self.health: str | None = STARTING
        self._expire = expire
        self._recover: Callable[[], object] | None = None
        self._stop = threading.Event()
        self._pause = pause or self._stop.wait
        self._thread = threading.Thread(
            target=self._bring_up, name=f'{host}-start', daemon=True
        )

    def start_recovery_after(
        self,
        seconds: float,
        request_pass: Callable[[datetime.datetime], object],
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
        """Register the service and start the driver in the background."""
        self.register()
        self._thread.start()

    def register(self) -> None:
        self.db.write(
            services.register,
            host=self.host,
            binary=BINARY,
            topic=TOPIC,
            zone=self.zone,
            incarnation=self.incarnation,
            enabled=self.enabled,
            health=self.health,
        )

    def stop(self, timeout: float) -> bool:
        """Stop claiming work; return True when running work has ended."""
        self._stop.set()
        return self.runner.stop(timeout)

    def _bring_up(self) -> None:
        retry = FIRST_RETRY
        while not self._stop.is_set():
            try:
                self.set_up()
            except Exception as error:
                LOG.exception('The driver of %s failed to start', self.host)
                self.health = f'The driver failed to start: {error}'
                # If the database is down, a later heartbeat reports it.
                with contextlib.suppress(db_exc.DBError):
                    self.beat()
                if self._pause(retry):
                    return
                retry = min(retry * 2, LAST_RETRY)
            else:
                self.runner.start()
                LOG.info('Back end %s is up', self.host)
                if self._recover is not None:
                    threading.Thread(
                        target=self._recover,
                        daemon=True,
                        name=f'{self.host}-recovery',
                    ).start()
                return

    def set_up(self) -> None:
        """Start the driver, report its pools, and mark the service up."""
        self.driver.do_setup(RequestContext())
        self.driver.check_for_setup_error()
        self.endpoints.ensuring.start()
        self.driver.initialized = True
        self.report()
        self.health = None
        self.beat()

    def beat(self) -> None:
        """Write the heartbeat, with the reason if the driver is down."""
        if not self.db.write(
            services.heartbeat,
            host=self.host,
            binary=BINARY,
            incarnation=self.incarnation,
            health=self.health,
        ):
            self.register()

    def report(self) -> None:
        """Get the pools from the driver and store them."""
        known = self.db.read(pools.get_known_allocations, self.host)
        stats = self.driver.get_share_stats(refresh=True)
        if self.servers is not None:
            stats = self.servers.complete_stats(stats)
        self.db.write(
            pools.save_report,
            self.host,
            pool_reports.pool_reports(stats, self.host, self.db.utcnow()),
            known,
        )

    def expire(self) -> None:
        """Delete the shares whose time in the recycle bin has expired."""
        tried: set[str] = set()
        while self.driver.initialized:
            expired = [
                share_id
                for share_id in self.db.read(shares.list_expired, self.host)
                if share_id not in tried
            ]
            if not expired:
                return
            for share_id in expired:
                self._expire(self, share_id)
            tried.update(expired)

    @property
    def call_endpoints(self) -> list[ServerMigrationsEndpoint]:
        """The endpoints whose synchronous calls this back end answers."""
        return [self.endpoints.server_migrations]

    @property
    def is_up(self) -> bool:
        return self.health is None


def wait_until_up(backends: list[Backend], timeout: float) -> bool:
    """Wait for the drivers; return False when one is not up in time."""
    deadline = time.monotonic() + timeout
    for backend in backends:
        backend._thread.join(max(0.0, deadline - time.monotonic()))
    return all(backend.is_up for backend in backends)
