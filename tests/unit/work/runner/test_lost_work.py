"""Work that lost its worker, its lease, or the chance to be recorded."""

from oslo_db import exception as db_exc
import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.rpc import contract
from manila_lite.work import table
from manila_lite.work.job import Settings
from manila_lite.work.runner import Runner
from tests.unit.work.builders import row
from tests.unit.work.runner.painting import FAILED, abandon, raising, reserved, run_all

pytestmark = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)


class BootClock:
    now = 500.0

    def __call__(self):
        return self.now


@pytest.fixture
def boot_clock():
    return BootClock()


@pytest.fixture
def rechecks():
    return []


@pytest.fixture
def records():
    return []


@pytest.fixture
def runner(db, painter, boot_clock, rechecks, records):
    made = Runner(
        db,
        queues=['blue'],
        handlers=contract.endpoint_handlers(painter),
        owner='me',
        rescue=painter.rescue,
        recheck=lambda session, claim: rechecks.append(claim.resource_id),
        record=lambda session, claim, error: records.append(str(error)),
        settings=Settings(max_attempts=3),
        clock=boot_clock,
    )
    db.deliver = lambda hints: [made.wake(hint.work_id) for hint in hints]
    return made


def take_over(db, work_id):
    db.write(table.expire_leases, ['blue'])
    assert db.write(table.claim, work_id, ['blue'], 'other', 9, abandoned=True)


# The lease


def test_a_worker_acts_within_its_lease_without_asking(runner, ask, painter, db):
    statements = []

    def widen(job):
        db.on_step = statements.append
        job.require_claim()
        db.on_step = lambda name: None

    painter.does['widen'] = widen
    ask()
    run_all(runner)
    assert statements == []


def test_a_worker_renews_a_lease_that_is_over_before_it_acts(
    runner, ask, painter, db, clock, boot_clock
):
    def widen(job):
        boot_clock.now += 100
        clock.now += 100
        job.require_claim()
        assert row(db, job.id).lease_until > clock.now
        assert job.lease.is_valid

    painter.does['widen'] = widen
    ask()
    run_all(runner)
    assert painter.calls == ['prepare', 'widen']


def test_a_lease_begins_before_its_claim_is_committed(
    runner, ask, painter, db, boot_clock
):
    """The database counts it from then, however long the commit takes."""

    def pause(name):
        if name == 'commit':
            db.on_step = lambda name: None
            boot_clock.now += 100

    painter.does['widen'] = lambda job: seen.append(job.lease.is_valid)
    seen = []
    ask()
    db.on_step = pause
    run_all(runner)
    assert seen == [False]


@pytest.mark.parametrize('is_noticed', [True, False])
def test_a_worker_that_was_replaced_may_not_act(
    runner, ask, painter, db, boot_clock, is_noticed
):
    acted = []

    def widen(job):
        take_over(db, job.id)
        if is_noticed:
            runner.renew()
        else:
            boot_clock.now += 100
        job.require_claim()
        acted.append('too late')

    painter.does['widen'] = widen
    ask()
    run_all(runner)
    assert acted == []


# Rechecks


@pytest.mark.parametrize('method, event', [('widen', 'extend'), ('remove', 'delete')])
def test_lost_work_is_rechecked_whether_or_not_it_is_repeatable(
    runner, ask, painter, db, rechecks, method, event
):
    painter.does[method] = lambda job: take_over(db, job.id)
    ask(method, event)
    run_all(runner)
    assert rechecks == ['i']


def test_a_recheck_that_met_a_database_error_is_made_later(
    runner, ask, painter, db, rechecks
):
    errors = iter([db_exc.DBConnectionError()])

    def recheck(session, claim):
        for error in errors:
            raise error
        rechecks.append(claim.resource_id)

    runner.executor.recheck = recheck
    painter.does['widen'] = lambda job: take_over(db, job.id)
    ask()
    run_all(runner)
    assert rechecks == []
    runner.executor.retry_failed_rechecks()
    runner.executor.retry_failed_rechecks()
    assert rechecks == ['i']


