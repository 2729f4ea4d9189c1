"""Transactions as functions, on every database."""

from concurrent import futures
import contextlib
import datetime
import os
import sqlite3
import threading

from oslo_db import exception as db_exc
import pytest
import sqlalchemy as sa

from manila_lite import context, exception
from manila_lite.db import engines, errors, write_limit
from manila_lite.db.dialects import db_now
from manila_lite.db.models import shares
from manila_lite.db.session import Database, Hint, read_transaction, transaction
from tests.support import databases, sampling

pytestmark = sampling.dialects


SHARE = shares.Share.__table__

# Writers on SQLite do not run concurrently.
on_servers = pytest.mark.parametrize(
    'database_url', ['mysql', 'postgresql'], indirect=True
)

GROW = (
    sa.update(SHARE)
    .where(SHARE.c.id == sa.bindparam('which'))
    .values(size=SHARE.c.size + 1)
)
SIZE = sa.select(SHARE.c.size).where(SHARE.c.id == sa.bindparam('which'))


def grow(session, which):
    return session.run(GROW, which=which)


def size(session, which):
    return session.value(SIZE, which=which)


# Results of a session


def test_count_includes_matched_rows_without_change(db, add_share):
    add_share('s', size=3)
    same = sa.update(SHARE).where(SHARE.c.id == sa.bindparam('which')).values(size=3)
    assert db.write(lambda session: session.run(same, which='s')) == 1
    assert db.write(lambda session: session.run(same, which='t')) == 0
    remove = sa.delete(SHARE).where(SHARE.c.size == 3)
    assert db.write(lambda session: session.run(remove)) == 1


def test_rows_one_and_value(db, add_share):
    add_share('a', size=1)
    add_share('b', size=2)
    both = sa.select(SHARE.c.id, SHARE.c.size).order_by(SHARE.c.id)
    none = both.where(SHARE.c.size > 2)

    def ask(session):
        assert session.rows(both) == [('a', 1), ('b', 2)]
        assert session.first(both).id == 'a'
        assert session.value(both) == 'a'
        assert session.rows(none) == []
        assert session.first(none) is None
        assert session.value(none) is None
        return True

    assert db.read(ask)
    assert db.write(ask)


def test_one_statement_for_many_rows(db, add_share):
    for id in 'abc':
        add_share(id)
    db.write(lambda session: session.run_many(GROW, [{'which': 'a'}, {'which': 'c'}]))
    db.write(lambda session: session.run_many(GROW, []))
    assert [db.read(size, id) for id in 'abc'] == [2, 1, 2]


def test_now_is_constant_within_a_transaction(new_database, add_share):
    clock = iter([1234567890.000042, 1234567999.0])
    db = new_database(clock=lambda: next(clock))
    seen = db.write(lambda session: (session.now, session.now))
    assert seen == (datetime.datetime(2009, 2, 13, 23, 31, 30, 42),) * 2


def test_timestamps_are_stored_to_the_microsecond(db, add_share):
    add_share('s')
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901)
    db.write(lambda session: session.run(sa.update(SHARE).values(updated_at=moment)))
    assert (
        db.read(lambda session: session.value(sa.select(SHARE.c.updated_at))) == moment
    )


def test_db_now_is_the_clock_of_the_database(db):
    before = db.clock()
    seen = [
        db.read(lambda session: session.value(sa.select(db_now()))) for _ in range(2)
    ]
    assert before - 5 < seen[0] < seen[1] < db.clock() + 5


def test_db_now_is_the_injected_clock_on_sqlite(tmp_path):
    with contextlib.closing(
        _Disposed(f'sqlite:///{tmp_path}/db', clock=lambda: 42.5)
    ) as db:
        assert db.read(lambda session: session.value(sa.select(db_now()))) == 42.5


class _Disposed(Database):
    close = Database.dispose


# Atomicity, and delivery after the commit


def test_failed_transaction_leaves_nothing(db, add_share):
    add_share('s')
    delivered = []
    db.deliver = delivered.extend

    def fail(session):
        grow(session, 's')
        session.hints.append(Hint('t', 'q', 'w'))
        raise exception.InvalidInput(reason='after all')

    with pytest.raises(exception.InvalidInput):
        db.write(fail)
    assert db.read(size, 's') == 1
    assert delivered == []


def test_hints_are_delivered_after_the_commit_is_visible(new_database, db, add_share):
    add_share('s')
    other, seen = new_database(), []
    db.deliver = lambda hints: seen.append((hints, other.read(size, 's')))

    def work(session):
        grow(session, 's')
        session.hints.append(Hint('t', 'q', 'w'))
        return 'answer'

    assert db.write(work) == 'answer'
    assert seen == [([Hint('t', 'q', 'w')], 2)]


