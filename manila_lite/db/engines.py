"""Engines of the three databases, configured in one place.

Writers run at READ COMMITTED (on SQLite: BEGIN IMMEDIATE), readers in
one snapshot (REPEATABLE READ, read only; on SQLite a plain BEGIN in WAL).
"""

from collections.abc import Callable
import time
import typing

from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import engines as oslo_engines
from oslo_db.sqlalchemy import exc_filters
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy import pool

WRITE = 'manila_lite_write'
"""The execution option of connections whose transactions write."""

BUSY_TIMEOUT = 10
"""Seconds that SQLite waits for another process before it is busy."""

_SETTINGS = {
    ('mysql', 'write'): (
        'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED',
    ),
    ('mysql', 'read'): (
        'SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY',
    ),
    ('postgresql', 'write'): (
        'SET SESSION CHARACTERISTICS AS TRANSACTION '
        'ISOLATION LEVEL READ COMMITTED',
    ),
    ('postgresql', 'read'): (
        'SET SESSION CHARACTERISTICS AS TRANSACTION '
        'ISOLATION LEVEL REPEATABLE READ READ ONLY',
    ),
}


def dialect_of(url: str) -> str:
    """Return `sqlite`, `mysql` (also for MariaDB) or `postgresql`."""
    name = sa.make_url(url).get_backend_name()
    return 'mysql' if name == 'mariadb' else name


def create_engine(
    url: str,
    use: str,
    *,
    clock: Callable[[], float] = time.time,
    pool_size: int = 5,
    max_overflow: int = 50,
    recycle: int = 3600,
) -> sa.Engine:
    """Return an engine for one use: `read` or `write`."""
    if dialect_of(url) == 'sqlite':
        return _sqlite(url, clock)
    engine = oslo_engines.create_engine(
        url,
        connection_recycle_time=recycle,
        max_pool_size=pool_size,
        max_overflow=max_overflow,
        thread_checkin=False,
        max_retries=0,
        connection_parameters=None
        if 'charset' in url or dialect_of(url) != 'mysql'
        else 'charset=utf8mb4',
    )
    settings = _SETTINGS[dialect_of(url), use]

    @event.listens_for(engine, 'do_connect')
    def connect(
        dialect: sa.Dialect,
        record: object,
        args: typing.Any,
        options: typing.Any,
    ) -> typing.Any:
        try:
            return dialect.connect(*args, **options)
        except dialect.loaded_dbapi.OperationalError as error:
            # oslo.db knows the messages of older PostgreSQL libraries only.
            raise db_exc.DBConnectionError(error) from error

    @event.listens_for(engine, 'connect')
    def configure(connection: typing.Any, record: object) -> None:
        cursor = connection.cursor()
        for statement in settings:
            cursor.execute(statement)
        cursor.close()
        connection.commit()

    return engine


def _sqlite(url: str, clock: Callable[[], float]) -> sa.Engine:
    engine = sa.create_engine(
        url,
        poolclass=pool.QueuePool,
        pool_size=5,
        max_overflow=-1,
        pool_reset_on_return=None,
        connect_args={'check_same_thread': False, 'timeout': BUSY_TIMEOUT},
    )
    exc_filters.register_engine(engine)

    @event.listens_for(engine, 'connect')
    def configure(connection: typing.Any, record: object) -> None:
        # The driver must not begin by itself: writers begin IMMEDIATE.
        connection.isolation_level = None
        connection.create_function('epoch_now', 0, clock)
        _enable_wal(connection, engine.dialect.loaded_dbapi)
        connection.execute('PRAGMA synchronous = FULL')
        connection.execute('PRAGMA foreign_keys = ON')

    @event.listens_for(engine, 'begin')
    def begin(connection: sa.Connection) -> None:
        if connection.get_execution_options().get(WRITE):
            # Through SQLAlchemy, so that "busy" is translated like others.
            connection.exec_driver_sql('BEGIN IMMEDIATE')
        else:  # takes no lock yet, so it cannot fail
            driver: typing.Any = connection.connection.dbapi_connection
            driver.execute('BEGIN')

    return engine


def _enable_wal(connection: typing.Any, dbapi: typing.Any) -> None:
    """Switch the database to WAL mode, which is persistent.

    SQLite does not wait here: on a new file it reports "locked" at once
    when another process does the same, so this retries.
    """
    deadline = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            connection.execute('PRAGMA journal_mode = WAL')
            return
        except dbapi.OperationalError as error:
            if 'locked' not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def set_synchronous(connection: sa.Connection, fsync: bool) -> None:
    """Set whether commits of a SQLite connection wait for the disk."""
    driver: typing.Any = connection.connection.dbapi_connection
    driver.execute(f'PRAGMA synchronous = {"FULL" if fsync else "NORMAL"}')
