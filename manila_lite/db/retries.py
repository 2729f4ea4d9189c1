"""When a transaction is run again, and for how long."""

from collections.abc import Callable
import random
import time
import typing

from oslo_db import exception as db_exc

from manila_lite import exception, metrics
from manila_lite.db import errors

LIMIT = 20.0
"""Seconds for which a transaction is run again, unless configured."""

MAX_REPAIRS = 4
MAX_MOVES = 4
"""Attempts on new connections to find a server that is the right one."""

LONGEST_PAUSE = 0.5

ERRORS = (db_exc.DBError, exception.ManilaLiteError)
"""The errors after which there may be another attempt."""


class Runs(typing.Protocol):
    """What attempts need of the database."""

    retries: int
    retry_limit: float
    rng: random.Random
    sleep: Callable[[float], None]


class Attempts:
    """The attempts of one transaction, for `limit` seconds if given."""

    def __init__(self, db: Runs, limit: float | None = None):
        self._db = db
        self._limit = db.retry_limit if limit is None else limit
        self._began = time.monotonic()
        self._slept = 0.0
        self._conflicts = 0
        self._repairs = 0
        self._moves = 0

    @property
    def primary_moved(self) -> bool:
        """Whether another server than at first ran the transaction."""
        return self._moves > 0

    def wait_for_next(self, error: Exception) -> None:
        """Wait until the transaction may be run again, or raise the error.

        Of a transaction that failed with one of these errors nothing was
        written, also if the error was that of the commit.
        """
        repair = getattr(error, 'repair', None)
        if repair is not None and self._repairs < MAX_REPAIRS:
            self._repairs += 1
            repair(self._db)
        elif isinstance(error, db_exc.DBDeadlock):
            self._conflicts += 1
            metrics.DATABASE_DEADLOCKS.increment()
            self._pause(self._conflicts, error)
        elif isinstance(error, errors.WrongServer) and self._moves < MAX_MOVES:
            self._moves += 1
            self._pause(self._moves, error)
        else:
            raise error

    def _pause(self, attempt: int, error: Exception) -> None:
        if self._time_left() <= 0:
            metrics.DATABASE_BUSY.increment()
            raise exception.DatabaseBusy from error
        # Random and growing, so that of two transactions one gets through.
        pause = self._db.rng.uniform(0.001, 0.01) * 2 ** min(attempt, 10)
        pause = min(pause, LONGEST_PAUSE)
        self._db.retries += 1
        metrics.DATABASE_RETRIES.increment()
        self._slept += pause
        self._db.sleep(pause)

    def _time_left(self) -> float:
        # A test may replace `sleep`, so that no time passes in it.
        spent = max(time.monotonic() - self._began, self._slept)
        return self._limit - spent
