"""The schema version of a database, and its upgrade to ours.

The tables of an empty database are created from the models; a test checks
that the migrations produce the same. alembic is imported only to migrate
an older schema.
"""

from collections.abc import Iterator
import contextlib
import logging
import re
import time
import typing

from oslo_db import exception as db_exc
import sqlalchemy as sa
from sqlalchemy import schema as ddl
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.ext import compiler
from sqlalchemy.sql.compiler import DDLCompiler

from manila_lite import exception
from manila_lite.db import models
from manila_lite.db.session import Database, Session

if typing.TYPE_CHECKING:
    from alembic import config

LOG = logging.getLogger(__name__)

HEAD = '0047'
"""The newest revision of the migrations; this release needs it."""

OLDEST_SERVED = '0026'
"""The oldest revision whose release can go on with the schema of HEAD.

Migrations after it only expand: see "Rolling upgrades" in developing.rst.
"""

LAST_RELEASED = '0026'
"""The newest revision that the previous release knows."""

FIRST_RELEASED = '0026'
"""The newest revision that the first release knows.

It is the oldest that can be migrated, and the first migration makes it.
"""

# In MariaDB all databases of a server share the lock names.
_NAME = sa.func.sha1(sa.func.concat('manila_lite/', sa.func.database()))
_MYSQL_LOCK = sa.select(sa.func.get_lock(_NAME, 3600))
_MYSQL_RELEASE = sa.select(sa.func.release_lock(_NAME))
_POSTGRESQL_IDLE = sa.text('SET LOCAL idle_in_transaction_session_timeout = 0')
_POSTGRESQL_LOCK = sa.select(sa.func.pg_try_advisory_xact_lock(0x6D616E696C61))

PATIENCE = 3600.0
"""Seconds for which a migration waits for others."""

_WAIT = 1
"""Seconds for which a migration waits for one table before it starts again.

Meanwhile transactions that begin to use the table wait behind it. One of them
may hold a row that the transaction in front needs: no server sees that on
MariaDB, where all would wait until some lock times out.
"""

_MYSQL_WAIT = sa.text(f'SET SESSION lock_wait_timeout = {_WAIT}')
_POSTGRESQL_WAIT = sa.text(f"SET SESSION lock_timeout = '{_WAIT}s'")
_POSTGRESQL_PATIENCE = f"SET SESSION lock_timeout = '{round(PATIENCE)}s'"

_PAUSE = 0.5
"""Seconds between two attempts to get a lock."""

# Left by a creation that was interrupted, and not used.
_INVALID_INDEXES = sa.text(
    'SELECT index.relname FROM pg_index '
    'JOIN pg_class AS index ON index.oid = pg_index.indexrelid '
    'WHERE NOT pg_index.indisvalid '
    'AND index.relnamespace = current_schema()::regnamespace'
)

_ADDITION = re.compile(
    r'^\s*(CREATE (?:UNIQUE )?(?:TABLE|INDEX)|ALTER TABLE \S+ ADD COLUMN) '
)

_INDEX = re.compile(r'^\s*CREATE (?:UNIQUE )?INDEX ')

