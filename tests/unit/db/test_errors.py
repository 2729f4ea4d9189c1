"""Real errors of the servers, and what becomes of their transactions."""

from concurrent import futures
import contextlib
import threading

from oslo_db import exception as db_exc
import pytest
import sqlalchemy as sa

from manila_lite import exception, metrics
from manila_lite.db import errors
from manila_lite.db.session import Database
from tests.support import databases, mariadb_server

MARIADB = ('mysql+pymysql', 'mysql+mysqldb')
POSTGRESQL = ('postgresql+psycopg2', 'postgresql+psycopg')
THINGS = sa.Table(
    'things',
    sa.MetaData(),
    sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
    sa.Column('size', sa.Integer),
)
GROW = (
    sa.update(THINGS)
    .where(THINGS.c.id == sa.bindparam('which'))
    .values(size=THINGS.c.size + 1)
)
TOTAL = sa.select(sa.func.sum(THINGS.c.size))


def grow(session, which=1):
    return session.run(GROW, which=which)


def total(session):
    return session.value(TOTAL)


@pytest.fixture(params=MARIADB + POSTGRESQL)
def url(request, shared_database):
    """The address of a server, for each driver, with some things."""
    kind = request.param.partition('+')[0]
    given = databases.through(request.param, shared_database(kind))
    yield from with_things(sa.make_url(given))


def with_things(given):
    engine = sa.create_engine(given, poolclass=sa.pool.NullPool)
    THINGS.create(engine)
    with engine.begin() as connection:
        connection.execute(
            sa.insert(THINGS), [{'id': 1, 'size': 0}, {'id': 2, 'size': 0}]
        )
    yield given.render_as_string(hide_password=False)
    THINGS.drop(engine)


@pytest.fixture
def new_database():
    """`new_database(url)`: a Database that is disposed of at the end."""
    with contextlib.ExitStack() as stack:

        def create(url, **options):
            db = Database(url, **options)
            stack.callback(db.dispose)
            return db

        yield create


@pytest.fixture
def db(url, new_database):
    return new_database(url)


# Lost conflicts


def fail_once(code):
    """Return a transaction that fails with this code at the first attempt."""
    attempts = []

    def attempt(session):
        attempts.append(session)
        grow(session)
        if len(attempts) == 1:
            raise_on_server(session, code)
        return len(attempts)

    return attempt


def conflicts_counted():
    return metrics.DATABASE_DEADLOCKS.family().samples[()]


def raise_on_server(session, code):
    session.run(
        sa.text(
            f"SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = {code}, "
            "MESSAGE_TEXT = 'a conflict'"
            if session.dialect == 'mysql'
            else f"DO $$BEGIN RAISE EXCEPTION SQLSTATE '{code}'; END$$"
        )
    )


@pytest.mark.parametrize(
    'url, code',
    [
        *[
            (driver, code)
            for driver in MARIADB
            for code in (1213, 1205, 1020, 3101, 1467)
        ],
        *[
            (driver, code)
            for driver in POSTGRESQL
            for code in ('40P01', '40001', '55P03')
        ],
    ],
    indirect=['url'],
)
def test_lost_conflict_is_retried_and_counted(db, code):
    counted = conflicts_counted()
    assert db.write(fail_once(code)) == 2
    assert (db.retries, db.read(total)) == (1, 1)
    assert conflicts_counted() == counted + 1


@pytest.mark.parametrize(
    'url, code',
    [
        *[(driver, code) for driver in MARIADB for code in (1021, 1114, 1026)],
        *[(driver, code) for driver in POSTGRESQL for code in ('53100', '58030')],
    ],
    indirect=['url'],
)
def test_full_disk_of_the_server_is_not_retried(db, code):
    attempts = []

    def attempt(session):
        attempts.append(session)
        raise_on_server(session, code)

    with pytest.raises(exception.DatabaseFull):
        db.write(attempt)
    assert len(attempts) == 1


def test_sqlite_without_room_is_full(tmp_path, new_database):
    db = new_database(f'sqlite:///{tmp_path}/db')

    def grow(session):
        session.run(sa.text('PRAGMA max_page_count = 1'))
        session.run(sa.text('CREATE TABLE another (id INTEGER)'))

    with pytest.raises(exception.DatabaseFull):
        db.write(grow)


def test_deadlock_of_two_transactions_is_retried(url, new_database):
    both_hold_one = threading.Barrier(2)

    def cross(session, attempts, first, second):
        attempts.append(first)
        grow(session, first)
        if len(attempts) == 1:
            both_hold_one.wait(timeout=30)
        grow(session, second)

    def run(first, second):
        mine = new_database(url)
        mine.write(cross, [], first, second)
        return mine.retries

    with futures.ThreadPoolExecutor(2) as threads:
        retries = list(threads.map(run, (1, 2), (2, 1)))
    assert sum(retries) >= 1
    assert new_database(url).read(total) == 4


FAIL_AT_COMMIT = """
CREATE SEQUENCE attempts;
CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
    IF nextval('attempts') = 1 THEN
        RAISE EXCEPTION SQLSTATE '40001';
    END IF;
    RETURN NULL;
END$$;
CREATE CONSTRAINT TRIGGER lose AFTER UPDATE ON things
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION lose();
"""


@pytest.fixture
def fails_at_first_commit(db):
    with db.engine.begin() as connection:
        connection.exec_driver_sql(FAIL_AT_COMMIT)
    yield
    with db.engine.begin() as connection:
        connection.exec_driver_sql('DROP FUNCTION lose CASCADE; DROP SEQUENCE attempts')


@pytest.mark.parametrize('url', POSTGRESQL, indirect=True)
@pytest.mark.usefixtures('fails_at_first_commit')
def test_conflict_lost_at_the_commit_is_retried(db):
    db.write(grow)
    assert (db.retries, db.read(total)) == (1, 1)


