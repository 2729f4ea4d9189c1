"""Drivers, what transactions demand of PostgreSQL, what sessions keep."""

import contextlib
import datetime
import importlib.util

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from manila_lite.db import engines, schema
from manila_lite.db.models import types
from manila_lite.db.session import Database
from tests.support import certificates, databases, mariadb_server

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
    # The lock of a session would stay with its connection, in the pool.
    observe('synced')
    watcher.dispose()
    assert held == [('commit', 1), ('committed', 1), ('synced', 0)]


def test_mysql_without_a_driver_uses_the_one_in_c_if_installed():
    found = engines.with_driver('mysql://me:secret@db/manila?charset=utf8mb4')
    driver = 'mysqldb' if importlib.util.find_spec('MySQLdb') else 'pymysql'
    assert found == f'mysql+{driver}://me:secret@db/manila?charset=utf8mb4'


def test_greenlets_are_not_blocked_by_a_driver_in_c():
    found = engines.with_driver('mysql://me:secret@db/x', threads=False)
    assert found == 'mysql+pymysql://me:secret@db/x'


@pytest.fixture(scope='module')
def tls_server(tmp_path_factory):
    """A MariaDB server with a certificate for 127.0.0.1, and its folder.

    `ca.pem` there has issued the certificate, `other/ca.pem` has not.
    """
    folder = tmp_path_factory.mktemp('tls')
    (folder / 'other').mkdir()
    certificates.make(folder / 'other')
    certificates.make(folder)
    pem = folder / 'server.pem'
    with mariadb_server.run(
        folder,
        '--bind-address=127.0.0.1,127.0.0.2',
        *(f'--ssl-cert={pem}', f'--ssl-key={pem}'),
        '--require-secure-transport=ON',
    ) as server:
        server.execute(f"CREATE USER {mariadb_server.USER}@'127.0.0.2'")
        yield server, folder


@pytest.mark.parametrize('threads', [True, False])
@pytest.mark.parametrize(
    'host, ca, accepted',
    [
        ('127.0.0.1', 'ca.pem', True),
        ('127.0.0.2', 'ca.pem', False),
        ('127.0.0.2', 'ca.pem&ssl_check_hostname=false', True),
        ('127.0.0.1', 'other/ca.pem', False),
    ],
)
def test_a_ca_verifies_the_name_of_mariadb(tls_server, threads, host, ca, accepted):
    """With both drivers, from one URL."""
    server, folder = tls_server
    url = f'mysql://{mariadb_server.USER}@{host}:{server.port}/?ssl_ca={folder}/{ca}'
    engine = sa.create_engine(
        engines.with_driver(url, threads=threads), poolclass=sa.pool.NullPool
    )
    with contextlib.ExitStack() as stack:
        if not accepted:
            stack.enter_context(pytest.raises(sa.exc.OperationalError, match='SSL'))
        with engine.connect() as connection:
            found = connection.exec_driver_sql("SHOW STATUS LIKE 'Ssl_version'")
            assert found.one()[1].startswith('TLS')


@pytest.mark.parametrize(
    'url',
    [
        'mysql+pymysql://me:secret@db/x',
        'mysql+mysqldb://me:secret@db/x',
        'postgresql://me:secret@db/x',
        'sqlite:////var/lib/manila/x',
    ],
)
def test_other_urls_are_left_alone(url):
    assert engines.with_driver(url) == url


@pytest.mark.parametrize('driver', ['mysql+pymysql', 'mysql+mysqldb'])
@pytest.mark.parametrize('database_url', ['mysql'], indirect=True)
def test_drivers_of_mariadb_agree(database_url, driver):
    """Row counts are of matched rows, sessions in UTC, text any character."""
    db = Database(databases.through(driver, database_url))
    row = {'id': 'one', 'name': 'a 𝄞', 'is_public': True}
    table = types.ShareType.__table__
    change = sa.update(table).values(name=row['name'])

    def work(session):
        session.run(sa.insert(table), **row, created_at=session.now)
        return session.now, session.run(change), session.run(change)

    try:
        now, *counts = db.write(work)
        found = db.read(lambda session: session.first(sa.select(table)))
        zone = db.read(lambda session: session.value(sa.text('SELECT @@time_zone')))
    finally:
        db.dispose()
    assert counts == [1, 1]
    assert (found.name, found.is_public) == ('a 𝄞', True)
    assert abs(found.created_at - now) < datetime.timedelta(seconds=1)
    assert zone == '+00:00'
