"""A runner with threads: hints, sweeps, leases and stopping."""

import collections
from concurrent import futures
import threading
import time

from oslo_db import exception as db_exc
import pytest
import sqlalchemy as sa

from manila_lite import release
from manila_lite.rpc.contract import Contract, durable, endpoint_handlers, implements
from manila_lite.work import table
from manila_lite.work.job import Settings
from manila_lite.work.runner import Runner
from tests.support.processes import wait_until
from tests.unit.work.builders import row, submit_work

NEVER = 3600.0
PATIENCE = 20.0

pytestmark = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)


class PaintingRpc(Contract):
    topic, version = 'painters', '1.0'

    @durable(repeatable=True)
    def paint(self, ctx, instance_id): ...


@implements(PaintingRpc)
class Painter:
    """Blocks while a test holds `may_finish` clear; counts what is done."""

    def __init__(self):
        self.begun = threading.Event()
        self.may_finish = threading.Event()
        self.may_finish.set()
        self.done = []
        self.threads = set()
        self._changed = threading.Condition()

    def paint(self, job, instance_id):
        self.begun.set()
        assert self.may_finish.wait(PATIENCE)
        self.threads.add(threading.current_thread().name)
        job.finish(lambda session: None)
        with self._changed:
            self.done.append(job.id)
            self._changed.notify_all()

    def wait_for(self, count):
        """Wait until `count` are done; return their ids."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.done) >= count, PATIENCE)
        return self.done


@pytest.fixture
def painter():
    return Painter()


@pytest.fixture
def start(db, painter):
    """`start(**settings)`: a started runner; stopped after the test."""
    started = []

    def make(**settings):
        runner = Runner(
            db,
            queues=['blue'],
            handlers=endpoint_handlers(painter),
            owner='me',
            settings=Settings(**{'sweep_interval': NEVER, 'workers': 2, **settings}),
        )
        runner.start()
        started.append(runner)
        return runner

    yield make
    painter.may_finish.set()
    for runner in started:
        assert runner.stop(PATIENCE)


def ask(db):
    return submit_work(db, args={'instance_id': 'i'})


def test_a_hint_wakes_a_worker_at_once(db, start, painter):
    """The next sweep is an hour away."""
    runner = start()
    for number in range(1, 6):
        runner.wake(ask(db))
        painter.wait_for(number)


def test_the_sweep_finds_work_without_a_hint(db, start, painter):
    start(sweep_interval=0.01)
    work_id = ask(db)
    assert painter.wait_for(1) == [work_id]


def test_a_start_sweeps_until_the_queue_is_empty(db, start, painter):
    """Full batches follow each other without a pause."""
    ids = [ask(db) for _ in range(11)]
    start(batch=2)
    assert sorted(painter.wait_for(11)) == sorted(ids)


def test_the_sweep_takes_abandoned_work_over(db, start, painter):
    work_id = ask(db)
    assert db.write(table.claim, work_id, ['blue'], 'dead', -1.0)
    start(sweep_interval=0.01)
    assert painter.wait_for(1) == [work_id]


def test_workers_run_side_by_side(db, start, painter):
    both = threading.Barrier(2)
    paint = painter.paint

    def meet(job, instance_id):
        both.wait(PATIENCE)
        paint(job, instance_id)

    painter.paint = meet
    runner = start(workers=2)
    for _ in range(2):
        runner.wake(ask(db))
    painter.wait_for(2)
    assert len(painter.threads) == 2


def test_work_that_waited_runs_as_soon_as_its_resource_is_free(db, start, painter):
    """The next sweep is an hour away."""
    painter.may_finish.clear()
    runner = start(workers=2)
    ids = [
        submit_work(db, args={'instance_id': 'i'}, resource_id='w') for _ in range(3)
    ]
    runner.wake(ids[0])
    assert painter.begun.wait(PATIENCE)
    statements = []
    db.on_step = statements.append
    for work_id in ids[1:]:
        runner.wake(work_id)
    # Each is refused by one statement and looked up by another.
    wait_until(lambda: len(statements) >= 4, 'both have been refused')
    painter.may_finish.set()
    assert sorted(painter.wait_for(3)) == sorted(ids)


def test_a_runner_knows_since_when_all_its_workers_are_busy(db, start, painter):
    painter.may_finish.clear()
    runner = start(workers=1)
    assert runner.busy_since() is None
    began = time.monotonic()
    runner.wake(ask(db))
    assert painter.begun.wait(PATIENCE)
    assert began <= runner.busy_since() <= time.monotonic()
    painter.may_finish.set()
    painter.wait_for(1)
    wait_until(lambda: runner.busy_since() is None, 'the worker is free')


# More workers


def workers():
    return [
        thread
        for thread in threading.enumerate()
        if thread.name.startswith('blue-worker-')
    ]


def ask_many(db, runner, count):
    for _ in range(count):
        runner.wake(ask(db))


def is_running(db, count):
    return (
        db.read(
            lambda session: session.value(
                sa.select(sa.func.count())
                .select_from(table.WORK)
                .where(table.WORK.c.state == 'running')
            )
        )
        == count
    )


def test_workers_follow_slow_work_up_to_the_limit_and_end_without(db, start, painter):
    painter.may_finish.clear()
    runner = start(workers=6)
    assert len(workers()) == 2
    ask_many(db, runner, 3)
    wait_until(lambda: is_running(db, 3), 'all three are running')
    assert runner.busy_since() is None
    ask_many(db, runner, 7)
    wait_until(lambda: is_running(db, 6), 'as many are running as may')
    wait_until(lambda: runner.busy_since() is not None, 'all are occupied')
    assert len(workers()) == 6
    assert runner.stall_reason() is None
    painter.may_finish.set()
    painter.wait_for(10)
    wait_until(lambda: len(workers()) == 2, 'two workers are left')
    assert runner.stall_reason() is None
    ask_many(db, runner, 1)
    painter.wait_for(11)


def test_workers_grow_again_after_they_have_ended(db, start, painter):
    runner = start(workers=4)
    for number in range(1, 4):
        painter.may_finish.clear()
        ask_many(db, runner, 5)
        wait_until(lambda: is_running(db, 4), 'four are running')
        painter.may_finish.set()
        painter.wait_for(5 * number)
        wait_until(lambda: len(workers()) == 2, 'two workers are left')


def test_a_limit_below_two_is_kept(db, start, painter):
    painter.may_finish.clear()
    runner = start(workers=1, growth_pause=0.0)
    ask_many(db, runner, 3)
    wait_until(lambda: is_running(db, 1), 'one is running')
    assert len(workers()) == 1
    painter.may_finish.set()
    painter.wait_for(3)


def test_quick_work_gets_no_more_workers(db, start, painter):
    """Each begin and end of work postpones the third by an hour."""
    paint, running = painter.paint, []

    def count(job, instance_id):
        running.append(job.id)
        assert len(running) <= 2
        paint(job, instance_id)
        running.remove(job.id)

    painter.paint = count
    runner = start(workers=16, growth_pause=NEVER)
    ask_many(db, runner, 60)
    painter.wait_for(60)
    wait_until(lambda: len(workers()) == 2, 'two workers are left')


@pytest.mark.parametrize('clock', [time.time])
def test_work_that_is_due_later_finds_a_worker(db, start, painter):
    """Two were occupied when the time came; the next sweep is an hour away."""
    painter.may_finish.clear()
    runner = start(workers=4)
    later = submit_work(db, args={'instance_id': 'i'}, needs_release=release.NUMBER)
    db.write(table.postpone, later, 0.5)
    ask_many(db, runner, 2)
    wait_until(lambda: is_running(db, 2), 'two are running')
    runner.sweep()
    wait_until(lambda: is_running(db, 3), 'the third is running, too')


def test_a_limit_of_threads_does_not_lose_work(db, start, painter, monkeypatch):
    runner = start(workers=4)
    painter.may_finish.clear()

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, 'start', refuse)
    ask_many(db, runner, 4)
    wait_until(lambda: is_running(db, 2), 'two are running')
    painter.may_finish.set()
    painter.wait_for(4)


def test_stopping_ends_all_workers(db, start, painter):
    painter.may_finish.clear()
    runner = start(workers=5)
    ask_many(db, runner, 8)
    wait_until(lambda: is_running(db, 5), 'five are running')
    runner.drain()
    painter.may_finish.set()
    assert runner.stop(PATIENCE)
    assert len(painter.done) == 5
    assert not workers()


def test_two_runners_share_the_work(db, start, painter):
    runners = [start() for _ in range(3)]
    ids = [ask(db) for _ in range(20)]
    for work_id in ids:
        for runner in runners:
            runner.wake(work_id)
    assert sorted(painter.wait_for(20)) == sorted(ids)
    for runner in runners:
        runner.stop(PATIENCE)
    assert len(painter.done) == 20


def test_stopping_waits_for_running_work_and_claims_no_more(db, start, painter):
    painter.may_finish.clear()
    runner = start(workers=1)
    first, second = ask(db), ask(db)
    runner.wake(first)
    assert painter.begun.wait(PATIENCE)
    runner.wake(second)
    assert row(db, first).state == 'running'
    runner.drain()
    with futures.ThreadPoolExecutor(1) as pool:
        stopping = pool.submit(runner.stop, PATIENCE)
        painter.may_finish.set()
        assert stopping.result()
    assert painter.done == [first]
    assert row(db, second).state == 'queued'
    assert not [
        thread for thread in threading.enumerate() if thread.name.startswith('blue-')
    ]


def test_running_work_keeps_its_lease_while_stopping(db, start, painter):
    painter.may_finish.clear()
    runner = start(lease=0.3)
    work_id = ask(db)
    runner.wake(work_id)
    assert painter.begun.wait(PATIENCE)
    runner.drain()
    renewed = threading.Semaphore(0)
    db.on_step = lambda name: name == 'committed' and renewed.release()
    leases = []
    for _ in range(2):
        assert renewed.acquire(timeout=PATIENCE)
        leases.append(row(db, work_id).lease_until)
    assert leases[0] < leases[1]


def test_a_runner_that_never_started_stops(db, painter):
    runner = Runner(db, queues=['blue'], handlers={}, owner='me')
    assert runner.stop(0.0)


def test_a_start_after_the_stop_runs_nothing(db, painter):
    """A slow driver became ready while the process was stopping."""
    runner = Runner(
        db, queues=['blue'], handlers=endpoint_handlers(painter), owner='me'
    )
    runner.stop(0.0)
    ask(db)
    runner.start()
    assert runner.stop(PATIENCE)
    assert painter.done == []


@pytest.mark.parametrize('place', ['statement', 'commit'])
def test_workers_survive_database_errors(db, start, painter, place):
    """Database errors in a worker, in the sweep or in the renewal."""
    failures = iter(range(10))

    def fail(name):
        if name == place and next(failures, None) is not None:
            raise db_exc.DBConnectionError()

    runner = start(sweep_interval=0.01, lease=0.03)
    work_id = ask(db)
    db.on_step = fail
    runner.wake(work_id)
    painter.wait_for(1)
    assert next(failures, None) is None
    assert painter.done == [work_id]


# What a health check asks


def test_a_runner_has_no_problem_between_start_and_stop(start, db, painter):
    runner = Runner(db, queues=['blue'], handlers={}, owner='me')
    assert runner.stall_reason() == 'has not started'
    painter.may_finish.clear()
    runner = start(lease=0.1, sweep_interval=0.01)
    runner.wake(ask(db))
    assert painter.begun.wait(PATIENCE)
    steps = collections.Counter()
    db.on_step = lambda name: steps.update([threading.current_thread().name])
    for name in ('blue-sweep', 'blue-lease'):
        wait_until(lambda name=name: steps[name] > 20, f'{name} works')
    wait_until(lambda: runner.stall_reason() is None, 'it has no problem')
    painter.may_finish.set()
    runner.stop(PATIENCE)
    assert runner.stall_reason() == 'is stopping'


def test_a_runner_knows_that_it_finds_no_work(start, db):
    def fail(name):
        raise db_exc.DBConnectionError()

    runner = start(lease=0.1, sweep_interval=0.01)
    db.on_step = fail
    wait_until(lambda: runner.stall_reason() == 'new work is not found', 'it knows')
    db.on_step = lambda name: None
    wait_until(lambda: runner.stall_reason() is None, 'it works again')


def test_a_runner_knows_that_leases_are_not_renewed(start, db, painter):
    def fail(name):
        if threading.current_thread().name == 'blue-lease':
            raise db_exc.DBConnectionError()

    painter.may_finish.clear()
    runner = start(lease=0.1, sweep_interval=0.01, workers=1)
    runner.wake(ask(db))
    assert painter.begun.wait(PATIENCE)
    db.on_step = fail
    wait_until(lambda: runner.stall_reason() == 'leases are not renewed', 'it knows')
    db.on_step = lambda name: None
    wait_until(lambda: runner.stall_reason() is None, 'it works again')


def test_loops_go_round_while_all_statements_fail(start, db, painter):
    """So a database that is away does not make the watchdog end the process."""
    failed = collections.Counter()

    def fail(name):
        failed[threading.current_thread().name] += 1
        raise db_exc.DBConnectionError()

    painter.may_finish.clear()
    runner = start(lease=0.1, sweep_interval=0.01)
    runner.wake(ask(db))
    assert painter.begun.wait(PATIENCE)
    db.on_step = fail
    for name in ('blue-sweep', 'blue-lease'):
        wait_until(lambda name=name: failed[name] > 5, f'{name} goes round')
    wait_until(lambda: runner.overdue_by() == 0, 'no loop is overdue')
    db.on_step = lambda name: None


@pytest.mark.parametrize('loop', ['blue-sweep', 'blue-lease'])
def test_a_loop_that_hangs_is_overdue(start, db, painter, loop):
    hangs, goes_on = threading.Event(), threading.Event()

    def hang(name):
        if threading.current_thread().name == loop:
            hangs.set()
            assert goes_on.wait(PATIENCE)

    painter.may_finish.clear()  # a call of a driver is not a loop
    runner = start(lease=0.3, sweep_interval=0.01, workers=1)
    runner.wake(ask(db))
    assert painter.begun.wait(PATIENCE)
    wait_until(lambda: runner.overdue_by() == 0, 'no loop is overdue')
    db.on_step = hang
    assert hangs.wait(PATIENCE)
    wait_until(lambda: runner.overdue_by() > 0.5, 'the loop is overdue')
    goes_on.set()
    wait_until(lambda: runner.overdue_by() == 0, 'it goes on')
    painter.may_finish.set()
    runner.stop(PATIENCE)
    assert runner.overdue_by() == 0


@pytest.mark.parametrize('clock', [time.time])
def test_newer_work_that_was_put_off_runs_as_soon_as_it_is_due(db, start, painter):
    """Release 1 puts off what it does not know whenever it finds it due."""
    args = {'instance_id': 'i'}
    plain = submit_work(db, args=args)
    newer = submit_work(db, args=args, needs_release=release.NUMBER)
    db.write(table.postpone, plain, 0.1)
    db.write(table.postpone, newer, 0.5)
    start()
    assert painter.wait_for(1) == [newer]
    assert row(db, plain).state == table.QUEUED
