"""What the pool of connections sends to the server."""

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from manila_lite import exception
from manila_lite.db import engines
from manila_lite.db.models import shares
from tests.support import databases, sampling
from tests.support.processes import wait_until

pytestmark = sampling.dialects


SHARE = shares.Share.__table__

on_servers = pytest.mark.parametrize(
    'database_url', ['mysql', 'postgresql'], indirect=True
)


@pytest.fixture
def asked(db, monkeypatch):
    """The connections that were asked."""
    found = []
    for dialect in {db.engine.dialect, db._read_engine.dialect}:

        def note(connection, ping=dialect.do_ping):
            found.append(connection)
            return ping(connection)

        monkeypatch.setattr(dialect, 'do_ping', note)
    return found


def do_nothing(session):
    pass


@on_servers
def test_connection_just_used_is_not_asked(db, asked, monkeypatch):
    monkeypatch.setattr(engines, 'IDLE', 3600.0)
    for _ in range(3):
        db.read(do_nothing)
        db.write(do_nothing)
    assert asked == []


@on_servers
def test_idle_connection_is_asked_before_its_use(db, asked, monkeypatch):
    db.read(do_nothing)
    assert asked == []  # it was made for this transaction
    monkeypatch.setattr(engines, 'IDLE', 0.0)
    db.read(do_nothing)
    assert len(asked) == 1


@on_servers
def test_dead_idle_connection_is_replaced_before_its_use(
    db, asked, monkeypatch, database_url
):
    db.read(do_nothing)
    databases.kill_connections(database_url)
    monkeypatch.setattr(engines, 'IDLE', 0.0)
    retried = db.retries
    db.read(lambda session: session.connection.exec_driver_sql('SELECT 1'))
    assert (len(asked), db.retries) == (1, retried)


OWN_ID = {'mysql': 'SELECT CONNECTION_ID()', 'postgresql': 'SELECT pg_backend_pid()'}
ALL_IDS = {
    'mysql': 'SELECT id FROM information_schema.processlist',
    'postgresql': 'SELECT pid FROM pg_stat_activity',
}


def nested(db, use, depth):
    """Run so many transactions at the same time; return their connections."""

    def run(session):
        own = session.connection.exec_driver_sql(OWN_ID[db.dialect]).scalar()
        return {own} | (nested(db, use, depth - 1) if depth > 1 else set())

    return getattr(db, use)(run)


def still_open(other, ids):
    """Return which of these connections the server still has."""
    return ids.intersection(
        other.read(
            lambda session: (
                session.connection.exec_driver_sql(ALL_IDS[other.dialect])
                .scalars()
                .all()
            )
        )
    )


@on_servers
@pytest.mark.parametrize('use', ['read', 'write'])
def test_connections_that_are_not_needed_any_more_are_closed(
    new_database, monkeypatch, use
):
    monkeypatch.setattr(engines, 'SURPLUS', 0.2)
    db, other = new_database(), new_database()
    for _ in range(2):  # a pool is replaced by each disposal
        for _ in range(2):
            ids = nested(db, use, 4)
            assert len(ids) == 4
            wait_until(
                lambda ids=ids: len(still_open(other, ids)) == 1, 'three are closed'
            )
            assert db.connections()[use, 'idle'] == 1
        db.dispose()


@on_servers
def test_a_process_that_needs_two_connections_keeps_two(new_database, monkeypatch):
    """The last one to be used is taken first, so that the others are closed."""
    monkeypatch.setattr(engines, 'SURPLUS', 1.0)
    db, other = new_database(), new_database()
    ids = nested(db, 'read', 4)

    def others_are_closed():
        nested(db, 'read', 2)
        return len(still_open(other, ids)) <= 2

    wait_until(others_are_closed, 'the two that are not used are closed')


@on_servers
def test_closed_connections_leave_room_for_others(new_database, monkeypatch):
    monkeypatch.setattr(engines, 'SURPLUS', 0.1)
    db = new_database(pool_size=2, max_overflow=1, pool_timeout=0)
    for _ in range(3):
        nested(db, 'read', 3)
        wait_until(lambda: db.connections()['read', 'idle'] == 1, 'one is left')
    with pytest.raises(exception.DatabaseBusy):
        nested(db, 'read', 4)


@pytest.fixture
def rollbacks(db, monkeypatch):
    """The number of rollbacks of connections that return to the pool."""
    counted = []
    for engine in (db.engine, db._read_engine):

        @event.listens_for(engine, 'connect')
        def count(connection, record):
            roll_back = connection.rollback

            def note():
                counted.append(connection)
                roll_back()

            monkeypatch.setattr(connection, 'rollback', note)

        engine.dispose()
    return counted


ON_MARIADB = pytest.mark.parametrize('database_url', ['mysql'], indirect=True)
GROW = sa.update(SHARE).values(size=SHARE.c.size + 1)
SIZE = sa.select(SHARE.c.size)


@ON_MARIADB
def test_commit_is_not_followed_by_a_rollback(db, rollbacks, add_share):
    add_share('s', size=1)
    db.write(lambda session: session.run(GROW))
    assert rollbacks == []
    db.read(lambda session: session.value(SIZE))
    assert len(rollbacks) == 1


@on_servers
def test_failed_transaction_leaves_nothing_open(db, add_share):
    add_share('s', size=1)

    def fail(session):
        session.run(GROW)
        raise ZeroDivisionError

    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            db.write(fail)
    assert db.read(lambda session: session.value(SIZE)) == 1


@on_servers
def test_lost_connection_object_is_rolled_back(db, add_share):
    add_share('s', size=1)
    db.write(lambda session: None)
    connection = db.engine.raw_connection()
    cursor = connection.cursor()
    cursor.execute('UPDATE shares SET size = 7')
    cursor.close()
    connection.close()
    assert db.write(lambda session: session.value(SIZE)) == 1
