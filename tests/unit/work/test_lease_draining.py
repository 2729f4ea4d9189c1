"""What becomes of running work when its process is to stop."""

import logging
import threading

import pytest

from manila_lite.rpc.contract import Contract, durable, endpoint_handlers, implements
from manila_lite.work import runner as runners, table
from manila_lite.work.job import Settings
from manila_lite.work.runner import Runner
from tests.unit.work.builders import row, submit_work

NEVER = 3600.0
PATIENCE = 20.0

pytestmark = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)


class StepsRpc(Contract):
    topic, version = 'painters', '1.0'

    @durable(repeatable=True)
    def paint(self, ctx, instance_id): ...

    @durable()
    def widen(self, ctx, instance_id): ...


@implements(StepsRpc)
class Steps:
    """Work of two steps, between which it waits for the test."""

    def __init__(self):
        self.step = lambda job: job.require_step()
        self.has_effects = True
        self.begun = threading.Event()
        self.may_go_on = threading.Event()
        self.ended = []

    def paint(self, job, instance_id):
        job.require_step()
        job.has_effects = self.has_effects
        self.begun.set()
        assert self.may_go_on.wait(PATIENCE)
        self.step(job)
        job.finish()
        self.ended.append(job.claim.attempt)

    widen = paint

    def rescue(self, job):
        self.paint(job, job.resource_id)


@pytest.fixture
def steps():
    return Steps()


@pytest.fixture
def new_runner(db, steps):
    """`new_runner(owner)`: a runner that looks for work at its start only."""
    made = []

    def make(owner):
        runner = Runner(
            db,
            queues=['blue'],
            handlers=endpoint_handlers(steps),
            owner=owner,
            rescue=steps.rescue,
            settings=Settings(sweep_interval=NEVER),
        )
        made.append(runner)
        return runner

    yield make
    steps.may_go_on.set()
    for runner in made:
        runner.stop(PATIENCE)


@pytest.fixture
def begin(db, steps, new_runner):
    """`begin(kind)`: work of which one runner has begun the first step."""

    def submit(kind='steps.paint'):
        work_id = submit_work(db, kind=kind, args={'instance_id': 'i'})
        runner = new_runner('one')
        runner.start()
        assert steps.begun.wait(PATIENCE)
        return runner, work_id

    return submit


def go_on(steps, runner):
    """Let the work go on while its process stops."""
    runner.drain()
    steps.may_go_on.set()
    assert runner.stop(PATIENCE)


def test_repeatable_work_is_handed_on_between_its_steps(db, steps, begin, new_runner):
    runner, work_id = begin()
    go_on(steps, runner)
    left = row(db, work_id)
    assert (left.state, left.owner, left.attempt) == ('queued', None, 0)
    other = new_runner('other')
    assert other.step()
    assert steps.ended == [1]
    assert not db.read(table.list_work)


def test_work_that_would_need_a_rescue_ends_here(db, steps, begin):
    runner, _ = begin('steps.widen')
    go_on(steps, runner)
    assert steps.ended == [1]
    assert not db.read(table.list_work)


def test_work_without_effects_is_handed_on(db, steps, begin):
    steps.has_effects = False
    runner, work_id = begin('steps.widen')
    go_on(steps, runner)
    assert steps.ended == []
    assert row(db, work_id).state == 'queued'


def test_an_abandoned_work_is_still_to_be_rescued(db, steps, begin):
    steps.has_effects = False
    work_id = submit_work(db, kind='steps.widen')
    assert db.write(table.claim, work_id, ['blue'], 'dead', -1.0)
    runner, _ = begin('steps.paint')
    runner.drain()
    steps.may_go_on.set()
    assert runner.stop(PATIENCE)
    found = db.read(table.sweep, ['blue'], ['steps.widen'], 9)
    assert found == [(work_id, True)]


def test_a_copy_goes_on_until_the_time_is_up(db, steps, begin):
    begun = threading.Event()

    def copy(job):
        pause = threading.Event()
        while True:
            job.require_time()
            begun.set()
            pause.wait(0.01)

    steps.step = copy
    runner, work_id = begin()
    runner.drain()
    steps.may_go_on.set()
    assert begun.wait(PATIENCE)
    assert row(db, work_id).state == 'running'
    assert runner.stop(0.1)
    assert row(db, work_id).state == 'queued'


def test_a_call_that_does_not_return_is_left_to_its_lease(
    db, steps, begin, monkeypatch
):
    logged = []
    handler = logging.Handler()
    handler.emit = lambda record: logged.append(record.getMessage())
    monkeypatch.setattr(
        logging.getLogger('manila_lite.work.runner'), 'handlers', [handler]
    )
    monkeypatch.setattr(runners, 'HAND_ON_TIME', 0.1)
    runner, work_id = begin()
    assert not runner.stop(0.0)
    assert row(db, work_id).state == 'running'
    (line,) = logged
    assert line.startswith('steps.paint (wall ')
    assert 'when its lease is over, in 30 s at the latest' in line


def test_a_disabled_service_claims_nothing(db, steps, new_runner):
    runner = new_runner('one')
    steps.may_go_on.set()
    runner.set_enabled(False)
    runner.start()
    work_id = submit_work(db, kind='steps.paint', args={'instance_id': ''})
    runner.wake(work_id)
    assert runner.stall_reason() == 'is disabled'
    assert not runner.step()
    assert row(db, work_id).state == 'queued'
    runner.set_enabled(True)
    assert runner.stall_reason() is None
    runner.wake(work_id)
    assert steps.begun.wait(PATIENCE)
