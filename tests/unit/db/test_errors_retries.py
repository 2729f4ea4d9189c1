"""How long a transaction that loses against others is repeated."""

import contextlib

import pytest
import sqlalchemy as sa

from manila_lite import exception, metrics
from manila_lite.db import engines
from manila_lite.db.session import ConcurrentChange
from tests.support import conflicts, sampling
from tests.support.rows import SHARE, insert_share

pytestmark = sampling.dialects


COUNT = sa.select(sa.func.count()).select_from(SHARE)


def insert(session):
    insert_share(session, id='s')


def count(session):
    return session.value(COUNT)


@pytest.fixture
def conflict(new_database, database_url, monkeypatch):
    """A stack whose `close` ends a conflict that every INSERT loses."""
    new_database().read(count)  # an SQLite database gets its journal
    monkeypatch.setattr(engines, 'LOCK_TIMEOUT', 0.01)
    with contextlib.ExitStack() as stack:
        stack.enter_context(conflicts.lost_inserts(database_url, 'shares'))
        yield stack


def test_transaction_is_repeated_while_it_loses(new_database, conflict):
    pauses = []

    def sleep(seconds):
        pauses.append(seconds)
        if len(pauses) == 12:
            conflict.close()

    db = new_database(sleep=sleep)
    db.write(insert)
    assert (db.retries, db.read(count)) == (12, 1)
    assert all(0 < pause <= 0.5 for pause in pauses)
    assert sum(pauses[:4]) < sum(pauses[-4:])


@pytest.mark.usefixtures('conflict')
def test_transaction_that_keeps_losing_ends_as_busy(new_database):
    pauses = []
    db = new_database(sleep=pauses.append, retry_limit=3.0)
    with pytest.raises(exception.DatabaseBusy):
        db.write(insert)
    assert 3.0 <= sum(pauses) < 3.6
    assert db.read(count) == 0


@pytest.mark.usefixtures('conflict')
def test_waiting_for_locks_counts_as_well(new_database):
    db = new_database(sleep=lambda seconds: None, retry_limit=0.0)
    with pytest.raises(exception.DatabaseBusy):
        db.write(insert)
    assert db.retries == 0


def test_row_that_others_keep_changing_is_unavailable(new_database):
    def change(session):
        raise ConcurrentChange(table='shares')

    with pytest.raises(exception.ServiceUnavailable):
        new_database().write(change)


@pytest.mark.parametrize('database_url', ['mysql', 'postgresql'], indirect=True)
def test_read_that_loses_is_repeated(new_database):
    attempts = []
    db = new_database()

    def read(session):
        attempts.append(session)
        if len(attempts) == 1:
            conflicts.lose(session)
        return count(session)

    assert db.read(read) == 0
    assert db.retries == 1


@pytest.mark.parametrize('database_url', ['mysql'], indirect=True)
def test_lock_of_a_paused_process_is_not_waited_for_long(new_database):
    wait = sa.text('SELECT @@innodb_lock_wait_timeout')
    assert new_database().write(lambda session: session.value(wait)) <= 10


@pytest.mark.usefixtures('conflict')
def test_lost_attempts_are_counted(new_database):
    counters = (
        metrics.DATABASE_DEADLOCKS,
        metrics.DATABASE_RETRIES,
        metrics.DATABASE_BUSY,
    )
    before = [one.family().samples[()] for one in counters]
    db = new_database(sleep=lambda seconds: None, retry_limit=3.0)
    with pytest.raises(exception.DatabaseBusy):
        db.write(insert)
    lost, again, busy = (
        one.family().samples[()] - old
        for one, old in zip(counters, before, strict=True)
    )
    assert (lost, busy) == (again + 1, 1)
    assert again == db.retries > 0
