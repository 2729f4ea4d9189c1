"""The schema of a database: which one it has, and bringing it to ours.

An empty database is made from the models, which a test holds equal to
what the migrations make. alembic is imported only to migrate one that
already has an older schema.
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

# MariaDB has one set of lock names for all databases of a server, and
# waits for an hour here; PostgreSQL has numbers, and waits for ever.
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

# As alembic would make it.
_VERSION = sa.Table(
    'alembic_version',
    sa.MetaData(),
    sa.Column('version_num', sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint('version_num', name='alembic_version_pkc'),
)


class SchemaMismatch(exception.ManilaLiteError):
    """The database has another schema than this release needs."""

    message = 'The database {found}; {advice}.'


def version(db: Database) -> str | None:
    """The revision the database has; None when it has no schema."""
    return db.read(_version)


def check(db: Database) -> None:
    """Return when the database has our schema; raises WrongSchema."""
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
    """Bring the database to our schema; any number may do so at once.

    Raises WrongSchema when it holds something we cannot migrate.
    """
    if version(db) != HEAD:
        with _alone(db):
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
    """What alembic needs to find the migrations, and the database."""
    from alembic import config

    options = config.Config(attributes={'connection': connection})
    options.set_main_option('script_location', 'manila_lite.db:migrations')
    return options


def _sync(session: Session) -> None:
    found = _version(session)
    if found == HEAD:
        return  # another process was faster
    LOG.info('Bringing the database from schema %s to %s', found, HEAD)
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
        # MariaDB commits each table by itself, so this may be half of an
        # earlier attempt; it may as well be somebody else's data.
        raise SchemaMismatch(
            found=f'has tables ({", ".join(sorted(found))}) but no version',
            advice='empty it if they are left from an interrupted start',
        )
    models.metadata.create_all(connection, checkfirst=False)
    _VERSION.create(connection, checkfirst=True)
    session.run(sa.insert(_VERSION), version_num=HEAD)


@contextlib.contextmanager
def _alone(db: Database) -> Iterator[None]:
    """Keep other processes from changing the schema meanwhile.

    The lock has a connection of its own: MariaDB commits with every
    table, and the last commit must come before the lock is given back.
    """
    if db.dialect not in _LOCKS:
        yield  # a writer on SQLite is alone
        return
    take, give_back = _LOCKS[db.dialect]
    with db.engine.connect() as connection:
        if connection.scalar(take) == 0:
            raise SchemaMismatch(
                found='is being migrated by somebody else',
                advice='try again when that is over',
            )
        connection.commit()
        try:
            yield
        finally:
            connection.execute(give_back)
            connection.commit()
