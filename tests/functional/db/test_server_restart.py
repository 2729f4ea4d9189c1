"""Connections of the pool to a server that has been restarted."""

from concurrent import futures
import contextlib
import functools
import threading

from oslo_db import exception as db_exc
import pytest
import sqlalchemy as sa

from manila_lite.db import engines, read_limit
from manila_lite.db.session import Database
from tests.support import databases, restartable

DRIVERS = (
    'mysql+pymysql',
    'mysql+mysqldb',
    'postgresql+psycopg2',
    'postgresql+psycopg',
)
AT_ONCE = 4
TIMEOUT = 60.0

THINGS = sa.Table(
    'things',
    sa.MetaData(),
    sa.Column('id', sa.Integer, primary_key=True),
    sa.Column('size', sa.Integer, nullable=False),
)
GROW = sa.update(THINGS).values(size=THINGS.c.size + 1)
SIZE = sa.select(THINGS.c.size)


@pytest.fixture(scope='module')
def servers():
    with contextlib.ExitStack() as stack:
        yield functools.cache(
            lambda kind: stack.enter_context(restartable.running(kind))
        )


@pytest.fixture(params=DRIVERS)
def driver(request):
    return request.param


@pytest.fixture
def server(servers, driver):
    return servers(driver.partition('+')[0])


@pytest.fixture
def db(server, driver):
    db = Database(databases.through(driver, server.url))
    THINGS.drop(db.engine, checkfirst=True)
    THINGS.create(db.engine)
    db.write(lambda session: session.run(sa.insert(THINGS), id=1, size=0))
    yield db
    db.dispose()


def at_once(run, function):
    """Run a function in some transactions, all of which are open at once."""
    met = threading.Barrier(AT_ONCE)

    def run_one(number):
        arrived = []

        def meet(session):
            if not arrived:  # not when it is run again
                arrived.append(met.wait(TIMEOUT))
            return function(session)

        return run(meet)

    with futures.ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(run_one, range(AT_ONCE)))


def size(session):
    return session.value(SIZE)


# Those in use a moment ago are not asked whether they are alive.
@pytest.mark.parametrize('idle', [0.0, 3600.0], ids=['idle', 'just used'])
def test_restart_fails_no_transaction(server, db, monkeypatch, idle):
    monkeypatch.setattr(engines, 'IDLE', idle)
    at_once(db.read, size)
    at_once(db.write, size)
    server.restart()
    for grown in range(1, AT_ONCE + 1):
        assert db.write(lambda session: session.run(GROW)) == 1
        assert db.read(size) == grown
    server.restart()
    with read_limit.limit_reads(TIMEOUT):
        assert db.read(size) == AT_ONCE
    assert at_once(db.read, size) == [AT_ONCE] * AT_ONCE
    assert at_once(db.write, size) == [AT_ONCE] * AT_ONCE


def test_transaction_that_has_begun_is_not_repeated(server, db):
    sizes = []

    def restart_before_second(session):
        sizes.append(size(session))
        server.restart()
        session.run(GROW)

    with pytest.raises(db_exc.DBConnectionError):
        db.write(restart_before_second)
    assert sizes == [0]
    assert db.read(size) == 0
