"""Engines of the three databases, configured in one place.

Writers run at READ COMMITTED (on SQLite: BEGIN IMMEDIATE), readers in
one snapshot (REPEATABLE READ, read only; on SQLite a plain BEGIN in WAL).
MariaDB has this in the session, with its time zone, because it would cost
a statement more in every transaction; PostgreSQL takes it with the BEGIN.
Both have time limits in the session, for locks and for idle transactions.

By default a pool asks at each checkout whether the connection is alive, and
sends a rollback after each commit. Both are left out where nothing depends on
them: a round trip takes as long as a short statement.

SQLAlchemy finds compiled statements by a key that describes the whole
statement. To hash it takes a quarter of the time of a short statement, because
tuples do not keep their hash. Most of our statements are constants of modules,
and their key is always the same object.
"""

from collections.abc import Callable, Hashable, Iterator, MutableMapping, Sequence
import contextlib
import importlib.util
import threading
import time
import typing

from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import engines as oslo_engines, exc_filters
import sqlalchemy as sa
from sqlalchemy import event, exc, exc as sa_exc, pool, util
from sqlalchemy.engine.interfaces import DBAPIConnection

from manila_lite import exception
from manila_lite.db import errors

Record = pool.ConnectionPoolEntry
ResetState = pool.PoolResetState

SIZE = 500
KNOWN = 300
"""Statements that are found by identity; more than are constants and used."""


class StatementCache(MutableMapping):
    """What the execution option `compiled_cache` wants, for one engine.

    A key found by its identity is compared as well, which is quick if it is
    the same object. So a wrong guess only costs time.
    """

    def __init__(self, size: int = SIZE, known: int = KNOWN):
        self._compiled: util.LRUCache[Hashable, typing.Any] = util.LRUCache(size)
        self._size = known
        self._known: dict[Hashable, tuple[Hashable, typing.Any]] = {}
        self._seen: set[Hashable] = set()

    def get(self, key: tuple, default: typing.Any = None) -> typing.Any:
        identity = (id(key[1]), *key[2:])
        known = self._known.get(identity)
        if known is not None and known[0] == key:
            return known[1]
        compiled = self._compiled.get(key)
        if compiled is None:
            return default
        self._remember(identity, key, compiled)
        return compiled

    def _remember(self, identity: Hashable, key: Hashable, compiled: object) -> None:
        """Remember a statement that is used again.

        One that was made for this execution does not come back.
        """
        if identity not in self._seen:
            _limit(self._seen, self._size)
            self._seen.add(identity)
            return
        _limit(self._known, self._size)
        self._known[identity] = (key, compiled)

    def __getitem__(self, key: object) -> typing.Any:
        return self._compiled[key]

    def __setitem__(self, key: object, compiled: object) -> None:
        self._compiled[key] = compiled

    def __delitem__(self, key: object) -> None:
        self.clear()

    def __iter__(self) -> Iterator:
        return iter(self._compiled)

    def __len__(self) -> int:
        return len(self._compiled)

    def clear(self) -> None:
        self._compiled.clear()
        self._known.clear()
        self._seen.clear()


def _limit(found: set | dict, size: int) -> None:
    # All at once: which are in use shows soon.
    if len(found) >= size:
        found.clear()


IDLE = 5.0
"""Seconds after its last checkout at which a connection is asked.

One that was in use a moment ago is not. If the server has closed it, the first
statement of a transaction fails, and the transaction runs again, see
`errors.StaleConnection`.
"""

_CHECKED = 'manila_lite_checked_at'
_COMMITTED = 'manila_lite_committed'


def ping_idle_only(engine: sa.Engine) -> None:
    """Ask connections that were idle, in place of each at each checkout."""
    pool: typing.Any = engine.pool
    pool._pre_ping = False

    @event.listens_for(engine, 'checkout')
    def ping(connection: DBAPIConnection, record: Record, _: object) -> None:
        now = time.monotonic()
        checked = record.info.get(_CHECKED)
        record.info[_CHECKED] = now
        if checked is None or now - checked < IDLE:
            return  # it is new, or was in use
        dialect: typing.Any = engine.dialect
        try:
            alive = dialect.do_ping(connection)
        except dialect.loaded_dbapi.Error as error:
            # The pool drops all connections made before, and connects.
            raise exc.InvalidatePoolError from error
        if not alive:
            raise exc.InvalidatePoolError


