"""Admission control refuses work while the queue is full."""

import pytest

from manila_lite import exception
from manila_lite.work.admission import AdmissionControl
from manila_lite.work.admission import admission_controlled
from tests.unit.work.builders import claim
from tests.unit.work.builders import submit_work


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def statements(db):
    """The SQL statements run since the list was last cleared."""
    executed = []
    db.on_step = executed.append
    return executed


def is_refused(admission):
    try:
        admission.check()
    except exception.ServiceUnavailable:
        return True
    return False


def test_work_is_refused_while_the_queue_is_full(db, clock):
    admission = AdmissionControl(db, 2, clock=clock)
    first = submit_work(db)
    assert not is_refused(admission)
    submit_work(db)
    clock.now += 1.0
    assert is_refused(admission)
    claim(db, first)  # running work is not queued
    clock.now += 1.0
    assert not is_refused(admission)


def test_the_queue_is_checked_at_most_once_a_second(db, clock, statements):
    admission = AdmissionControl(db, 1, clock=clock)
    assert not is_refused(admission)
    submit_work(db)
    statements.clear()
    for _ in range(9):
        clock.now += 0.1
        assert not is_refused(admission)
    assert statements == []
    clock.now += 0.2
    assert [is_refused(admission) for _ in range(5)] == [True] * 5
    assert statements == ['statement']


def test_without_a_limit_the_queue_is_never_checked(db, statements):
    assert not is_refused(AdmissionControl(db, 0))
    assert statements == []


def test_a_controlled_method_does_not_run_when_refused(db, clock):
    class Operations:
        admission = AdmissionControl(db, 1, clock=clock)
        accepted = 0

        @admission_controlled
        def accept(self, count, *, times=1):
            """Take on some more."""
            self.accepted += count * times
            return self.accepted

    operations = Operations()
    assert operations.accept(2, times=3) == 6
    submit_work(db)
    clock.now += 1.0
    with pytest.raises(exception.ServiceUnavailable):
        operations.accept(1)
    assert operations.accepted == 6
    assert Operations.accept.__doc__ == 'Take on some more.'
