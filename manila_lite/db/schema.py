"""The schema version of a database, and its upgrade to ours.

The tables of an empty database are created from the models; a test checks
that the migrations produce the same. alembic is imported only to migrate
an older schema.
"""

from collections.abc import Iterator
import contextlib
import logging
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db import models
from manila_lite.db.session import Database
from manila_lite.db.session import Session

if typing.TYPE_CHECKING:
    from alembic import config

LOG = logging.getLogger(__name__)

HEAD = '0008'
"""The newest revision of the migrations; this release needs it."""

# In MariaDB all databases of a server share the lock names; the lock is
# awaited for one hour. PostgreSQL has numbers, and waits for ever.
_NAME = sa.func.sha1(sa.func.concat('manila_lite/', sa.func.database()))
_NUMBER = 0x6D616E696C61
_LOCKS = {
    'mysql': (
        sa.select(sa.func.get_lock(_NAME, 3600)),
        sa.select(sa.func.release_lock(_NAME)),
    ),
    'postgresql': (
        sa.select(sa.func.pg_advisory_lock(_NUMBER)),
        sa.select(sa.func.pg_advisory_unlock(_NUMBER)),
    ),
}

# As alembic creates it.
_VERSION = sa.Table(
    'alembic_version',
    sa.MetaData(),
    sa.Column('version_num', sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint('version_num', name='alembic_version_pkc'),
)


class SchemaMismatch(exception.ManilaLiteError):
    """The schema of the database is not the one this release needs."""

    message = 'The database {found}; {advice}.'


def version(db: Database) -> str | None:
    """Return the revision of the database; None without a schema."""
    return db.read(_version)


def check(db: Database) -> None:
    """Check that the database has our schema, or raise SchemaMismatch."""
    found = version(db)
    if found == HEAD:
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

    Raises SchemaMismatch when it holds something we cannot migrate.
    """
    if version(db) != HEAD:
        with _schema_lock(db):
            db.write(_sync)


def migrate(session: Session, revision: str) -> None:
    """Run the migrations up or down to a revision, `head` or `base`."""
    from alembic import command
    from alembic import util

    options = configuration(session.connection)
    try:
        if revision == 'base':
            command.downgrade(options, revision)
        else:
            command.upgrade(options, revision)
    except util.CommandError as error:
        raise SchemaMismatch(
            found='has a schema that this release does not know',
            advice=str(error),
        ) from error


def configuration(connection: sa.Connection | None = None) -> 'config.Config':
    """Return the alembic configuration: migrations and connection."""
    from alembic import config

    options = config.Config(attributes={'connection': connection})
    options.set_main_option('script_location', 'manila_lite.db:migrations')
    return options


def _sync(session: Session) -> None:
    found = _version(session)
    if found == HEAD:
        return  # another process has done it
    LOG.info('Upgrading the database from schema %s to %s', found, HEAD)
    if found is None:
        _create(session)
    else:
        migrate(session, 'head')


def _version(session: Session) -> str | None:
    if not sa.inspect(session.connection).has_table(_VERSION.name):
        return None
    return session.value(sa.select(_VERSION.c.version_num))


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
    models.metadata.create_all(connection, checkfirst=False)
    _VERSION.create(connection, checkfirst=True)
    session.run(sa.insert(_VERSION), version_num=HEAD)


@contextlib.contextmanager
def _schema_lock(db: Database) -> Iterator[None]:
    """Prevent other processes from changing the schema in the meantime.

    The lock has its own connection: MariaDB commits with every table, and
    the last commit must come before the lock is released.
    """
    if db.dialect not in _LOCKS:
        yield  # SQLite has one writer at a time
        return
    acquire, release = _LOCKS[db.dialect]
    with db.engine.connect() as connection:
        if connection.scalar(acquire) == 0:
            raise SchemaMismatch(
                found='is being migrated by another process',
                advice='try again when it has finished',
            )
        connection.commit()
        try:
            yield
        finally:
            connection.execute(release)
            connection.commit()
