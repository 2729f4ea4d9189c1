"""The brake refuses while the queue is full, and looks once a second."""

import pytest

from manila_lite import exception
from manila_lite.work.admission import AdmissionControl
from manila_lite.work.admission import admission_controlled
from tests.unit.work.builders import claim
from tests.unit.work.builders import put


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def looks(db):
    """One entry for every statement since the last look here."""
    seen = []
    db.on_step = seen.append
    return seen


def is_refused(admission):
    try:
        admission.check()
    except exception.ServiceUnavailable:
        return True
    return False


def test_it_refuses_while_too_much_waits(db, clock):
    admission = AdmissionControl(db, 2, clock=clock)
    first = put(db)
    assert not is_refused(admission)
    put(db)
    clock.now += 1.0
    assert is_refused(admission)
    claim(db, first)  # what is being carried out does not wait
    clock.now += 1.0
    assert not is_refused(admission)


def test_it_looks_at_most_once_a_second(db, clock, looks):
    admission = AdmissionControl(db, 1, clock=clock)
    assert not is_refused(admission)
    put(db)
    looks.clear()
    for _ in range(9):
        clock.now += 0.1
        assert not is_refused(admission)
    assert looks == []
    clock.now += 0.2
    assert [is_refused(admission) for _ in range(5)] == [True] * 5
    assert looks == ['statement']


def test_without_a_limit_it_never_looks(db, looks):
    assert not is_refused(AdmissionControl(db, 0))
    assert looks == []


def test_a_braked_method_is_not_begun(db, clock):
    class Office:
        admission = AdmissionControl(db, 1, clock=clock)
        accepted = 0

        @admission_controlled
        def accept(self, count, *, times=1):
            """Take on some more."""
            self.accepted += count * times
            return self.accepted

    office = Office()
    assert office.accept(2, times=3) == 6
    put(db)
    clock.now += 1.0
    with pytest.raises(exception.ServiceUnavailable):
        office.accept(1)
    assert office.accepted == 6
    assert Office.accept.__doc__ == 'Take on some more.'