@pytest.mark.parametrize('use', ['read', 'write'])
def test_other_errors_of_the_server_are_not_retried(db, use):
    attempts = []

    def fail(session):
        attempts.append(session)
        session.run(sa.text('SELECT nonsense FROM nowhere'))

    with pytest.raises((db_exc.DBError, sa.exc.DBAPIError)):
        getattr(db, use)(fail)
    assert len(attempts) == 1


def test_duplicate_key_is_recognized(db):
    def insert(session):
        session.run(sa.insert(THINGS), id=1, size=0)

    with pytest.raises(db_exc.DBDuplicateEntry):
        db.write(insert)


def test_server_that_does_not_answer_is_a_connection_error(url, new_database):
    nowhere = sa.make_url(url).set(host='127.0.0.1', port=1)
    db = new_database(nowhere.render_as_string(hide_password=False))
    with pytest.raises(db_exc.DBConnectionError):
        db.write(grow)


# A primary server that becomes read-only

CONNECTION_ID = {
    'mysql': sa.text('SELECT CONNECTION_ID()'),
    'postgresql': sa.text('SELECT pg_backend_pid()'),
}
DEMOTE = {
    'mysql': sa.text('SET SESSION TRANSACTION READ ONLY'),
    'postgresql': sa.text('SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY'),
}


def connection_id(session):
    return session.value(CONNECTION_ID[session.dialect])


def demote(session, others=None):
    """Make the server of this connection refuse writes from now on."""
    session.run(DEMOTE[session.dialect])
    if others:
        others.wait(timeout=30)
    return connection_id(session)


def test_demoted_server_is_left_by_all_connections(db):
    together = threading.Barrier(3)
    with futures.ThreadPoolExecutor(3) as threads:
        demoted = set(threads.map(db.write, [demote] * 3, [together] * 3))
    reader = db.read(connection_id)
    assert len(demoted) == 3
    assert db.write(grow) == 1
    assert db.retries == 1
    assert db.write(connection_id) not in demoted
    assert db.read(connection_id) != reader


def test_reader_that_writes_is_not_taken_for_a_demoted_server(db):
    before = db.read(connection_id)
    with pytest.raises((db_exc.DBError, sa.exc.DBAPIError)) as raised:
        db.read(grow)
    assert not isinstance(raised.value, errors.ReadOnlyServer)
    assert db.read(connection_id) == before


@pytest.fixture(scope='module')
def primary(tmp_path_factory):
    with mariadb_server.run(tmp_path_factory.mktemp('primary')) as server:
        yield server


@pytest.fixture
def things_on_primary(primary):
    for url in with_things(sa.make_url(primary.url)):
        yield url
        primary.execute('SET GLOBAL read_only = 0')


def test_option_read_only_of_the_server_is_recognized(
    primary, things_on_primary, new_database
):
    def recover(seconds):
        primary.execute('SET GLOBAL read_only = 0')

    db = new_database(things_on_primary, sleep=recover)
    before = db.write(connection_id)
    primary.execute('SET GLOBAL read_only = 1')
    assert db.write(grow) == 1
    assert db.retries == 1
    assert db.write(connection_id) != before


def test_server_that_stays_read_only_is_a_connection_error(
    primary, things_on_primary, new_database
):
    pauses = []
    db = new_database(things_on_primary, sleep=pauses.append)
    primary.execute('SET GLOBAL read_only = 1')
    with pytest.raises(db_exc.DBConnectionError):
        db.write(grow)
    assert 0 < sum(pauses) < 1


# A node of Galera that is not part of its cluster

NOT_READY = 1047


@pytest.mark.parametrize('url', MARIADB, indirect=True)
@pytest.mark.parametrize('use', ['read', 'write'])
def test_node_that_is_not_ready_is_left_by_all_connections(db, use):
    seen = []
    counted = conflicts_counted()

    def attempt(session):
        seen.append(connection_id(session))
        if len(seen) == 1:
            raise_on_server(session, NOT_READY)

    getattr(db, use)(attempt)
    assert len(set(seen)) == 2
    assert db.retries == 1
    assert conflicts_counted() == counted


@pytest.fixture(scope='module')
def node(tmp_path_factory):
    """The only node of a cluster."""
    with mariadb_server.run_galera(tmp_path_factory.mktemp('node')) as server:
        yield server


@pytest.fixture(params=MARIADB)
def things_on_node(request, node):
    given = databases.through(request.param, node.url)
    for url in with_things(sa.make_url(given)):
        yield url
        node.execute('SET GLOBAL wsrep_reject_queries = NONE')


@pytest.mark.parametrize('use, work', [('read', total), ('write', grow)])
def test_node_that_becomes_ready_again_is_used(
    node, things_on_node, new_database, use, work
):
    def recover(seconds):
        node.execute('SET GLOBAL wsrep_reject_queries = NONE')

    db = new_database(things_on_node, sleep=recover)
    assert db.write(total) == db.read(total) == 0
    node.execute('SET GLOBAL wsrep_reject_queries = ALL')
    assert getattr(db, use)(work) == {'read': 0, 'write': 1}[use]
    assert db.retries == 1


def test_node_that_stays_unready_is_a_connection_error(
    node, things_on_node, new_database
):
    pauses = []
    db = new_database(things_on_node, sleep=pauses.append)
    for use, work in ((db.read, total), (db.write, grow)):
        use(total)
        node.execute('SET GLOBAL wsrep_reject_queries = ALL')
        with pytest.raises(db_exc.DBConnectionError):
            use(work)
        node.execute('SET GLOBAL wsrep_reject_queries = NONE')
        use(total)
    assert 0 < sum(pauses) < 2