# As alembic creates it.
_VERSION = sa.Table(
    'alembic_version',
    sa.MetaData(),
    sa.Column('version_num', sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint('version_num', name='alembic_version_pkc'),
)

# One row: OLDEST_SERVED of the release that made the schema.
_SERVED = sa.Table(
    'schema_served', sa.MetaData(), sa.Column('oldest', sa.String(32), nullable=False)
)

VERSION_TABLES = (_VERSION.name, _SERVED.name)
"""What every service reads when it starts."""


class SchemaMismatch(exception.ManilaLiteError):
    """The schema of the database is not the one this release needs."""

    message = 'The database {found}; {advice}.'


def version(db: Database) -> str | None:
    """Return the revision of the database; None without a schema."""
    return db.read(find_version)


def check(db: Database) -> None:
    """Check that this release can use the schema, or raise SchemaMismatch.

    A newer release may have made it, if it still serves this one.
    """
    found, oldest = db.read(_version_and_oldest)
    if found == HEAD:
        return
    if oldest is not None and oldest <= HEAD < (found or ''):
        LOG.info('A newer release has made schema %s of the database', found)
        return
    if found is None:
        raise SchemaMismatch(
            found='has no schema', advice='run "manila-lite-manage db sync"'
        )
    raise SchemaMismatch(
        found=f'has schema {found}, this release needs {HEAD}',
        advice='run "manila-lite-manage db sync", or the release that the '
        'schema belongs to',
    )


def sync(db: Database) -> None:
    """Bring the database to our schema; safe to run concurrently.

    A newer schema that serves this release is left as it is. Raises
    SchemaMismatch when the database holds something we cannot migrate.
    """
    try:
        check(db)
    except SchemaMismatch:
        with _schema_lock(db):
            _sync_beside_others(db)


def _sync_beside_others(db: Database) -> None:
    """Migrate, again while transactions of running services are in the way.

    MariaDB gives up a change of a table when a row that refers to it stays
    locked, and goes on where it has stopped.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            if db.dialect == 'postgresql' and version(db) is not None:
                return _sync_in_steps(db)
            return db.write(_sync)
        except (exception.DatabaseBusy, db_exc.DBDeadlock):
            if time.monotonic() > deadline:
                raise
            LOG.warning('The migration waits for other transactions')
            db.sleep(_PAUSE)


def _sync_in_steps(db: Database) -> None:
    """Migrate PostgreSQL with a transaction for every statement.

    In a single one, each change of a table would keep all who use it waiting
    until the last index is made. As on MariaDB, a migration that stops goes on
    after those of its statements that have run.
    """
    with db.engine.connect() as own:
        connection = own.execution_options(isolation_level='AUTOCOMMIT')
        try:
            connection.execute(_POSTGRESQL_WAIT)
            for name in connection.scalars(_INVALID_INDEXES).all():
                connection.exec_driver_sql(f'DROP INDEX CONCURRENTLY "{name}"')
            sa.event.listen(
                connection, 'before_cursor_execute', _make_concurrent, retval=True
            )
            _sync(Session(db, connection, None))
        finally:
            own.invalidate()  # no other transaction gets its settings


def migrate(session: Session, revision: str) -> None:
    """Run the migrations up or down to a revision, `head` or `base`."""
    from alembic import command, util

    options = configuration(session.connection)
    if session.dialect == 'mysql':
        sa.event.listen(
            session.connection, 'before_cursor_execute', _make_repeatable, retval=True
        )
    try:
        if revision == 'base':
            command.downgrade(options, revision)
            _SERVED.drop(session.connection, checkfirst=True)
        else:
            command.upgrade(options, revision)
            _record_served(session)
    except util.CommandError as error:
        raise SchemaMismatch(
            found='has a schema that this release does not know', advice=str(error)
        ) from error


def _make_repeatable(
    connection: sa.Connection,
    cursor: object,
    statement: str,
    parameters: object,
    *rest: object,
) -> tuple[str, typing.Any]:
    """Let a migration go on after those of its statements that have run.

    MariaDB commits each; the version is that of before until all have run.
    """
    return _ADDITION.sub(r'\1 IF NOT EXISTS ', statement), parameters


def _make_concurrent(
    connection: sa.Connection,
    cursor: DBAPICursor,
    statement: str,
    parameters: typing.Any,
    *rest: object,
) -> tuple[str, typing.Any]:
    """Do the same, and create indexes without locking out writers.

    The server waits for older transactions then, and blocks none.
    """
    statement, _ = _make_repeatable(connection, cursor, statement, parameters)
    if not _INDEX.match(statement):
        cursor.execute(_POSTGRESQL_WAIT.text)
        return statement, parameters
    cursor.execute(_POSTGRESQL_PATIENCE)
    return _INDEX.sub(r'\g<0>CONCURRENTLY ', statement), parameters


def configuration(connection: sa.Connection | None = None) -> 'config.Config':
    """Return the alembic configuration: migrations and connection."""
    from alembic import config

    options = config.Config(attributes={'connection': connection})
    options.set_main_option('script_location', 'manila_lite.db:migrations')
    return options


def _sync(session: Session) -> None:
    if session.dialect == 'mysql':
        session.run(_MYSQL_WAIT)
    found = find_version(session)
    if found == HEAD:
        return  # another process has done it
    LOG.info('Upgrading the database from schema %s to %s', found, HEAD)
    if found is None:
        _create(session)
    else:
        migrate(session, 'head')


def find_version(session: Session) -> str | None:
    """Return the revision of the database; None without a schema."""
    if not sa.inspect(session.connection).has_table(_VERSION.name):
        return None
    return session.value(sa.select(_VERSION.c.version_num))


def find_oldest_served(session: Session) -> str | None:
    """Return OLDEST_SERVED of the release that made the schema."""
    if not sa.inspect(session.connection).has_table(_SERVED.name):
        return None
    return session.value(sa.select(_SERVED.c.oldest))


def _version_and_oldest(session: Session) -> tuple[str | None, str | None]:
    return find_version(session), find_oldest_served(session)


def _record_served(session: Session) -> None:
    _SERVED.create(session.connection, checkfirst=True)
    # There is no moment without it, in which a process might start.
    if not session.run(sa.update(_SERVED).values(oldest=OLDEST_SERVED)):
        session.run(sa.insert(_SERVED), oldest=OLDEST_SERVED)


def _create(session: Session) -> None:
    connection = session.connection
    ours = set(models.metadata.tables)
    found = ours.intersection(sa.inspect(connection).get_table_names())
    if found:
        # MariaDB commits each table separately, so these may be left from
        # an interrupted attempt; they may also be foreign data.
        raise SchemaMismatch(
            found=f'has tables ({", ".join(sorted(found))}) but no version',
            advice='empty it if they were left by an interrupted start',
        )
    create_tables(connection)
    _VERSION.create(connection, checkfirst=True)
    session.run(sa.insert(_VERSION), version_num=HEAD)
    _record_served(session)


def create_tables(connection: sa.Connection) -> None:
    """Create the tables of all models, of which there must be none."""
    if connection.dialect.name != 'mysql':
        models.metadata.create_all(connection, checkfirst=False)
        return
    for table in models.metadata.sorted_tables:
        connection.execute(_CreateWithIndexes(table))


class _CreateWithIndexes(ddl.CreateTable):
    """CREATE TABLE with all indexes.

    MariaDB waits for the disk several times in each statement, so that
    indexes of their own would take longer than the tables.
    """


@compiler.compiles(_CreateWithIndexes, 'mysql')
def _compile(
    element: _CreateWithIndexes, compiler: DDLCompiler, **kwargs: object
) -> str:
    table = element.element
    head, end, options = compiler.visit_create_table(element).rpartition('\n)')
    indexes = [
        # CREATE INDEX name ON table (columns)
        re.sub(
            r'^CREATE (.+?) ON \S+ ',
            r'\1 ',
            compiler.visit_create_index(ddl.CreateIndex(index)),
        )
        for index in sorted(table.indexes, key=lambda index: str(index.name))
    ]
    return ',\n\t'.join([head.rstrip(), *indexes]) + end + options


@contextlib.contextmanager
def _schema_lock(db: Database) -> Iterator[None]:
    """Prevent other processes from changing the schema in the meantime.

    The lock has a connection of its own, as MariaDB commits with every table
    and PostgreSQL with every statement. SQLite needs none.
    """
    if db.dialect == 'mysql':
        with db.engine.connect() as connection:
            if connection.scalar(_MYSQL_LOCK) == 0:
                raise _locked()
            connection.commit()
            try:
                yield
            finally:
                connection.execute(_MYSQL_RELEASE)
                connection.commit()
    elif db.dialect == 'postgresql':
        with db.engine.begin() as connection:
            connection.execute(_POSTGRESQL_IDLE)
            deadline = time.monotonic() + PATIENCE
            # A statement that waits has a snapshot, and an index is not made
            # before all older snapshots have gone.
            while not connection.scalar(_POSTGRESQL_LOCK):
                if time.monotonic() > deadline:
                    raise _locked()
                db.sleep(_PAUSE)
            yield
    else:
        yield


def _locked() -> SchemaMismatch:
    return SchemaMismatch(
        found='is being migrated by another process',
        advice='try again when it has finished',
    )
