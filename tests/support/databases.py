"""Databases for tests: SQLite, MariaDB and PostgreSQL.

A test that requests `database_url` runs once on each of them: on the servers
in every run, with a sample of its cases, if it is marked with
`sampling.dialects`, otherwise only in `make exhaust`. Environment variables
override the default addresses of the servers.
"""

from collections.abc import Callable, Iterator
import contextlib
import functools
import importlib.util
import itertools
import os
import pathlib
import re
import sqlite3
import time
import uuid

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from manila_lite.db import engines, models, schema
from manila_lite.db.session import Database
from tests.support import granted, mariadb_server, requirements, sampling

SERVER_KINDS = frozenset(('mysql', 'postgresql'))
KINDS = ('sqlite', 'mysql', 'postgresql')
GALERA = 'galera'
"""A node of Galera, which is started for tests: `shared_database` only."""

EACH = (
    'sqlite',
    pytest.param('mysql', marks=sampling.on_server),
    pytest.param('postgresql', marks=sampling.on_server),
)
"""The same as parameters of tests to which the dialect may not matter."""

_SERVERS = {
    'mysql': os.environ.get(
        'MANILA_LITE_TEST_MYSQL',
        # PyMySQL takes 20 ms to read certificates, at each connection.
        'mysql+pymysql://root@127.0.0.1/?ssl_disabled=true',
    ),
    'postgresql': os.environ.get(
        'MANILA_LITE_TEST_POSTGRESQL',
        'postgresql+psycopg2://postgres@127.0.0.1/postgres',
    ),
}
_DROP = {'mysql': 'DROP DATABASE {}', 'postgresql': 'DROP DATABASE {} WITH (FORCE)'}

_KILL = {
    'postgresql': (
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity '
        'WHERE datname = current_database() AND pid <> pg_backend_pid()'
    ),
    'mysql': (
        'SELECT id FROM information_schema.processlist '
        'WHERE db = DATABASE() AND id <> CONNECTION_ID()'
    ),
}

_WAITING = {
    'postgresql': (
        'SELECT COUNT(*) FROM pg_stat_activity '
        "WHERE datname = current_database() AND wait_event_type = 'Lock'"
    ),
    'mysql': (
        'SELECT COUNT(*) FROM information_schema.innodb_trx AS trx '
        'JOIN information_schema.processlist AS process '
        'ON process.id = trx.trx_mysql_thread_id '
        "WHERE process.db = DATABASE() AND trx.trx_state = 'LOCK WAIT'"
    ),
}
_SAME_ANSWER = 0.15
"""Seconds; InnoDB shows what it has shown before if it is asked within 0.1 again."""


@contextlib.contextmanager
def temporary_database(kind: str, folder: pathlib.Path) -> Iterator[str]:
    """Create a database without tables, yield its URL and drop it.

    Skips when the server does not answer; fails if CI is set.
    """
    name = f'manila_lite_test_{uuid.uuid4().hex}'
    if kind == 'sqlite':
        yield f'sqlite:///{folder / name}'
        return
    server = sa.create_engine(
        _SERVERS[kind], poolclass=sa.pool.NullPool, isolation_level='AUTOCOMMIT'
    )
    _run(server, f'CREATE DATABASE {name}', kind)
    if kind == 'postgresql':  # no test is about a loss of power
        _run(server, f'ALTER DATABASE {name} SET synchronous_commit = off', kind)
    try:
        yield server.url.set(database=name).render_as_string(hide_password=False)
    finally:
        _run(server, _DROP[kind].format(name), kind)


@contextlib.contextmanager
def _galera(kind: str, folder: pathlib.Path) -> Iterator[str]:
    """Start a node; yield the URL of its database, without tables."""
    with mariadb_server.run_galera(folder) as node:
        user = f"{mariadb_server.USER}@'127.0.0.1'"
        node.execute(f'GRANT PROCESS ON *.* TO {user}')  # it counts lock waits
        yield node.url


def through(driver: str, url: str) -> str:
    """Return the URL with another driver, and without options of the first.

    Skips when the driver is not installed; fails if CI is set.
    """
    if driver == 'mysql+mysqldb' and not importlib.util.find_spec('MySQLdb'):
        requirements.missing(
            'mysqlclient is not installed, see tools/install-mysqlclient'
        )
    parsed = sa.make_url(url)
    if driver != parsed.drivername:
        parsed = parsed.set(drivername=driver, query={})
    return parsed.render_as_string(hide_password=False)


def _run(server: sa.Engine, statement: str, kind: str) -> None:
    try:
        with server.connect() as connection:
            connection.exec_driver_sql(statement)
    except sa.exc.OperationalError as error:
        requirements.missing(f'{kind} does not answer: {error.orig}')


@functools.lru_cache(maxsize=8)
def _engine(url: str) -> sa.Engine:
    return sa.create_engine(url, poolclass=sa.pool.NullPool)


