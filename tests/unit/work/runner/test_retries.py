"""Work that is tried again: after transient errors, and when abandoned."""

from oslo_db import exception as db_exc
import pytest

from manila_lite import exception
from tests.unit.work.builders import row
from tests.unit.work.runner.painting import FAILED, abandon, raising, reserved, run_all

pytestmark = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)


# Transient errors


AWAY = exception.ServiceUnavailable()


def delays_until_the_end(runner, db, clock, work_id):
    """Run until the work is gone; return the delays between attempts."""
    delays = []
    while True:
        run_all(runner)
        found = row(db, work_id)
        if found is None:
            return delays
        assert found.state == 'queued'
        delays.append(round(found.next_try_at - clock.now, 1))
        clock.now = found.next_try_at


@pytest.mark.parametrize('where', ['prepare', 'widen'])
def test_transient_errors_are_retried_with_growing_delays(
    runner, ask, painter, db, clock, status_of, messages, where
):
    painter.does[where] = raising(AWAY)
    work_id = ask()
    assert delays_until_the_end(runner, db, clock, work_id) == [1, 2, 4, 8]
    assert painter.calls.count(where) == 5
    assert painter.calls.count('failed') == 1
    assert status_of('i') == 'extending_error'
    assert messages() == [FAILED]
    assert reserved(db) == 0


@pytest.mark.parametrize(
    'error', [AWAY, db_exc.DBConnectionError(), db_exc.DBDeadlock()]
)
def test_the_work_succeeds_after_a_transient_error(
    runner, ask, painter, db, clock, status_of, messages, error
):
    errors = iter([error])

    def fail_once(job):
        for one in errors:
            raise one

    painter.does['widen'] = fail_once
    work_id = ask()
    run_all(runner)
    assert status_of('i') == 'extending'
    assert reserved(db) == 3
    assert delays_until_the_end(runner, db, clock, work_id) == [1]
    assert status_of('i') == 'available'
    assert messages() == []


@pytest.mark.parametrize(
    'error',
    [
        db_exc.DBConnectionError(),
        exception.DatabaseBusy(),
        exception.DatabaseFull(reason='no space'),
    ],
    ids=lambda error: type(error).__name__,
)
def test_database_that_is_unavailable_costs_no_attempt(runner, ask, painter, db, error):
    """The error is not caused by the work; the sweep retries."""
    painter.does['prepare'] = raising(error)
    work_id = ask()
    with pytest.raises(type(error)):
        runner.step()
    found = row(db, work_id)
    assert (found.state, found.attempt) == ('queued', 0)
    painter.does.clear()
    assert runner.step()
    assert row(db, work_id) is None


# Abandoned work


def test_abandoned_work_is_rescued(runner, ask, painter, db, status_of):
    abandon(db, ask())
    run_all(runner)
    assert painter.calls == ['rescue']
    assert status_of('i') == 'available'


def test_abandoned_work_that_is_repeatable_runs_again(
    runner, ask, painter, db, status_of
):
    abandon(db, ask('remove', 'delete'))
    run_all(runner)
    assert painter.calls == ['remove']
    assert status_of('i') is None


def test_without_a_rescue_abandoned_work_runs_again(runner, ask, painter, db):
    runner.executor.rescue = None
    abandon(db, ask())
    run_all(runner)
    assert painter.calls == ['prepare', 'widen']


def test_a_rescue_that_fails_fires_the_failure(
    runner, ask, painter, db, status_of, messages
):
    painter.does['rescue'] = raising(RuntimeError('no answer'))
    abandon(db, ask())
    run_all(runner)
    assert status_of('i') == 'extending_error'
    assert messages() == [FAILED]
    assert reserved(db) == 0


def test_a_retried_rescue_is_still_a_rescue(runner, ask, painter, db, clock):
    errors = iter([AWAY])

    def fail_once(job):
        for one in errors:
            raise one

    painter.does['rescue'] = fail_once
    work_id = ask()
    abandon(db, work_id)
    run_all(runner)
    assert row(db, work_id).error
    clock.now += 10
    run_all(runner)
    assert painter.calls == ['rescue', 'rescue']
    assert row(db, work_id) is None


def test_released_abandoned_work_stays_abandoned(runner, ask, painter, db, clock):
    turns = iter([lambda job: job.release(5.0)])
    runner.executor.rescue = lambda job: next(turns, painter.rescue)(job)
    work_id = ask()
    abandon(db, work_id)
    run_all(runner)
    assert row(db, work_id) is not None
    assert painter.calls == []
    clock.now += 6
    run_all(runner)
    assert painter.calls == ['rescue']
    assert row(db, work_id) is None
