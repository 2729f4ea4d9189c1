"""Calls of drivers are recorded with the work that made them."""

import functools

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries.recovery.recovery import CALL
from manila_lite.work import driver_calls, job as jobs, lease, table
from tests.support import sampling
from tests.unit.work.builders import claim, submit_work

ENDS = {
    'finish': table.finish,
    'continue': functools.partial(table.continue_with, args={}),
    'release': functools.partial(table.release, delay=0.0),
    'retry': functools.partial(table.retry, delay=0.0, error='busy'),
    'abandon': functools.partial(table.abandon, delay=0.0, error='busy'),
    'checkpoint': functools.partial(table.checkpoint, step='half'),
}


@pytest.fixture
def claimed(db):
    return claim(db, submit_work(db, resource_id='i', context={'request_id': 'req-1'}))


def call(db, claimed, method='paint', outcome='ok', error=None, poll=False):
    calls = claimed.driver_calls
    one = calls.begin(db.new_id(), method, db.utcnow())
    calls.end(one, db.utcnow(), outcome, error, is_poll=poll)


def recorded(db):
    return db.read(
        lambda session: session.rows(sa.select(CALL).order_by(CALL.c.started_at))
    )


@pytest.mark.parametrize('end', ENDS.values(), ids=ENDS)
def test_calls_are_recorded_when_the_worker_writes_anyway(db, claimed, end):
    call(db, claimed)
    call(db, claimed, 'dry', 'failed', ValueError('too wet'))
    assert recorded(db) == []
    db.write(end, claimed)
    first, second = recorded(db)
    assert (first.method, first.outcome, first.error) == ('paint', 'ok', None)
    assert (second.method, second.outcome, second.error) == ('dry', 'failed', 'too wet')
    assert {
        (
            row.resource,
            row.resource_id,
            row.host,
            row.work_id,
            row.attempt,
            row.request_id,
        )
        for row in (first, second)
    } == {('wall', 'i', 'blue', claimed.id, 1, 'req-1')}
    assert first.started_at <= first.ended_at <= second.started_at


def test_calls_are_recorded_once(db, claimed):
    call(db, claimed)
    db.write(table.checkpoint, claimed, 'half')
    call(db, claimed, 'dry')
    db.write(table.finish, claimed)
    assert [row.method for row in recorded(db)] == ['paint', 'dry']


@sampling.dialects
def test_commit_that_is_not_confirmed_leaves_no_second_row(db, claimed):
    call(db, claimed)
    db.write(table.checkpoint, claimed, 'half')
    (one,) = recorded(db)
    # As if the connection had broken: the calls are still to be written.
    again = claimed.driver_calls.begin(one.id, one.method, one.started_at)
    again.is_written = True
    claimed.driver_calls.end(again, one.ended_at, 'ok', None, is_poll=False)
    db.write(table.finish, claimed)
    assert [row.id for row in recorded(db)] == [one.id]


def test_running_call_is_recorded_when_the_lease_is_renewed(db, claimed):
    running = claimed.driver_calls.begin(db.new_id(), 'paint', db.utcnow())
    job = jobs.JobContext(db, claimed, jobs.Settings(), lease.Lease(lease.boot_time()))
    for _ in range(2):
        assert job.renew()
    (row,) = recorded(db)
    assert (row.ended_at, row.outcome) == (None, None)
    claimed.driver_calls.end(running, db.utcnow(), 'ok', None, is_poll=True)
    job.finish()
    (row,) = recorded(db)
    assert row.ended_at
    assert row.outcome == 'ok'


@sampling.dialects
def test_lost_claim_records_no_running_call(db):
    claimed = claim(db, submit_work(db), lease=-1.0)
    claim(db, claimed.id, 'another', abandoned=True)
    claimed.driver_calls.begin(db.new_id(), 'paint', db.utcnow())
    assert not db.write(table.renew, claimed, 30.0)
    call(db, claimed)
    with pytest.raises(exception.ClaimLost):
        db.write(table.finish, claimed)
    assert recorded(db) == []


def test_polls_are_recorded_if_they_fail(db, claimed):
    call(db, claimed, 'look', poll=True)
    call(db, claimed, 'look', 'failed', ValueError('x'), poll=True)
    db.write(table.finish, claimed)
    assert [row.outcome for row in recorded(db)] == ['failed']


def test_many_calls_are_not_all_recorded(db, claimed):
    for _ in range(2 * driver_calls.MOST):
        call(db, claimed)
    call(db, claimed, outcome='failed', error=ValueError())
    db.write(table.finish, claimed)
    found = recorded(db)
    assert len(found) == driver_calls.MOST + 1
    assert found[-1].error == 'ValueError'


def test_errors_are_masked_and_cut(db, claimed):
    error = ValueError('password=hunter2 ' + 5000 * 'x')
    call(db, claimed, outcome='failed', error=error)
    db.write(table.finish, claimed)
    (row,) = recorded(db)
    assert 'hunter2' not in row.error
    assert len(row.error) <= 1000


# Work that has succeeded


@pytest.fixture
def log():
    return driver_calls.CallLog()


def finish(db, claimed, log):
    job = jobs.JobContext(
        db, claimed, jobs.Settings(), lease.Lease(lease.boot_time()), call_log=log
    )
    job.finish()


def test_calls_of_work_that_has_succeeded_are_written_together(db, log):
    for number in range(3):
        claimed = claim(db, submit_work(db, resource_id=str(number)))
        call(db, claimed)
        finish(db, claimed, log)
    assert recorded(db) == []
    statements = []
    db.on_step = statements.append
    log.write(db.write)
    assert statements.count('statement') == 1
    assert {row.resource_id for row in recorded(db)} == {'0', '1', '2'}
    log.write(db.write)
    assert len(recorded(db)) == 3


@pytest.mark.parametrize('reason', ['failed', 'written', 'many'])
def test_calls_do_not_wait_if_they(db, claimed, log, reason, monkeypatch):
    if reason == 'failed':
        call(db, claimed, outcome='failed', error=ValueError('x'))
    elif reason == 'many':
        monkeypatch.setattr(driver_calls, 'MOST_WAITING', 0)
        call(db, claimed)
    else:
        running = claimed.driver_calls.begin(db.new_id(), 'paint', db.utcnow())
        db.write(driver_calls.record_running, claimed)
        claimed.driver_calls.end(running, db.utcnow(), 'ok', None, is_poll=False)
    finish(db, claimed, log)
    assert [row.ended_at is not None for row in recorded(db)] == [True]


def test_calls_of_work_whose_end_is_rolled_back_do_not_wait(db, claimed, log):
    call(db, claimed)

    def fail(session):
        table.finish(session, claimed, call_log=log)
        raise LookupError

    with pytest.raises(LookupError):
        db.write(fail)
    log.write(db.write)
    assert recorded(db) == []
    db.write(table.finish, claimed)
    assert len(recorded(db)) == 1


@sampling.dialects
@pytest.mark.parametrize('committed', [False, True])
def test_calls_that_may_be_written_are_written_once(db, claimed, log, committed):
    call(db, claimed)
    finish(db, claimed, log)

    def lose(function, rows, **kwargs):
        if committed:
            db.write(function, rows, **kwargs)
        raise exception.OutcomeUnknown

    with pytest.raises(exception.OutcomeUnknown):
        log.write(lose)
    log.write(db.write)
    log.write(db.write)
    assert len(recorded(db)) == 1