def create_tables(url: str) -> None:
    """Create all tables in an empty database, or one that has them."""
    engine = _engine(url)
    if engine.dialect.name == 'sqlite':
        with contextlib.closing(sqlite3.connect(engine.url.database)) as to:
            _template().backup(to)
    elif url not in _with_tables:  # it would ask for each of them
        with engine.begin() as connection:
            schema.create_tables(connection)
        _with_tables.add(url)


def note_tables(url: str) -> None:
    """Remember that the database has all tables, by another URL."""
    _with_tables.add(url)


_with_tables: set[str] = set()


@functools.cache
def _template() -> sqlite3.Connection:
    """Return an in-memory database with all tables; copying it is cheap."""
    engine = sa.create_engine(
        'sqlite://',
        poolclass=sa.pool.StaticPool,
        connect_args={'check_same_thread': False},
    )
    models.metadata.create_all(engine)
    return engine.raw_connection().driver_connection


class SqliteImage:
    """The contents of an SQLite database at one moment, held in memory."""

    def __init__(self, url: str):
        self._file = sa.make_url(url).database
        self._copy = sqlite3.connect(':memory:', check_same_thread=False)
        self._observer = sqlite3.connect(self._file, check_same_thread=False)
        self._observer.backup(self._copy)

    def restore(self) -> None:
        """Overwrite the database; to open connections it is a commit."""
        with contextlib.closing(sqlite3.connect(self._file)) as database:
            self._copy.backup(database)

    def data_version(self) -> int:
        """Return a number that changes with every commit."""
        return self._observer.execute('PRAGMA data_version').fetchone()[0]

    def rows(self) -> dict[str, list[tuple]]:
        """Return what is stored now in all tables."""
        return {
            name: self._observer.execute(f'SELECT * FROM {name}').fetchall()
            for name in models.metadata.tables
        }

    def close(self) -> None:
        self._observer.close()
        self._copy.close()


def share_statements(db: Database) -> Database:
    """Let databases of one kind share compiled statements; return `db`.

    Compiling what a service runs takes longer than most tests.
    """
    for engine in {db.engine, db._read_engine}:
        writes = engine.get_execution_options().get(engines.WRITE)
        # Those of readers have a listener that limits their statements.
        key = engine.dialect.name, engine.driver, writes
        if key not in _DIALECTS:
            with engine.connect():  # the first connection sets up the dialect
                _DIALECTS[key] = engine.dialect
        engine.dialect = _DIALECTS[key]
        if engine.dialect.name == 'mysql':
            sa.event.listen(engine, 'engine_connect', _look_into_its_own_schema)
        engine.update_execution_options(compiled_cache=_STATEMENTS)
        sa.event.listen(engine, 'before_execute', _refuse_chained_update)
    return db


def forget_statements() -> None:
    """Release what tests keep of statements; a service keeps fewer of them."""
    _STATEMENTS.clear()
    chained_columns.cache_clear()
    granted.needs_of.cache_clear()


def _refuse_chained_update(
    connection: sa.Connection, statement: object, *rest: object
) -> None:
    if isinstance(statement, sa.Update):
        found = chained_columns(statement)
        assert not found, f'{statement} reads {found}, which MariaDB has set by then'


@functools.lru_cache(maxsize=4000)
def chained_columns(statement: sa.Update) -> frozenset[str]:
    """Return the columns whose new values are used by values after them.

    They would have their old values by the standard, and have the new ones in MariaDB.
    """
    _, _, text = str(statement.compile(dialect=mysql.dialect())).partition(' SET ')
    parts = re.split(r'(?:^|, )(\w+)=', text.partition(' WHERE ')[0])
    values = list(zip(parts[1::2], parts[2::2], strict=True))
    return frozenset(
        name
        for number, (name, _) in enumerate(values)
        for _, later in values[number + 1 :]
        if re.search(rf'\b{statement.table.name}\.{name}\b', later)
    )


def _look_into_its_own_schema(connection: sa.Connection) -> None:
    """Let an inspector ask for the tables of the database it is connected to.

    A dialect remembers the database of its first connection.
    """
    connection.dialect.default_schema_name = connection.engine.url.database


_DIALECTS: dict[tuple[str, str, object], sa.Dialect] = {}
_STATEMENTS: dict[object, object] = {}


def empty_tables(url: str) -> None:
    """Delete all rows."""
    if url.startswith('sqlite'):
        create_tables(url)
        return
    with _kept_connections(url).begin() as connection:
        for name in _tables_with_rows(connection):
            connection.exec_driver_sql(f'DELETE FROM {name}')


@functools.lru_cache(maxsize=2)
def _kept_connections(url: str) -> sa.Engine:
    """Return an engine that keeps its connection from test to test.

    A new one reads the definitions of all tables, which takes PostgreSQL
    longer than to ask them for rows.
    """
    return sa.create_engine(url, pool_size=1, pool_pre_ping=True)


