"""Admission control refuses work for queues that are full."""

import pytest

from manila_lite import exception
from manila_lite.work.admission import (
    AdmissionControl,
    admission_controlled,
    placement_controlled,
)
from tests.unit.work.builders import claim, submit_work

PLACEMENTS = 'placements'


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def control(db, clock):
    """`control(limit)` returns an admission control."""

    def make(limit):
        return AdmissionControl(
            db, limit, placement_queue=PLACEMENTS, down_time=60.0, clock=clock
        )

    return make


@pytest.fixture
def statements(db):
    """The SQL statements run since the list was last cleared."""
    executed = []
    db.on_step = executed.append
    return executed


def is_refused(admission):
    try:
        admission.check_placement()
    except exception.ServiceUnavailable:
        return True
    return False


def submit_placement(db):
    return submit_work(db, queue=PLACEMENTS)


def test_placements_are_refused_while_their_queue_is_full(db, clock, control):
    admission = control(2)
    first = submit_placement(db)
    assert not is_refused(admission)
    submit_placement(db)
    clock.now += 1.0
    assert is_refused(admission)
    claim(db, first, queues=(PLACEMENTS,))  # running work is not queued
    clock.now += 1.0
    assert not is_refused(admission)


def test_work_of_other_queues_is_not_counted(db, control):
    for _ in range(3):
        submit_work(db, queue='host@other')
    admission = control(2)
    assert not is_refused(admission)
    admission.check_backend('host@backend#pool')


def test_work_without_a_host_is_not_refused(control):
    control(1).check_backend(None)


@pytest.mark.parametrize('step', [0.0, -5.0], ids=['forward', 'set back'])
def test_queues_are_read_at_most_once_a_second(db, clock, control, statements, step):
    admission = control(1)
    assert not is_refused(admission)
    submit_placement(db)
    statements.clear()
    for _ in range(9):
        clock.now += 0.1
        assert not is_refused(admission)
    assert statements == []
    clock.now += 0.2 + step
    assert [is_refused(admission) for _ in range(5)] == [True] * 5
    assert statements == ['statement']


def test_queues_that_take_long_to_read_are_read_less_often(
    db, clock, control, statements
):
    """They are full, and the database has enough to do."""

    def slow(name):
        statements.append(name)
        clock.now += 0.5

    db.on_step = slow
    admission = control(1)
    assert not is_refused(admission)
    clock.now += 9.0
    assert not is_refused(admission)
    assert statements == ['statement']
    clock.now += 1.0
    assert not is_refused(admission)
    assert statements == ['statement'] * 2


def test_without_a_limit_the_queues_are_never_read(control, statements):
    admission = control(0)
    assert not is_refused(admission)
    admission.check_backend('host@backend')
    assert statements == []


class Target:
    host = 'host@backend#pool'


def test_controlled_method_does_not_run_when_refused(db, clock, control):
    class Operations:
        admission = control(1)
        accepted = 0

        @placement_controlled
        def place(self, count, *, times=1):
            """Take on some more."""
            self.accepted += count * times
            return self.accepted

        @admission_controlled
        def act(self, ctx, target, count):
            """Do more."""
            self.accepted += count

        @admission_controlled
        def allow(self, ctx, share, *, target):
            return target

    operations = Operations()
    assert operations.place(2, times=3) == 6
    submit_placement(db)
    clock.now += 1.0
    with pytest.raises(exception.ServiceUnavailable):
        operations.place(1)
    operations.act(None, Target(), 1)
    assert operations.accepted == 7
    assert operations.allow(None, Target(), target='10.0.0.1') == '10.0.0.1'
    assert Operations.place.__doc__ == 'Take on some more.'
    assert Operations.act.__doc__ == 'Do more.'
