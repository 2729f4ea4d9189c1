"""The checks of each kind of process behind /healthcheck.

Anyone may ask, as often as they like. So a check costs one short read at
most requests, and never more than one of them waits, for a few seconds.
"""

from collections.abc import Callable, Sequence
import functools
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
from manila_lite.rpc.share import TOPIC as SHARE_TOPIC
from manila_lite.share.manager.backend import Backend
from manila_lite.work.runner import Runner

LOG = logging.getLogger(__name__)

SCHEDULER = 'manila-scheduler'

WRITE_INTERVAL = 5.0
RETRY_INTERVAL = 1.0
"""Seconds until the next write, after one that succeeded or failed."""

PATIENCE = 5.0
"""Seconds after which a write that has not ended counts as failed."""

READ_INTERVAL = 1.0
READ_PATIENCE = 2.0
"""The same for the whole check, in processes that have few threads."""


def checks_of_others(process: Process) -> dict[str, Check]:
    """Return the checks of what an API process needs others for."""
    found = ServicesCheck(process.db, process.conf.service_down_time)
    checks = {'scheduler': found.scheduler, 'backends': found.back_ends}
    if process.transport is None:
        return checks
    return checks | {'bus': BusProbe(process.transport, SCHEDULER_TOPIC)}


def checks_of_scheduler(process: Process, runner: Runner) -> dict[str, Check]:
    """Return the checks of a scheduler process."""

    def work() -> str | None:
        since = runner.busy_since()
        limit = process.conf.service_down_time
        if since is not None and time.monotonic() - since > limit:
            return f'all workers are occupied for more than {limit} s'
        return runner.problem()

    return _checks_of_process(process, SCHEDULER_TOPIC) | {'work': work}


def checks_of_share_process(
    process: Process, backends: Sequence[Backend]
) -> dict[str, Check]:
    """Return the checks of a share process; one is for each back end."""

    def work() -> str | None:
        # Without a driver there is no work, and the back end is not up.
        found = [one.runner.problem() for one in backends if one.is_started]
        return next(filter(None, found), None)

    return (
        _checks_of_process(process, SHARE_TOPIC)
        | {'work': work}
        | checks_of_backends(backends)
    )


def checks_of_backends(backends: Sequence[Backend]) -> dict[str, Check]:
    """Return a check for each back end of this process.

    What a driver says may name addresses, so it is not shown.
    """

    def check(backend: Backend) -> str | None:
        return None if backend.is_up else 'is not up, see "service list"'

    return {
        backend.host: functools.partial(check, backend) for backend in backends
    }


def _checks_of_process(process: Process, topic: str) -> dict[str, Check]:
    checks: dict[str, Check] = {
        'database': Throttled(
            DatabaseCheck(process.db),
            READ_INTERVAL,
            READ_INTERVAL,
            patience=READ_PATIENCE,
            late='does not answer',
        )
    }
    if process.transport is None:
        return checks
    return checks | {'bus': BusProbe(process.transport, topic)}


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
        self._written = Throttled(
            self._write,
            WRITE_INTERVAL,
            RETRY_INTERVAL,
            patience=PATIENCE,
            late='does not end a write',
            clock=clock,
        )

    def __call__(self) -> str | None:
        try:
            self._db.read(services.list_zones)
        except errors.UNAVAILABLE as error:
            LOG.warning('The database does not answer: %s', error)
            return 'does not answer'
        return self._written()

    @property
    def is_writing(self) -> bool:
        return self._written.is_running

    def _write(self) -> str | None:
        try:
            self._db.write(write_probe.write)
        except errors.UNAVAILABLE as error:
            LOG.warning('The database cannot be written: %s', error)
            return 'cannot be written'
        return None


class Throttled:
    """Runs a check at intervals; all calls in between have its last answer.

    It runs in a thread of its own. The call that starts it waits for it, but
    only `patience` seconds; after that, the answer is `late`.
    """

    def __init__(
        self,
        check: Check,
        interval: float,
        retry_interval: float,
        *,
        patience: float,
        late: str,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._check = check
        self._interval, self._retry_interval = interval, retry_interval
        self._patience, self._late = patience, late
        self._clock = clock
        self._lock = threading.Lock()
        self._running_since: float | None = None
        self._ended_at: float | None = None
        self._reason: str | None = None

    def __call__(self) -> str | None:
        if self._begin():
            thread = threading.Thread(
                target=self._run, name='health-check', daemon=True
            )
            thread.start()
            thread.join(self._patience)
            if thread.is_alive():
                return self._late
        with self._lock:
            since = self._running_since
            if since is not None and self._clock() - since > self._patience:
                return self._late
            return self._reason

    @property
    def is_running(self) -> bool:
        return self._running_since is not None

    def _begin(self) -> bool:
        """Whether the caller is to start the check now."""
        now = self._clock()
        with self._lock:
            pause = self._retry_interval if self._reason else self._interval
            if self._running_since is not None or (
                self._ended_at is not None and now - self._ended_at < pause
            ):
                return False
            self._running_since = now
            return True

    def _run(self) -> None:
        reason: str | None = 'failed'
        try:
            reason = self._check()
        finally:
            with self._lock:
                self._reason = reason
                self._running_since = None
                self._ended_at = self._clock()