def test_on_step_is_called_for_every_step(db, add_share):
    add_share('s')
    steps = []
    db.on_step = steps.append
    db.write(grow, 's')
    assert steps == ['statement', 'commit', 'committed']


def test_error_in_on_step_before_the_commit_rolls_back(db, add_share):
    add_share('s')

    def crash(step):
        if step == 'commit':
            raise KeyboardInterrupt

    db.on_step = crash
    with pytest.raises(KeyboardInterrupt):
        db.write(grow, 's')
    db.on_step = lambda step: None
    assert db.read(size, 's') == 1


class Sizes:
    """Transaction methods like those of operations."""

    def __init__(self, db):
        self.db = db

    @transaction
    def grow(self, session, ctx, which, *, times=1):
        """Grow it."""
        for _ in range(times):
            grow(session, which)
        return session.by

    @read_transaction
    def size(self, session, which):
        return size(session, which)


def test_methods_become_transactions(db, add_share):
    add_share('s')
    ctx = context.RequestContext(user_id='ann')
    sizes = Sizes(db)
    assert sizes.grow(ctx, 's', times=2) is ctx
    assert sizes.grow(None, 's') is None
    assert sizes.size('s') == 4
    assert sizes.grow.__doc__ == 'Grow it.'


# Retries


@on_servers
def test_deadlock_is_retried(new_database, db, add_share):
    for id in 'ab':
        add_share(id)
    both_hold_one = threading.Barrier(2)
    delivered = []

    def cross(session, tries, first, second):
        tries.append(first)
        session.hints.append(Hint('t', 'q', first))
        grow(session, first)
        if len(tries) == 1:
            both_hold_one.wait(timeout=30)
        grow(session, second)

    def run(first, second):
        mine = new_database()
        mine.deliver = delivered.extend
        mine.write(cross, [], first, second)
        return mine.retries

    with futures.ThreadPoolExecutor(2) as threads:
        retries = list(threads.map(run, 'ab', 'ba'))
    assert sum(retries) >= 1
    assert [db.read(size, id) for id in 'ab'] == [3, 3]
    assert sorted(hint.work_id for hint in delivered) == ['a', 'b']


@pytest.fixture
def busy_sqlite(tmp_path, monkeypatch):
    """A factory of databases, and the connection that is writing."""
    monkeypatch.setattr(engines, 'LOCK_TIMEOUT', 0.01)
    path = tmp_path / 'db'
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute('PRAGMA journal_mode = WAL')
        writer.execute('CREATE TABLE things (id INTEGER)')
        writer.execute('BEGIN IMMEDIATE')
        with contextlib.ExitStack() as stack:

            def make(sleep):
                db = Database(f'sqlite:///{path}', sleep=sleep)
                stack.callback(db.dispose)
                return db

            yield make, writer


def insert(session):
    return session.run(sa.text('INSERT INTO things VALUES (1)'))


def test_busy_sqlite_is_retried(busy_sqlite):
    make, writer = busy_sqlite
    db = make(sleep=lambda seconds: writer.execute('COMMIT'))
    assert db.write(insert) == 1
    assert db.retries == 1


def test_sqlite_that_stays_busy_is_reported_as_busy(busy_sqlite):
    make, _ = busy_sqlite
    slept = []
    db = make(sleep=slept.append)
    with pytest.raises(exception.DatabaseBusy):
        db.write(insert)
    assert sum(slept) >= db.retry_limit
    assert all(0 < seconds < 1 for seconds in slept)


def test_new_sqlite_waits_for_the_process_that_creates_it(tmp_path, monkeypatch):
    with contextlib.closing(
        sqlite3.connect(tmp_path / 'db', isolation_level=None)
    ) as writer:
        writer.execute('CREATE TABLE things (id INTEGER)')
        writer.execute('BEGIN IMMEDIATE')
        slept = []

        def sleep(seconds):
            slept.append(seconds)
            writer.execute('COMMIT')

        monkeypatch.setattr('time.sleep', sleep)
        db = Database(f'sqlite:///{tmp_path}/db')
        assert db.write(insert) == 1
        assert len(slept) == 1
        db.dispose()


def test_other_errors_are_not_retried(db, add_share):
    add_share('s')
    tries = []

    def insert_again(session):
        tries.append(session)
        session.run(sa.insert(SHARE).from_select(SHARE.c.keys(), sa.select(SHARE)))

    with pytest.raises(db_exc.DBDuplicateEntry):
        db.write(insert_again)
    assert len(tries) == 1
    assert db.read(size, 's') == 1