SURPLUS = 10.0
"""Seconds after its last checkout at which a connection is closed, except one.

A server serves all processes of a cloud, and each needs many connections for
moments only.
"""


def close_surplus(engine: sa.Engine) -> None:
    """Close connections that have been idle; the pool keeps one of them.

    Each checkout takes the one that was used last. A thread closes the others,
    and ends when there are none.
    """
    pool: typing.Any = engine.pool
    pool._pool.use_lifo = True
    closer = threading.Thread()

    def close() -> None:
        while True:
            time.sleep(SURPLUS)
            if not _close_unused(engine.pool, time.monotonic() - SURPLUS):
                return

    @event.listens_for(engine, 'checkin')
    def start(connection: object, record: object) -> None:
        nonlocal closer
        pool: typing.Any = engine.pool  # another one after a dispose
        if not pool._pool.queue or closer.is_alive():
            return
        closer = threading.Thread(target=close, name='idle-connections', daemon=True)
        # With too many threads, or at the exit, connections stay open.
        with contextlib.suppress(RuntimeError):
            closer.start()


def _close_unused(pool: typing.Any, since: float) -> bool:
    """Close what was not checked out `since`; return whether more is left.

    Times are those of `time.monotonic`.
    """
    queue = pool._pool
    while True:
        with queue.mutex:
            idle = queue.queue
            if len(idle) < 2 or idle[0].info.get(_CHECKED, since) > since:
                return len(idle) > 1
            oldest = idle.popleft()
        oldest.close()
        pool._dec_overflow()


def roll_back_if_open(engine: sa.Engine) -> None:
    """Roll back at checkin, except after a commit, see `note_commit`."""
    pool: typing.Any = engine.pool
    pool._reset_on_return = None

    @event.listens_for(engine, 'reset')
    def reset(connection: DBAPIConnection, record: Record, state: ResetState) -> None:
        if state.transaction_was_reset or state.terminate_only:
            return
        if not record.info.pop(_COMMITTED, False):
            connection.rollback()


def note_commit(connection: sa.Connection) -> None:
    """Note that a connection returns to its pool after a commit."""
    connection.info[_COMMITTED] = True


WRITE = 'manila_lite_write'
"""The execution option of engines and connections that write."""

LOCK_TIMEOUT = 10
"""Seconds a transaction waits for the lock of another one; on SQLite, for
one of another process."""

IDLE_TIMEOUT = 30
"""Seconds after which a server ends a transaction that sends nothing.

Ours compute for milliseconds between statements. A process that is frozen
within one would otherwise keep its locks, and others waiting, for ever.
SQLite has no server that could end it.
"""


def _settings(kind: str, use: str) -> list[str]:
    """Return what a new connection to a server executes."""
    if kind == 'postgresql':
        return [
            "SET SESSION TIME ZONE 'UTC'",
            f'SET SESSION lock_timeout = {round(LOCK_TIMEOUT * 1000)}',
            'SET SESSION idle_in_transaction_session_timeout = '
            f'{round(IDLE_TIMEOUT * 1000)}',
            # Compiling a statement takes longer than any of ours runs.
            'SET SESSION jit = off',
        ]
    level = {'write': 'READ COMMITTED', 'read': 'REPEATABLE READ, READ ONLY'}[use]
    return [
        # MariaDB converts times by the zone of the session: in one with
        # summer time an hour repeats every autumn.
        "SET SESSION time_zone = '+00:00', "
        f'innodb_lock_wait_timeout = {max(1, round(LOCK_TIMEOUT))}, '
        f'idle_transaction_timeout = {max(1, round(IDLE_TIMEOUT))}',
        f'SET SESSION TRANSACTION ISOLATION LEVEL {level}',
    ]


_ISOLATION = {'write': 'READ COMMITTED', 'read': 'REPEATABLE READ'}


def dialect_of(url: str) -> str:
    """Return `sqlite`, `mysql` (also for MariaDB) or `postgresql`."""
    name = sa.make_url(url).get_backend_name()
    return 'mysql' if name == 'mariadb' else name


