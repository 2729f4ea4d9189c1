"""Work that is carried out without a claim, or claimed if that fails."""

import pytest

from manila_lite.work import runner as runners
from tests.unit.work.builders import row, submit_work
from tests.unit.work.runner.painting import run_all

pytestmark = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)


@pytest.fixture
def tried(runner):
    """The batches that the shortcut got; it carries out none."""
    batches = []
    runner.shortcut = lambda ids: batches.append(list(ids)) or ()
    return batches


def test_work_that_the_shortcut_leaves_is_claimed(runner, ask, painter, tried):
    work_id = ask()
    run_all(runner)
    assert tried == [[work_id]]
    assert painter.calls == ['prepare', 'widen']


def test_work_that_the_shortcut_has_carried_out_is_not_claimed(
    runner, ask, painter, db
):
    runner.shortcut = lambda ids: ids
    work_id = ask()
    assert runner.step()
    assert painter.calls == []
    assert row(db, work_id).attempt == 0


def test_error_of_the_shortcut_leaves_the_work_to_its_claim(runner, ask, painter):
    def fail(ids):
        raise RuntimeError

    runner.shortcut = fail
    ask()
    run_all(runner)
    assert painter.calls == ['prepare', 'widen']


def test_work_is_tried_once_and_then_claimed_for_good(runner, ask, tried):
    """A claim counts attempts, so that work which ends its process ends."""
    work_id = ask()
    runner._next_batch()  # and the process ends
    assert runner.sweep() == 1
    assert runner._next_batch() == (work_id, False, [])
    assert tried == []


def test_abandoned_work_is_claimed(runner, ask, db, tried):
    work_id = ask()
    run_all(runner)
    runner.wake(work_id, abandoned=True)
    runner.step()
    assert tried == [[work_id]]


def test_hints_that_wait_are_tried_together(runner, db):
    batches = []
    runner.shortcut = lambda ids: batches.append(list(ids)) or ids
    ids = [submit_work(db) for _ in range(runners.MOST_AT_ONCE + 2)]
    for work_id in ids:
        runner.wake(work_id)
    assert runner.step()
    assert runner.step()
    assert batches == [ids[: runners.MOST_AT_ONCE], ids[runners.MOST_AT_ONCE :]]


def test_what_is_left_of_a_batch_is_claimed_one_by_one(runner, db, tried):
    ids = [submit_work(db) for _ in range(3)]
    for work_id in ids:
        runner.wake(work_id)
    for _ in ids:
        assert runner.step()
    assert tried == [ids]
    assert not runner._hints