class Missing(exception.ManilaLiteError):
    """An error that can be repaired."""

    def __init__(self, mend):
        super().__init__('A row is missing.')
        self.mend = mend

    def repair(self, db):
        self.mend()


def need(session, which, mend):
    if not grow(session, which):
        raise Missing(mend)


def test_repairable_error_is_repaired_and_the_transaction_retried(db, add_share):
    db.write(need, 's', lambda: add_share('s', size=5))
    assert db.read(size, 's') == 6


def test_useless_repair_is_given_up(db):
    repairs = []
    with pytest.raises(Missing):
        db.write(need, 's', lambda: repairs.append(1))
    assert len(repairs) == errors.MAX_REPAIRS


# Concurrency


def test_no_update_of_concurrent_writers_is_lost(new_database, db, add_share):
    add_share('s')
    ways_in = [new_database() for _ in range(3)]

    def grow_often(db):
        for _ in range(20):
            db.write(grow, 's')

    with futures.ThreadPoolExecutor(6) as threads:
        list(threads.map(grow_often, ways_in * 2))
    assert db.read(size, 's') == 121


def test_reader_sees_one_snapshot(new_database, db, add_share):
    add_share('s')
    other = new_database()

    def read_around_a_write(session):
        first = size(session, 's')
        other.write(grow, 's')
        return first, size(session, 's')

    assert db.read(read_around_a_write) == (1, 1)
    assert db.read(size, 's') == 2


@on_servers
def test_writer_sees_commits_of_others(new_database, db, add_share):
    add_share('s')
    other = new_database()

    def write_around_a_write(session):
        first = size(session, 's')
        other.write(grow, 's')
        return first, size(session, 's')

    assert db.write(write_around_a_write) == (1, 2)


@pytest.mark.parametrize('database_url', ['postgresql'], indirect=True)
def test_reader_cannot_write_on_postgresql(db, add_share):
    add_share('s')
    with pytest.raises(db_exc.DBError, match='read-only'):
        db.read(grow, 's')


def test_lock_serves_in_the_order_of_arrival():
    lock, served = write_limit.FifoLock(), []

    def wait_in_line(number):
        with lock:
            served.append(number)

    with futures.ThreadPoolExecutor(5) as threads, lock:
        for number in range(5):
            threads.submit(wait_in_line, number)
            while len(lock._waiting) <= number:
                os.sched_yield()  # no event says that a thread waits
        assert served == []
    assert served == [0, 1, 2, 3, 4]


def test_lock_is_free_after_an_error():
    lock = write_limit.FifoLock()
    with pytest.raises(KeyError), lock:
        raise KeyError
    with lock:
        pass


def test_waiting_writers_on_sqlite_are_served_in_order(tmp_path):
    db = Database(f'sqlite:///{tmp_path}/db')
    served = []

    def hold(session, threads):
        for number in range(4):
            threads.submit(
                db.write, lambda session, number=number: served.append(number)
            )
            while len(db._write_lock._waiting) <= number:
                os.sched_yield()

    with futures.ThreadPoolExecutor(4) as threads:
        db.write(hold, threads)
    db.dispose()
    assert served == [0, 1, 2, 3]


# Connections


@on_servers
@pytest.mark.parametrize('use', ['read', 'write'])
def test_too_many_transactions_at_once_are_reported_as_busy(new_database, use):
    db = new_database(pool_size=1, max_overflow=0, pool_timeout=0)

    def another(session):
        return getattr(db, use)(lambda inner: None)

    with pytest.raises(exception.DatabaseBusy):
        getattr(db, use)(another)
    assert getattr(db, use)(lambda session: 'free again') == 'free again'


@on_servers
def test_dead_pooled_connections_are_replaced_silently(db, add_share, database_url):
    add_share('s', size=1)
    assert db.read(size, 's') == 1
    databases.kill_connections(database_url)
    assert db.write(grow, 's') == 1
    databases.kill_connections(database_url)
    assert db.read(size, 's') == 2


@on_servers
def test_change_without_a_move_is_not_repeated_after_a_lost_commit(
    db, add_share, database_url
):
    add_share('s', size=1)

    def kill(name):
        if name == 'commit':
            db.on_step = lambda name: None
            databases.kill_connections(database_url)

    db.on_step = kill
    # The outcome is unknown, so the transaction must not be retried.
    with pytest.raises(exception.OutcomeUnknown):
        db.write(grow, 's')
