"""A time limit for the statements of reads.

`limit_reads` sets it for all reads of a thread or greenlet, for example
those of a request; other reads of the process have none. PostgreSQL and
MariaDB limit every statement, SQLite the whole transaction.
"""

import contextvars
import time
import types
import typing

from oslo_db import exception as db_exc
import sqlalchemy as sa
from sqlalchemy import event, exc as sa_exc
from sqlalchemy.engine.interfaces import DBAPICursor, ExecutionContext

from manila_lite import exception
from manila_lite.db import errors

SQLITE_INTERVAL = 20_000
"""Instructions of SQLite, a few milliseconds, between two checks."""

# 1969 is of MariaDB, 3024 of MySQL.
_MYSQL_CODES = {1969, 3024}
_POSTGRESQL_STATE = '57014'
_SQLITE_MESSAGE = 'interrupted'

_seconds: contextvars.ContextVar[float] = contextvars.ContextVar(
    'read_limit', default=0.0
)


def limit_reads(seconds: float) -> 'Limit':
    """Limit the statements of reads in this context; 0 is no limit."""
    return Limit(seconds)


def apply(connection: sa.Connection) -> 'AppliedLimit':
    """Apply the limit to a transaction that has just begun.

    Raises ReadTimeLimitExceeded when a statement exceeds it.
    """
    return AppliedLimit(connection)


# Each request enters these: generators would take four times as long.


class Limit:
    """The limit, set for a context."""

    __slots__ = ('_seconds', '_token')

    def __init__(self, seconds: float):
        self._seconds = seconds

    def __enter__(self) -> None:
        self._token = _seconds.set(self._seconds)

    def __exit__(self, *error: object) -> None:
        _seconds.reset(self._token)


class AppliedLimit:
    """The limit of one transaction."""

    __slots__ = ('_connection', '_driver', '_seconds')

    def __init__(self, connection: sa.Connection):
        self._connection = connection
        self._driver: typing.Any = None
        self._seconds = 0.0

    def __enter__(self) -> None:
        self._seconds = seconds = _seconds.get()
        if not seconds:
            return
        connection = self._connection
        dialect = connection.dialect.name
        if dialect == 'sqlite':
            self._driver = connection.connection.dbapi_connection
            deadline = time.monotonic() + seconds
            self._driver.set_progress_handler(
                lambda: time.monotonic() > deadline, SQLITE_INTERVAL
            )
        elif dialect == 'postgresql':
            try:
                connection.exec_driver_sql(
                    f'SET LOCAL statement_timeout = {_milliseconds(seconds)}'
                )
            except db_exc.DBConnectionError as error:
                raise errors.stale(error) from error

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: types.TracebackType | None,
    ) -> None:
        if self._driver:
            self._driver.set_progress_handler(None, 0)
        if self._seconds and error is not None and _is_exceeded(error):
            raise exception.ReadTimeLimitExceeded(seconds=self._seconds) from error


def prepare(engine: sa.Engine) -> None:
    """Let the statements of an engine for reads have their limit.

    On MySQL and MariaDB it is a prefix, which saves a round trip; the other
    databases need no preparation. One listener for all connections, since a
    listener of a connection would have to be added by every read. It is one of
    the dialect: those of engines are looked for at every step of a statement.
    """
    if engine.dialect.name not in ('mysql', 'mariadb'):
        return

    @event.listens_for(engine, 'do_execute')
    def limit(
        cursor: DBAPICursor,
        statement: str,
        parameters: typing.Any,
        context: ExecutionContext,
    ) -> bool:
        seconds = _seconds.get()
        if not seconds:
            return False
        if getattr(context.dialect, 'is_mariadb', False):
            statement = f'SET STATEMENT max_statement_time = {seconds} FOR {statement}'
        else:
            hint = f'/*+ MAX_EXECUTION_TIME({_milliseconds(seconds)}) */'
            statement = statement.replace('SELECT', f'SELECT {hint}', 1)
        context.dialect.do_execute(cursor, statement, parameters, context)
        return True


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))


def _is_exceeded(error: BaseException) -> bool:
    """Whether the database ended a statement because of its time limit."""
    if not isinstance(error, (sa_exc.DBAPIError, db_exc.DBError)):
        return False
    cause: typing.Any = getattr(error, 'inner_exception', error)
    cause = getattr(cause, 'orig', cause)
    state = getattr(cause, 'sqlstate', None) or getattr(cause, 'pgcode', None)
    args = getattr(cause, 'args', ()) or (None,)
    return (
        state == _POSTGRESQL_STATE
        or args[0] in _MYSQL_CODES
        or args[0] == _SQLITE_MESSAGE
    )
