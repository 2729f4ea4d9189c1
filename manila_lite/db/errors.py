"""Errors of databases: what they say, and when a transaction is run again."""

from collections.abc import Callable
import errno
import random
import sqlite3
import time
import typing

from oslo_db import exception as db_exc
import sqlalchemy as sa

from manila_lite import exception, metrics

UNAVAILABLE = (db_exc.DBError, exception.ServiceUnavailable)
"""What a transaction raises when the database cannot run it now."""

UNCONFIRMED = (db_exc.DBConnectionError, sa.exc.OperationalError)
"""What a commit raises when it is not known whether it has succeeded.

Galera ends one with an error that has no class in oslo.db, for example, when
the node loses the others meanwhile.
"""

_CONFLICTS: dict[str, frozenset[object]] = {
    'sqlite': frozenset({sqlite3.SQLITE_BUSY}),
    # Deadlock, also at the COMMIT of Galera; lock wait timeout; record
    # changed since last read; conflict in MySQL group replication; no lock of
    # a counter of rows (or its end, which repeating does not change).
    'mysql': frozenset({1213, 1205, 1020, 3101, 1467}),
    # Deadlock, serialization failure, lock_timeout.
    'postgresql': frozenset({'40P01', '40001', '55P03'}),
}

_READ_ONLY: dict[str, frozenset[object]] = {
    'sqlite': frozenset(),
    # Transaction is read-only, server is in read-only mode.
    'mysql': frozenset({1792, 1836}),
    'postgresql': frozenset({'25006'}),
}
_OPTION_PREVENTS_STATEMENT = 1290

# "WSREP has not yet prepared node for application use": a node of Galera that
# lost the others, or gets its data. It refuses statements before it runs them.
_NOT_READY = 1047

_FULL: dict[str, frozenset[object]] = {
    # Full disk; I/O error; read-only file system.
    'sqlite': frozenset(
        {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY}
    ),
    # Disk full, table full, error on write.
    'mysql': frozenset({1021, 1114, 1026}),
    # Disk full, I/O error.
    'postgresql': frozenset({'53100', '58030'}),
}
_STORAGE_ENGINE_ERROR = 1030

# Of an account: the right to a table or a column.
_DENIED: dict[str, frozenset[object]] = {
    'sqlite': frozenset(),
    'mysql': frozenset({1142, 1143}),
    'postgresql': frozenset({'42501'}),
}


class Denied(db_exc.DBError):
    """The account has no right to the table."""


class WrongServer(db_exc.DBConnectionError):
    """The connection is to a server that does not run the transaction.

    Nothing was written, and a new connection may reach another server.
    """


class ReadOnlyServer(WrongServer):
    """The server refuses writes.

    It was the primary server when the connection was made.
    """


class ServerNotReady(WrongServer):
    """The server is a node of Galera that is not part of its cluster now."""


class StaleConnection(WrongServer):
    """The server had closed the connection before its first statement."""


class NotCommitted(WrongServer):
    """The connection was lost before the transaction was committed."""


def stale(error: Exception) -> WrongServer:
    """Return what the error of the first statement of a transaction means.

    The pool does not ask the server about connections that were just used.
    """
    return error if isinstance(error, WrongServer) else StaleConnection(error)


def translate(context: sa.ExceptionContext, *, writes: bool) -> Exception | None:
    """Return the error that callers know, or None to leave it as it is.

    DBDeadlock means that the transaction lost against another one,
    DatabaseFull that the server has no room, Denied that the account has no right
    to the table. On a WrongServer the pool drops
    this connection and all older ones.
    """
    kind = 'mysql' if _is_mysql(context.dialect) else context.dialect.name
    error = context.original_exception
    if _code(kind, error) in _CONFLICTS[kind]:
        return db_exc.DBDeadlock(context.sqlalchemy_exception)
    if kind == 'mysql' and _code(kind, error) == _NOT_READY:
        context.is_disconnect = True
        return ServerNotReady(context.sqlalchemy_exception)
    if writes and _is_read_only(kind, error):
        context.is_disconnect = True
        return ReadOnlyServer(context.sqlalchemy_exception)
    if _is_full(kind, error):
        return exception.DatabaseFull(reason=error)
    if _code(kind, error) in _DENIED[kind]:
        return Denied(context.sqlalchemy_exception)
    return None


def _is_mysql(dialect: sa.Dialect) -> bool:
    return dialect.name in ('mysql', 'mariadb')


def _is_read_only(kind: str, error: BaseException) -> bool:
    code = _code(kind, error)
    if code == _OPTION_PREVENTS_STATEMENT:  # the text names the option
        return 'read-only' in str(error) or 'read_only' in str(error)
    return code in _READ_ONLY[kind]


def _is_full(kind: str, error: BaseException) -> bool:
    code = _code(kind, error)
    if code == _STORAGE_ENGINE_ERROR:  # the text has the number of the system
        return f'error {errno.ENOSPC} ' in str(error)
    return code in _FULL[kind]


def _code(kind: str, error: BaseException) -> object:
    """Return the code of a driver's exception; None if it has none."""
    if kind == 'sqlite':
        # The rest are details, such as BUSY_SNAPSHOT.
        return getattr(error, 'sqlite_errorcode', 0) & 0xFF
    if kind == 'mysql':
        return error.args[0] if error.args else None
    # psycopg 3 and psycopg2 use different names.
    return getattr(error, 'sqlstate', getattr(error, 'pgcode', None))


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
        elif isinstance(error, WrongServer) and self._moves < MAX_MOVES:
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
