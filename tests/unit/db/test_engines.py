"""What transactions demand of PostgreSQL, and what sessions keep."""

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from manila_lite.db import schema
from manila_lite.db.session import Database
from tests.support import databases

DRIVERS = ('postgresql+psycopg2', 'postgresql+psycopg')


def show(session, name):
    return session.value(sa.text(f'SHOW {name}'))


@pytest.fixture(scope='module')
def strict_url(tmp_path_factory):
    """A database with unusual defaults for its sessions."""
    folder = tmp_path_factory.mktemp('strict')
    with databases.temporary_database('postgresql', folder) as url:
        engine = sa.create_engine(url, poolclass=sa.pool.NullPool)
        with engine.begin() as connection:
            connection.exec_driver_sql(
                f'ALTER DATABASE {engine.url.database} '
                "SET default_transaction_isolation = 'serializable'"
            )
        yield sa.make_url(url)


@pytest.fixture(params=DRIVERS)
def db(request, strict_url):
    url = strict_url.set(drivername=request.param)
    db = Database(url.render_as_string(hide_password=False))
    yield db
    with db.engine.begin() as connection:
        connection.exec_driver_sql('DROP SCHEMA public CASCADE')
        connection.exec_driver_sql('CREATE SCHEMA public')
    db.dispose()


@pytest.fixture
def pooled_by_transaction(db):
    """Give each transaction a session without the settings of the last one.

    That is what a pgbouncer in transaction mode does.
    """

    def discard(connection, record, proxy):
        connection.autocommit = True
        connection.cursor().execute('DISCARD ALL')
        connection.autocommit = False

    for engine in (db.engine, db._read_engine):
        event.listen(engine, 'checkout', discard)


@pytest.mark.usefixtures('pooled_by_transaction')
def test_every_transaction_of_a_writer_is_read_committed(db):
    for _ in range(2):
        assert db.write(show, 'transaction_isolation') == 'read committed'
        assert db.write(show, 'transaction_read_only') == 'off'


@pytest.mark.usefixtures('pooled_by_transaction')
def test_every_transaction_of_a_reader_is_a_snapshot(db):
    for _ in range(2):
        assert db.read(show, 'transaction_isolation') == 'repeatable read'
        assert db.read(show, 'transaction_read_only') == 'on'


@pytest.mark.parametrize('use', ['read', 'write'])
def test_session_keeps_the_defaults_of_the_server(db, use):
    run = getattr(db, use)
    for _ in range(2):
        assert run(show, 'default_transaction_isolation') == 'serializable'
        assert run(show, 'default_transaction_read_only') == 'off'


def test_writer_does_not_overrule_a_read_only_server(db):
    def begin_read_only(session):
        session.run(sa.text('SET default_transaction_read_only = on'))

    db.write(begin_read_only)
    assert db.write(show, 'transaction_read_only') == 'on'
    db.dispose()


ADVISORY_LOCKS = sa.text(
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = "
    '(SELECT oid FROM pg_database WHERE datname = current_database())'
)


def test_schema_is_locked_by_a_transaction_not_a_session(db):
    held = []

    def observe(name):
        if name != 'statement':
            locks = watcher.read(lambda session: session.value(ADVISORY_LOCKS))
            held.append((name, locks))

    db.on_step = observe
    watcher = Database(db.url)
    schema.sync(db)
    watcher.dispose()
    assert held == [('commit', 1), ('committed', 0)]