def _tables_with_rows(connection: sa.Connection) -> list[str]:
    """Return their names, each before those that it refers to."""
    names, question = _existing_rows()
    return list(itertools.compress(names, connection.exec_driver_sql(question).one()))


@functools.cache
def _existing_rows() -> tuple[list[str], str]:
    """Return all tables, and a query that tells which of them have rows."""
    names = [one.name for one in reversed(models.metadata.sorted_tables)]
    asked = (f'EXISTS (SELECT 1 FROM {name})' for name in names)
    return names, f'SELECT {", ".join(asked)}'


def copy_rows(source: str, target: str) -> None:
    """Replace all rows of one database by those of another."""
    empty_tables(target)
    engine = _engine(target)
    with _engine(source).connect() as old, engine.begin() as new:
        for table in models.metadata.sorted_tables:
            stored = [one for one in table.columns if one.computed is None]
            rows = old.execute(sa.select(*stored)).mappings().all()
            if not rows:
                continue
            new.execute(sa.insert(table), [dict(row) for row in rows])
            counter = table.autoincrement_column
            if engine.dialect.name == 'postgresql' and counter is not None:
                # Ids that were given do not advance the sequence.
                new.exec_driver_sql(
                    'SELECT setval(pg_get_serial_sequence('
                    f"'{table.name}', '{counter.name}'), "
                    f'(SELECT max({counter.name}) FROM {table.name}))'
                )


_OWN_CLOCK = """
CREATE SCHEMA IF NOT EXISTS simulation;
CREATE OR REPLACE FUNCTION simulation.clock_timestamp()
RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT to_timestamp(current_setting('simulation.now')::float8)
$$
"""
_SET_CLOCK = {
    'mysql': 'SET timestamp = {now:.6f}',
    'postgresql': (
        'SET LOCAL search_path = simulation, pg_catalog, public; '
        "SET LOCAL simulation.now = '{now:.6f}'"
    ),
}


def simulate_time(db: Database) -> None:
    """Let transactions on a server see the clock of `db` as its time."""
    if db.dialect == 'postgresql':
        with _engine(db.url).begin() as connection:
            connection.exec_driver_sql(_OWN_CLOCK)
    for engine in (db.engine, db._read_engine):

        @sa.event.listens_for(engine, 'begin')
        def begin(connection: sa.Connection) -> None:
            connection.exec_driver_sql(_SET_CLOCK[db.dialect].format(now=db.clock()))


def kill_connections(url: str) -> int:
    """Kill every other connection to the database; return their number."""
    engine = sa.create_engine(
        url, isolation_level='AUTOCOMMIT', poolclass=sa.pool.NullPool
    )
    with engine.connect() as connection:
        found = connection.exec_driver_sql(_KILL[engine.dialect.name]).scalars().all()
        for id in found if engine.dialect.name == 'mysql' else ():
            with contextlib.suppress(sa.exc.OperationalError):  # it has ended
                connection.exec_driver_sql(f'KILL {id}')
    return len(found)


def is_locked(url: str, table: sa.Table, id: str, *, shared: bool = False) -> bool:
    """Whether a row is locked, or cannot be locked `shared` by others."""
    query = (
        sa.select(table.c.id)
        .where(table.c.id == id)
        .with_for_update(read=shared, skip_locked=True)
    )
    with _engine(url).connect() as connection:
        return connection.execute(query).first() is None


def count_lock_waits(url: str) -> int:
    """Return the number of transactions that wait for a lock."""
    engine = _engine(url)
    if engine.dialect.name == 'mysql':
        time.sleep(_SAME_ANSWER)
    with engine.connect() as connection:
        return connection.exec_driver_sql(_WAITING[engine.dialect.name]).scalar_one()


@pytest.fixture(scope='session')
def shared_database(tmp_path_factory) -> Iterator[Callable[[str], str]]:
    """Return the URL of the database of a kind, shared by all tests."""
    with contextlib.ExitStack() as stack:
        urls: dict[str, str] = {}

        def get(kind: str) -> str:
            if kind not in urls:
                start = _galera if kind == GALERA else temporary_database
                urls[kind] = stack.enter_context(
                    start(kind, tmp_path_factory.mktemp(kind))
                )
                create_tables(urls[kind])
            return urls[kind]

        yield get


@pytest.fixture(params=EACH)
def database_url(request, shared_database) -> str:
    """The URL of a database with all tables, all of them empty."""
    url = shared_database(request.param)
    empty_tables(url)
    return url


@pytest.fixture
def new_database(database_url):
    """`new_database(**options)`: another Database on the same database."""
    with contextlib.ExitStack() as stack:

        def create(url=database_url, **options):
            db = share_statements(Database(url, **options))
            stack.callback(db.dispose)
            return db

        yield create


@pytest.fixture
def db(new_database) -> Database:
    return new_database()
