"""Work that waits for its resource is tried in its turn.

The second worker is the first one inside of its job: it tries all that is known.
"""

import collections

import pytest
import sqlalchemy as sa

from manila_lite.rpc.contract import Contract, durable, endpoint_handlers, implements
from manila_lite.work import table
from manila_lite.work.runner import Runner
from tests.unit.work.builders import submit_work
from tests.unit.work.runner.painting import run_all

NUMBER = 50

pytestmark = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)


class PaintingRpc(Contract):
    topic, version = 'painters', '1.0'

    @durable(repeatable=True)
    def paint(self, ctx, instance_id): ...


@implements(PaintingRpc)
class Painter:
    def __init__(self):
        self.meanwhile = lambda: None
        self.done = []

    def paint(self, job, instance_id):
        self.meanwhile()
        job.finish()
        self.done.append(job.id)


@pytest.fixture
def painter():
    return Painter()


@pytest.fixture
def runner(db, painter):
    runner = Runner(
        db, queues=['blue'], handlers=endpoint_handlers(painter), owner='me'
    )
    painter.meanwhile = lambda: run_all(runner)
    return runner


@pytest.fixture
def refused(monkeypatch):
    """How often each piece of work was refused, by its id."""
    counts = collections.Counter()
    claim = table.claim

    def count(session, work_id, *args, **kwargs):
        try:
            return claim(session, work_id, *args, **kwargs)
        except table.ResourceBusy:
            counts[work_id] += 1
            raise

    monkeypatch.setattr(table, 'claim', count)
    return counts


def ask(db, runner, count):
    """Submit work on one resource, with hints; return the ids."""
    ids = [
        submit_work(db, args={'instance_id': 'i'}, resource_id='w')
        for _ in range(count)
    ]
    for work_id in ids:
        runner.wake(work_id)
    return ids


def test_each_is_refused_once_and_runs_in_its_turn(db, runner, painter, refused):
    ids = ask(db, runner, NUMBER)
    while runner._hints:
        assert runner.step()
    assert painter.done == ids
    assert refused == dict.fromkeys(ids[1:], 1)


def test_work_behind_what_was_withdrawn_runs(db, runner, painter, refused):
    first, withdrawn, last = ask(db, runner, 3)

    def withdraw():
        run_all(runner)
        db.write(
            lambda session: session.run(
                sa.delete(table.WORK).where(table.WORK.c.id == withdrawn)
            )
        )

    painter.meanwhile = withdraw
    while runner._hints:
        assert runner.step()
    assert painter.done == [first, last]
    assert refused == {withdrawn: 1, last: 1}


def test_sweep_finds_what_waits_if_the_process_ends(db, runner, painter, refused):
    ids = ask(db, runner, 3)
    assert runner.step()
    runner._hints.clear()
    runner._queued_ids.clear()
    run_all(runner)
    assert painter.done == ids
