"""One piece of work: success, and every kind of failure."""

import threading

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries.recovery.recovery import CALL
from manila_lite.db.transitions import fire
from manila_lite.messages import Detail
from manila_lite.rpc import contract
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.work import table
from tests.unit.work.builders import row, submit_work, sweep
from tests.unit.work.runner.painting import CTX, FAILED, raising, reserved, run_all

pytestmark = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)


# How work reaches the runner


def test_hinted_work_is_run(runner, ask, painter, status_of):
    ask()
    assert runner.step()
    assert painter.calls == ['prepare', 'widen']
    assert status_of('i') == 'available'
    assert not runner.step()


def test_a_hint_that_comes_twice_runs_work_once(runner, ask, painter):
    work_id = ask()
    runner.wake(work_id)
    run_all(runner)
    runner.wake(work_id)
    run_all(runner)
    assert painter.calls == ['prepare', 'widen']


def test_work_without_a_hint_is_found(runner, ask, painter, db):
    db.deliver = lambda hints: None
    ask()
    assert runner.step()
    assert painter.calls == ['prepare', 'widen']


def test_work_of_an_unknown_kind_stays_queued(runner, db):
    work_id = submit_work(db, kind='gilding.gild')
    runner.wake(work_id)
    assert runner.step()
    assert not runner.step()
    found = row(db, work_id)
    assert (found.state, found.attempt, found.fence) == ('queued', 0, 0)


# Success


def test_the_handler_gets_what_was_prepared(runner, ask, painter):
    seen = []
    painter.does = {
        'prepare': lambda session, job: f'for {job.id}',
        'widen': lambda job: seen.append(job.prepared),
    }
    work_id = ask()
    run_all(runner)
    assert seen == [f'for {work_id}']


def test_the_journal_names_the_owner_and_the_request(runner, ask, db):
    ask()
    run_all(runner)
    made = db.read(
        lambda session: session.first(
            sa.text(
                "SELECT made_by, request_id FROM transitions WHERE event = 'extended'"
            )
        )
    )
    assert tuple(made) == ('me', 'req-1')


# Failure


def test_an_error_fires_the_failure_and_releases_quota(
    runner, ask, painter, db, status_of, messages
):
    painter.does['widen'] = raising(RuntimeError('out of paint'))
    work_id = ask()
    run_all(runner)
    assert painter.calls == ['prepare', 'widen', 'dropped', 'failed']
    assert status_of('i') == 'extending_error'
    assert messages() == [FAILED]
    assert reserved(db) == 0
    assert row(db, work_id) is None


def test_some_errors_fire_their_own_event(runner, ask, painter, status_of, messages):
    painter.does['widen'] = raising(
        exception.ShareShrinkingPossibleDataLoss(share_id='i')
    )
    ask()
    run_all(runner)
    assert status_of('i') == 'available'
    assert messages()[0][2] == Detail.DRIVER_REFUSED_SHRINK.value


def test_the_detail_of_an_error_replaces_the_declared_one(
    runner, ask, painter, messages
):
    painter.does['widen'] = raising(
        exception.NoValidHost(reason='full', message_detail=Detail.FILTER_CAPACITY)
    )
    ask()
    run_all(runner)
    assert messages()[0][2] == Detail.FILTER_CAPACITY.value


@pytest.mark.parametrize(
    'error, level',
    [
        (exception.NoValidHost(reason='full'), 'WARNING'),
        (exception.ManageInvalidShare(reason='no such path'), 'WARNING'),
        (exception.ShareBackendException(msg='out of paint'), 'ERROR'),
        (RuntimeError('out of paint'), 'ERROR'),
    ],
)
def test_refusal_is_one_warning_with_the_request_id(
    runner, ask, painter, caplog, error, level
):
    painter.does['widen'] = raising(error)
    ask()
    run_all(runner)
    (line,) = [one for one in caplog.records if one.name.endswith('operation_log')]
    assert line.levelname == level
    assert bool(line.exc_info) == (level == 'ERROR')
    assert CTX.request_id in line.message
    assert str(error) in line.message


def test_work_without_a_declared_failure_just_ends(
    runner, ask, painter, status_of, messages, db
):
    painter.does['look'] = raising(ValueError)
    ask('look')
    run_all(runner)
    assert painter.calls == ['look']
    assert status_of('i') == 'extending'
    assert messages() == []
    assert not db.read(table.list_work)


def test_a_failed_hook_may_replace_the_declared_failure(
    runner, ask, painter, db, status_of, messages
):
    painter.does['widen'] = raising(RuntimeError('out of paint'))
    painter.does['failed'] = lambda session, job, error: (
        not fire(session, SHARE_INSTANCE, 'i', 'extended')
    )
    ask()
    run_all(runner)
    assert status_of('i') == 'available'
    assert messages() == []
    assert (reserved(db), sweep(db)) == (0, [])