def with_driver(url: str, *, threads: bool = True) -> str:
    """Return the URL with a driver if it is `mysql://`, which names none.

    That is mysqlclient where it is installed, as it takes half the time of
    PyMySQL or less. Without threads it is not: a statement that waits for a
    lock in a driver in C would stop the greenlet that has the lock.

    With a CA both verify the name of the server, as PyMySQL does by default.
    """
    parsed = sa.make_url(url)
    if parsed.drivername != 'mysql':
        return url
    if threads and importlib.util.find_spec('MySQLdb') is not None:
        parsed = _verified_in_c(parsed.set(drivername='mysql+mysqldb'))
    else:
        parsed = parsed.set(drivername='mysql+pymysql')
    return parsed.render_as_string(hide_password=False)


def _verified_in_c(url: sa.URL) -> sa.URL:
    """Return the URL so that mysqlclient verifies what PyMySQL would."""
    query = url.query
    checks_name = util.asbool(query.get('ssl_check_hostname', 'true'))
    if 'ssl_ca' not in query or 'ssl_mode' in query or not checks_name:
        return url
    return url.update_query_dict({'ssl_mode': 'VERIFY_IDENTITY'})


def create_engine(
    url: str,
    use: str,
    *,
    clock: Callable[[], float] = time.time,
    pool_size: int = 5,
    max_overflow: int = 50,
    pool_timeout: int | None = None,
    recycle: int = 3600,
    sql_mode: str | None = 'TRADITIONAL',
    wsrep_sync_wait: int | None = None,
    debug: int = 0,
    trace: bool = False,
    parameters: str = '',
) -> sa.Engine:
    """Return an engine for one use: `read` or `write`.

    The other options are those of `db.options`; SQLite needs none.
    """
    if dialect_of(url) == 'sqlite':
        return _sqlite(url, clock)
    engine = oslo_engines.create_engine(
        url,
        connection_recycle_time=recycle,
        max_pool_size=pool_size,
        max_overflow=max_overflow,
        pool_timeout=pool_timeout,
        thread_checkin=False,
        max_retries=0,
        mysql_sql_mode=sql_mode,
        mysql_wsrep_sync_wait=wsrep_sync_wait,
        connection_debug=debug,
        connection_trace=trace,
        connection_parameters=_with_charset(url, parameters),
    )
    engine.update_execution_options(
        **{WRITE: use == 'write'},
        # psycopg 3 loses the count of an INSERT.
        preserve_rowcount=True,
        compiled_cache=StatementCache(),
    )
    ping_idle_only(engine)
    close_surplus(engine)
    roll_back_if_open(engine)
    if not trace:
        _remove_listeners(engine)
    _translate_errors(engine)
    settings = _settings(dialect_of(url), use)

    @event.listens_for(engine, 'do_connect')
    def connect(
        dialect: sa.Dialect, record: object, args: Sequence, options: dict
    ) -> typing.Any:
        if dialect.driver == 'psycopg':
            # Binding on the server needs the type of every parameter, and
            # prepared statements, which a pgbouncer may not know.
            options.setdefault('cursor_factory', dialect.loaded_dbapi.ClientCursor)
        try:
            return dialect.connect(*args, **options)
        except dialect.loaded_dbapi.OperationalError as error:
            # oslo.db knows the messages of older PostgreSQL libraries only.
            raise db_exc.DBConnectionError(error) from error

    @event.listens_for(engine, 'connect')
    def configure(connection: DBAPIConnection, record: object) -> None:
        cursor = connection.cursor()
        for statement in settings:
            cursor.execute(statement)
        cursor.close()
        connection.commit()
        if engine.dialect.name == 'postgresql':
            _set_begin(engine, connection, use)

    return engine


def _with_charset(url: str, parameters: str) -> str | None:
    """Return parameters of the URL; MySQL needs a character set."""
    if dialect_of(url) == 'mysql' and 'charset' not in url + parameters:
        return '&'.join(filter(None, (parameters, 'charset=utf8mb4')))
    return parameters or None


