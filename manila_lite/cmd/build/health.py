"""The checks of each kind of process behind /healthcheck.

Anyone may ask, as often as they like. So the API reads its database briefly
at each request; all else is checked at intervals, and the request that starts
a check waits for it, for a few seconds at most.
"""

from collections.abc import Callable, Sequence
import functools
import logging
import threading
import time

from manila_lite.api.health import Check, NotKnown
from manila_lite.cmd.build.process import Process
from manila_lite.db import errors
from manila_lite.db.queries.services import incarnations, services
from manila_lite.db.rows import LivenessRow, ServiceRow
from manila_lite.db.session import Database
from manila_lite.rpc import listening
from manila_lite.rpc.data import TOPIC as DATA_TOPIC
from manila_lite.rpc.scheduler import TOPIC as SCHEDULER_TOPIC
from manila_lite.rpc.share import BINARY as SHARE, TOPIC as SHARE_TOPIC
from manila_lite.share.manager.backend import Backend
from manila_lite.work.runner import Runner

NOT_KNOWN = NotKnown('is being checked')


class Throttled:
    """Runs a check at intervals; all calls in between get its last answer.

    The check runs in a thread of its own. The call that starts it waits for
    it, but only for `wait` seconds, by default as long as `patience`. While
    the check has been running for more than `patience` seconds, the answer
    is `late`, and before it has ended for the first time `NOT_KNOWN`.
    """

    def __init__(
        self,
        check: Check,
        interval: float,
        retry_interval: float,
        *,
        patience: float,
        late: str,
        wait: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._check = check
        self._interval, self._retry_interval = interval, retry_interval
        self._patience, self._late = patience, late
        self._wait = patience if wait is None else wait
        self._clock = clock
        self._lock = threading.Lock()
        self._running_since: float | None = None
        self._ended_at: float | None = None
        self._reason: str | None = None

    def __call__(self) -> str | None:
        """Return what is wrong, or None."""
        if self._begin():
            thread = threading.Thread(target=self._run, name='check', daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # the limit of threads is reached
                LOG.warning('A check does not start: %s', error)
                self._end('cannot be checked')
            else:
                thread.join(self._wait)
        with self._lock:
            since = self._running_since
            if since is not None and self._clock() - since >= self._patience:
                return self._late
            return NOT_KNOWN if self._ended_at is None else self._reason

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
            self._end(reason)

    def _end(self, reason: str | None) -> None:
        with self._lock:
            self._reason = reason
            self._running_since = None
            self._ended_at = self._clock()


LOG = logging.getLogger(__name__)

SCHEDULER = 'manila-scheduler'
_NO_ANSWER = 'does not answer'
_DATABASE_SILENT = f'the database {_NO_ANSWER}'

WRITE_INTERVAL = 5.0
RETRY_INTERVAL = 1.0
"""Seconds until the next write, after one that succeeded or failed."""

PATIENCE = 5.0
"""Seconds after which a write that has not ended counts as failed."""

READ_INTERVAL = 1.0
READ_PATIENCE = 2.0
"""The same for reads."""

BUS_INTERVAL = 10.0
BUS_PATIENCE = 5.0
"""The same for messages; no request waits for them."""


def checks_of_others(process: Process) -> dict[str, Check]:
    """Return the checks of what an API process needs others for."""
    found = ServicesCheck(process.db, process.conf.service_down_time)
    return {
        'scheduler': _throttled_read(found.scheduler, _DATABASE_SILENT),
        'backends': _throttled_read(found.back_ends, _DATABASE_SILENT),
    } | _bus_check(process, SCHEDULER_TOPIC, found.bus)


def checks_of_scheduler(process: Process, runner: Runner) -> dict[str, Check]:
    """Return the checks of a scheduler process."""

    def work() -> str | None:
        since = runner.busy_since()
        limit = process.conf.service_down_time
        if since is not None and time.monotonic() - since > limit:
            return f'all workers have been occupied for over {limit} s'
        return runner.stall_reason()

    return _checks_of_process(process, SCHEDULER_TOPIC) | {'work': work}


def checks_of_data_process(process: Process, runner: Runner) -> dict[str, Check]:
    """Return the checks of a data service process.

    Copies may take hours, so workers may be occupied for any time.
    """
    return _checks_of_process(process, DATA_TOPIC) | {'work': runner.stall_reason}


def checks_of_share_process(
    process: Process, backends: Sequence[Backend]
) -> dict[str, Check]:
    """Return the checks of a share process; one is for each back end."""

    def work() -> str | None:
        # Without a driver there is no work, and the back end is not up.
        found = [one.runner.stall_reason() for one in backends if one.is_started]
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

    return {backend.host: functools.partial(check, backend) for backend in backends}


def _checks_of_process(process: Process, topic: str) -> dict[str, Check]:
    database = _throttled_read(DatabaseCheck(process.db), _NO_ANSWER)
    return {'database': database} | _bus_check(process, topic)


def _throttled_read(check: Check, late: str) -> Check:
    return Throttled(
        check, READ_INTERVAL, READ_INTERVAL, patience=READ_PATIENCE, late=late
    )


def _bus_check(
    process: Process, topic: str, others: Check = lambda: None
) -> dict[str, Check]:
    """Return the check of the message bus, if this process has one.

    Where it works for this process, `others` says whether for the others.
    """
    if process.transport is None:
        return {}

    def probe() -> str | None:
        return listening.send_ping(process.transport, topic) or others()

    return {
        'bus': Throttled(
            probe,
            BUS_INTERVAL,
            BUS_INTERVAL,
            patience=BUS_PATIENCE,
            late=listening.SILENT,
            wait=0.0,
        )
    }


class ServicesCheck:
    """Whether schedulers and back ends are alive, as `service list` shows."""

    def __init__(self, db: Database, down_time: float):
        self._db = db
        self._down_time = down_time

    def scheduler(self) -> str | None:
        """Return a reason unless a scheduler is up."""
        return self._check(SCHEDULER, self._none_is_up)

    def back_ends(self) -> str | None:
        """Return a reason unless all enabled back ends are up."""
        return self._check(SHARE, self._some_are_down)

    def bus(self) -> str | None:
        """Return a reason if the broker refuses a process of theirs."""
        try:
            found = self._db.read(incarnations.warnings_by_service, self._down_time)
        except errors.UNAVAILABLE:
            return None  # the checks of the database say so
        if not found:
            return None
        return f'{len(found)} services lack it, see "service list"'

    def _check(
        self, binary: str, find: Callable[[list[ServiceRow]], str | None]
    ) -> str | None:
        try:
            rows = self._db.read(services.list_all)
        except errors.UNAVAILABLE:
            return _DATABASE_SILENT
        found = [row for row in rows if row.binary == binary and not row.disabled]
        return find(found) if found else 'none is enabled, see "service list"'

    def _none_is_up(self, found: list[ServiceRow]) -> str | None:
        if any(self._is_up(row) for row in found):
            return None
        return 'none is up, see "service list"'

    def _some_are_down(self, found: list[ServiceRow]) -> str | None:
        down = sum(not self._is_up(row) for row in found)
        if not down:
            return None
        return f'{down} of {len(found)} are not up, see "service list"'

    def _is_up(self, row: LivenessRow) -> bool:
        return services.is_up(row, self._down_time)


class DatabaseCheck:
    """Whether the database can be read and written."""

    def __init__(self, db: Database, clock: Callable[[], float] = time.monotonic):
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
            return _NO_ANSWER
        return self._written()

    @property
    def is_writing(self) -> bool:
        return self._written.is_running

    def _write(self) -> str | None:
        try:
            self._db.write(services.probe_write)
        except errors.UNAVAILABLE as error:
            LOG.warning('The database cannot be written: %s', error)
            return 'cannot be written'
        return None