def test_a_hook_that_fails_does_not_hide_the_failure(
    runner, ask, painter, db, status_of, messages
):
    painter.does['widen'] = raising(RuntimeError('out of paint'))
    painter.does['failed'] = raising(TypeError('and of words'))
    work_id = ask()
    run_all(runner)
    assert status_of('i') == 'extending_error'
    assert messages() == [FAILED]
    assert (reserved(db), row(db, work_id)) == (0, None)


def test_a_handler_that_does_not_end_its_job_fails(runner, ask, painter, status_of):
    painter.widen = lambda job, instance_id: None
    runner.executor.handlers = contract.endpoint_handlers(painter)
    ask()
    run_all(runner)
    assert status_of('i') == 'extending_error'


def test_no_message_when_the_status_has_changed_meanwhile(
    runner, ask, painter, db, status_of, messages
):
    def reset_and_fail(job):
        db.write(fire, SHARE_INSTANCE, 'i', 'reset_error')
        raise RuntimeError('out of paint')

    painter.does['widen'] = reset_and_fail
    work_id = ask()
    run_all(runner)
    assert status_of('i') == 'error'
    assert messages() == []
    assert (reserved(db), row(db, work_id)) == (0, None)


def test_an_error_in_prepare_fails_the_work(runner, ask, painter, status_of, messages):
    painter.does['prepare'] = raising(KeyError('canvas'))
    ask()
    run_all(runner)
    assert painter.calls == ['prepare', 'dropped', 'failed']
    assert status_of('i') == 'extending_error'
    assert messages() == [FAILED]


def test_work_without_a_project_ends_too(runner, ask, painter, monkeypatch, messages):
    monkeypatch.setattr(CTX, 'project_id', None)
    painter.does['widen'] = raising(RuntimeError('out of paint'))
    ask()
    run_all(runner)
    assert messages() == [('owner', *FAILED[1:])]


# Stale work


def stale(session, *args):
    raise exception.InvalidStatus(
        resource='share instance', id='i', status='error', event='x', allowed='y'
    )


@pytest.mark.parametrize(
    'where, calls',
    [('prepare', ['prepare', 'dropped']), ('widen', ['prepare', 'widen', 'dropped'])],
)
def test_stale_work_is_dropped(
    runner, ask, painter, db, status_of, messages, where, calls
):
    painter.does[where] = stale
    work_id = ask()
    run_all(runner)
    assert painter.calls == calls
    assert status_of('i') == 'extending'  # not its business any more
    assert messages() == []
    assert (reserved(db), row(db, work_id)) == (0, None)


def test_results_for_another_status_are_not_written(
    runner, ask, painter, db, status_of
):
    painter.does['widen'] = lambda job: db.write(
        fire, SHARE_INSTANCE, 'i', 'force_delete'
    )
    work_id = ask()
    run_all(runner)
    assert status_of('i') == 'deleting'
    assert painter.calls[-1] == 'dropped'
    assert (reserved(db), row(db, work_id)) == (0, None)


# Driver calls


def paint(db):
    """Return what a handler does that calls a driver."""

    def call(job):
        calls = job.claim.driver_calls
        one = calls.begin(db.new_id(), 'paint', db.utcnow())
        calls.end(one, db.utcnow(), 'ok', None, is_poll=False)

    return call


def count_calls(db):
    return db.read(
        lambda session: session.value(sa.select(sa.func.count()).select_from(CALL))
    )


def rename(db, table, to):
    statement = sa.text(f'ALTER TABLE {table} RENAME TO {to}')
    db.write(lambda session: session.run(statement))


def test_sweep_writes_the_calls_of_work_that_has_succeeded(runner, ask, painter, db):
    painter.does['widen'] = paint(db)
    ask()
    assert runner.step()
    assert count_calls(db) == 0
    assert not runner.step()
    assert count_calls(db) == 1


def test_stop_writes_the_calls_of_work_that_has_succeeded(new_runner, ask, painter, db):
    runner = new_runner(sweep_interval=3600.0)
    painter.does['widen'] = paint(db)
    ended = threading.Event()
    db.on_step = lambda name: name == 'committed' and painter.calls and ended.set()
    runner.start()
    ask()
    assert ended.wait(30)
    assert runner.stop(30)
    assert count_calls(db) == 1


def test_calls_that_cannot_be_written_delay_no_work(runner, ask, painter, db):
    painter.does['widen'] = paint(db)
    ask()
    assert runner.step()
    db.write(
        lambda session: session.run(sa.text('ALTER TABLE driver_calls RENAME TO x'))
    )
    db.deliver = lambda hints: None
    ask(instance_id='another')
    assert runner.step()
    assert painter.calls == ['prepare', 'widen'] * 2
    db.write(
        lambda session: session.run(sa.text('ALTER TABLE x RENAME TO driver_calls'))
    )
    assert not runner.step()
    assert count_calls(db) == 2