# Database errors after the driver was called


def fail_the_end_once(db, error):
    """Let the next `job.finish` meet an error of the database."""
    write = db.write

    def failing(function, *args, **kwargs):
        if getattr(function, '__name__', '') == '_finish':
            db.write = write
            raise error
        return write(function, *args, **kwargs)

    db.write = failing


@pytest.mark.parametrize(
    'method, event, then',
    [('widen', 'extend', 'rescue'), ('remove', 'delete', 'remove')],
)
def test_only_repeatable_work_with_effects_is_repeated(
    runner, ask, painter, db, clock, method, event, then
):
    def act(job):
        job.has_effects = True
        fail_the_end_once(db, db_exc.DBDeadlock())

    painter.does[method] = act
    work_id = ask(method, event)
    run_all(runner)
    clock.now = max(row(db, work_id).next_try_at, row(db, work_id).lease_until or 0) + 1
    painter.does.clear()
    painter.calls.clear()
    run_all(runner)
    assert painter.calls == [then]


# Work that ends its processes


def test_work_that_was_abandoned_too_often_fails_without_its_handler(
    runner, ask, painter, db, status_of, messages, records
):
    work_id = ask()
    abandon(db, work_id)
    for _ in range(2):
        assert db.write(table.claim, work_id, ['blue'], 'dead', -1.0, abandoned=True)
    run_all(runner)
    assert painter.calls == ['dropped', 'failed']
    assert status_of('i') == 'extending_error'
    assert messages() == [FAILED]
    assert reserved(db) == 0
    assert len(records) == 1
    assert '3 attempts' in records[0]


def test_work_abandoned_less_often_is_rescued(runner, ask, painter, db):
    work_id = ask()
    abandon(db, work_id)
    assert db.write(table.claim, work_id, ['blue'], 'dead', -1.0, abandoned=True)
    run_all(runner)
    assert painter.calls == ['rescue']


# Work of a newer release


def test_work_with_unknown_arguments_waits_for_a_release_that_knows_them(
    runner, ask, painter, db, clock, status_of
):
    work_id = ask()
    db.write(
        lambda session: session.run(
            sa.update(table.WORK).values(args='{"instance_id": "i", "colour": "red"}')
        )
    )
    run_all(runner)
    found = row(db, work_id)
    assert (found.state, found.attempt) == ('queued', 0)
    assert found.next_try_at > clock.now + 5
    assert painter.calls == []
    assert status_of('i') == 'extending'


def test_abandoned_work_with_unknown_arguments_is_not_swept_for_a_while(
    runner, ask, painter, db, clock
):
    work_id = ask()
    db.write(
        lambda session: session.run(
            sa.update(table.WORK).values(args='{"instance_id": "i", "colour": "red"}')
        )
    )
    abandon(db, work_id)
    run_all(runner)
    assert runner.sweep() == 0
    found = row(db, work_id)
    assert (found.state, found.attempt) == ('running', 1)
    assert clock.now + 5 < found.lease_until < clock.now + 60


@pytest.mark.parametrize(
    'error', [db_exc.DBConnectionError(), exception.DatabaseBusy()]
)
def test_a_busy_database_does_not_skip_the_failure_hook(
    runner, ask, painter, db, clock, status_of, error
):
    """The failure is recorded by the worker that takes the work over."""
    errors = iter([error])

    def fail_once(*args):
        for one in errors:
            raise one

    painter.does['widen'] = raising(RuntimeError('no space'))
    painter.does['failed'] = fail_once
    work_id = ask()
    with pytest.raises(type(error)):
        runner.step()
    assert row(db, work_id).state == 'running'
    assert status_of('i') == 'extending'


def test_a_lost_claim_is_no_error_of_the_work(runner, ask, painter, db):
    def lose(job):
        raise exception.ClaimLost(id=job.id)

    painter.does['widen'] = lose
    work_id = ask()
    run_all(runner)
    assert row(db, work_id).error is None
