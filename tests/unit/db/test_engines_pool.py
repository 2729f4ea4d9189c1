"""What the pool of connections sends to the server."""

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from manila_lite.db import engines
from manila_lite.db.models import shares
from tests.support import databases, sampling

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
