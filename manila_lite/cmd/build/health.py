"""The checks of the API process behind /healthcheck.

Anyone may ask, as often as they like. So a check costs one short read at
most requests, and never more than one of them waits.
"""

from collections.abc import Callable, Sequence
import logging
import threading
import time

from manila_lite.api.health import Check
from manila_lite.cmd.build.process import Process
from manila_lite.db import errors
from manila_lite.db.queries.admin import services
from manila_lite.db.queries.admin import write_probe
from manila_lite.db.rows import LivenessRow
from manila_lite.db.rows import ServiceRow
from manila_lite.db.session import Database
from manila_lite.rpc.bus_probe import BusProbe
from manila_lite.rpc.scheduler import TOPIC as SCHEDULER_TOPIC
from manila_lite.rpc.share import BINARY as SHARE

LOG = logging.getLogger(__name__)

SCHEDULER = 'manila-scheduler'

WRITE_INTERVAL = 5.0
RETRY_INTERVAL = 1.0
"""Seconds until the next write, after one that succeeded or failed."""

PATIENCE = 5.0
"""Seconds after which a write that has not ended counts as failed."""


def checks_of_others(process: Process) -> dict[str, Check]:
    """Return the checks of what an API process needs others for."""
    found = ServicesCheck(process.db, process.conf.service_down_time)
    checks = {'scheduler': found.scheduler, 'backends': found.back_ends}
    if process.transport is None:
        return checks
    return checks | {'bus': BusProbe(process.transport, SCHEDULER_TOPIC)}


class ServicesCheck:
    """Whether schedulers and back ends are alive, as `service list` shows."""

    def __init__(self, db: Database, down_time: float):
        self._db = db
        self._down_time = down_time

    def scheduler(self) -> str | None:
        """Return a reason unless a scheduler is up."""
        if any(self._is_up(row) for row in self._enabled(SCHEDULER)):
            return None
        return 'none is up, see "service list"'

    def back_ends(self) -> str | None:
        """Return a reason unless all enabled back ends are up."""
        found = self._enabled(SHARE)
        down = sum(not self._is_up(row) for row in found)
        if found and not down:
            return None
        return f'{down} of {len(found)} are not up, see "service list"'

    def _is_up(self, row: LivenessRow) -> bool:
        return services.is_up(row, self._down_time)

    def _enabled(self, binary: str) -> Sequence[ServiceRow]:
        try:
            rows = self._db.read(services.list_all)
        except errors.UNAVAILABLE:
            return []
        return [
            row for row in rows if row.binary == binary and not row.disabled
        ]


class DatabaseCheck:
    """Whether the database can be read and written."""

    def __init__(
        self, db: Database, clock: Callable[[], float] = time.monotonic
    ):
        self._db = db
        self._clock = clock
        self._lock = threading.Lock()
        self._writing_since: float | None = None
        self._written_at: float | None = None
        self._reason: str | None = None

    def __call__(self) -> str | None:
        try:
            self._db.read(services.list_zones)
        except errors.UNAVAILABLE as error:
            LOG.warning('The database does not answer: %s', error)
            return 'does not answer'
        if self._begin_to_write():
            reason: str | None = 'cannot be written'
            try:
                reason = self._write()
            finally:
                self._end(reason)
        return self._found()

    @property
    def is_writing(self) -> bool:
        return self._writing_since is not None

    def _begin_to_write(self) -> bool:
        """Whether the caller is to write now."""
        now = self._clock()
        with self._lock:
            pause = RETRY_INTERVAL if self._reason else WRITE_INTERVAL
            if self._writing_since is not None or (
                self._written_at is not None and now - self._written_at < pause
            ):
                return False
            self._writing_since = now
            return True

    def _write(self) -> str | None:
        try:
            self._db.write(write_probe.write)
        except errors.UNAVAILABLE as error:
            LOG.warning('The database cannot be written: %s', error)
            return 'cannot be written'
        return None

    def _end(self, reason: str | None) -> None:
        with self._lock:
            self._reason = reason
            self._writing_since = None
            self._written_at = self._clock()

    def _found(self) -> str | None:
        with self._lock:
            since = self._writing_since
            if since is not None and self._clock() - since > PATIENCE:
                return 'does not end a write'
            return self._reason