@contextlib.contextmanager
def connected(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Yield a connection; raise DatabaseBusy if all remain in use."""
    try:
        connection = engine.connect()
    except sa_exc.TimeoutError as error:
        raise exception.DatabaseBusy from error
    with connection:
        yield connection


def _set_begin(engine: sa.Engine, connection: object, use: str) -> None:
    """Set what the driver of PostgreSQL sends with every BEGIN.

    The session is left alone: behind a pgbouncer the next transaction runs
    in another one. Writers do not ask for READ WRITE, which would overrule
    a server that is read-only by default.
    """
    dialect: typing.Any = engine.dialect
    dialect.set_isolation_level(connection, _ISOLATION[use])
    if use == 'read':
        dialect.set_readonly(connection, True)


def _remove_listeners(engine: sa.Engine) -> None:
    """Remove what oslo.db does at commits for the sake of savepoints.

    We use none. With any such listener, SQLAlchemy looks for listeners at
    each step of each statement, which takes a tenth of its time.
    """
    for name in ('rollback_savepoint', 'rollback', 'commit'):
        for listener in tuple(getattr(engine.dispatch, name)):
            event.remove(engine, name, listener)
    # Not set to False, which would hide later listeners of all engines.
    del engine._has_events


def _translate_errors(engine: sa.Engine) -> None:
    """Raise the errors of `errors.translate` in place of those of oslo.db."""

    def translate(context: sa.ExceptionContext) -> None:
        # Engines may share a dialect, and with it this listener.
        options = (context.engine or engine).get_execution_options()
        error = errors.translate(context, writes=options.get(WRITE, False))
        if error is not None:
            raise error

    # The listener of oslo.db may raise, and is the last one then.
    event.remove(engine, 'handle_error', exc_filters.handler)
    event.listen(engine, 'handle_error', translate)
    event.listen(engine, 'handle_error', exc_filters.handler, retval=True)


def _sqlite(url: str, clock: Callable[[], float]) -> sa.Engine:
    engine = sa.create_engine(
        url,
        poolclass=pool.QueuePool,
        pool_size=5,
        max_overflow=-1,
        pool_reset_on_return=None,
        connect_args={'check_same_thread': False, 'timeout': LOCK_TIMEOUT},
    )
    engine.update_execution_options(compiled_cache=StatementCache())
    exc_filters.register_engine(engine)
    _remove_listeners(engine)
    _translate_errors(engine)

    @event.listens_for(engine, 'connect')
    def configure(connection: typing.Any, record: object) -> None:
        # The driver must not begin by itself: writers begin IMMEDIATE.
        connection.isolation_level = None
        connection.create_function('epoch_now', 0, clock)
        _enable_wal(connection, engine.dialect.loaded_dbapi)
        connection.execute('PRAGMA synchronous = FULL')
        connection.execute('PRAGMA foreign_keys = ON')

    def begin(connection: typing.Any) -> None:
        is_writer = connection.info.get(WRITE)
        connection.execute('BEGIN IMMEDIATE' if is_writer else 'BEGIN')

    # Not by a listener, see `_remove_listeners`.
    dialect: typing.Any = engine.dialect
    dialect.do_begin = begin
    return engine


def _enable_wal(connection: typing.Any, dbapi: typing.Any) -> None:
    """Switch the database to WAL mode, which is persistent.

    SQLite does not wait here: on a new file it reports "locked" at once
    when another process does the same, so this retries.
    """
    deadline = time.monotonic() + LOCK_TIMEOUT
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


# Certificates of servers, for those who watch their end

_CERTIFICATE_END = sa.text("SHOW SESSION STATUS LIKE 'Ssl_server_not_after'")


def find_verified_server(url: str) -> tuple[str, int, str] | None:
    """Return host, port and authorities of the server, if it is verified with any."""
    parsed = sa.make_url(url)
    authorities = parsed.query.get('ssl_ca') or parsed.query.get('sslrootcert')
    if not authorities or not parsed.host:
        return None
    port = parsed.port or (3306 if parsed.drivername.startswith('mysql') else 5432)
    return parsed.host, port, str(authorities)


def find_certificate_end(connection: sa.Connection) -> str | None:
    """Return when the certificate of MariaDB ends, as it prints that.

    None if the connection has no TLS.
    """
    found = connection.execute(_CERTIFICATE_END).all()
    return found[0][1] or None if found else None
