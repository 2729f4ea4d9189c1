"""Questions about replicas to a driver that is slow, or hangs."""

import threading

import pytest

from manila_lite import exception
from manila_lite.share.manager.driver_probe import BackendUnresponsive
from manila_lite.share.manager.driver_probe import DriverProbe
from manila_lite.share.manager.replication.probe import ProbeSubject
from manila_lite.share.manager.replication.probe import ReplicaProbe
from manila_lite.share.manager.replication.probe import ReplicaProbePending

LONG, SHORT = 30.0, 0.4
ONE = ProbeSubject('one', 0, 'state')
OTHER = ProbeSubject('other', 0, 'state')


class Slow:
    """A method that answers when it is told to."""

    def __init__(self, answer='in_sync'):
        self.answer = answer
        self.calls = 0
        self.may_end = threading.Event()
        self.has_ended = threading.Event()

    def __call__(self, *args):
        self.calls += 1
        self.may_end.wait()
        return self.answer

    def end(self, probe, subject=ONE):
        """Have it answer, and wait until that is known."""
        self.may_end.set()
        call = probe._calls[subject.replica_id]
        while call.reply is None:
            threading.Event().wait(0.001)


@pytest.fixture
def slow():
    slow = Slow()
    yield slow
    slow.may_end.set()


@pytest.fixture
def probe():
    return ReplicaProbe(DriverProbe(SHORT, 2))


def raising(*args):
    raise exception.ShareBackendException(msg='it is on fire')


def patient():
    return ReplicaProbe(DriverProbe(LONG, 2))


def test_an_answer_is_told_as_it_is():
    said = patient().ask(ONE, lambda *args: args, 1, 2)
    assert said == ((1, 2), None)


def test_an_error_is_told_too():
    said = patient().ask(ONE, raising)
    assert isinstance(said.error, exception.ShareBackendException)


def test_a_question_that_hangs_is_given_up(probe, slow):
    with pytest.raises(ReplicaProbePending) as error:
        probe.ask(ONE, slow)
    assert not error.value.overdue


def test_a_replica_is_not_asked_about_twice_at_a_time(probe, slow):
    for overdue in (False, True, True, True):
        with pytest.raises(ReplicaProbePending) as error:
            probe.ask(ONE, slow)
        assert error.value.overdue is overdue
    assert slow.calls == 1
    assert probe.ask(OTHER, lambda: 'well').value == 'well'


def test_a_late_answer_counts_for_the_same_question(probe, slow):
    with pytest.raises(ReplicaProbePending):
        probe.ask(ONE, slow)
    slow.end(probe)
    assert probe.ask(ONE, raising).value == 'in_sync'
    assert probe.ask(ONE, raising).error  # asked anew


@pytest.mark.parametrize(
    'later', [ONE._replace(generation=1), ONE._replace(what='snapshot')]
)
def test_a_late_answer_to_another_question_is_dropped(probe, slow, later):
    with pytest.raises(ReplicaProbePending):
        probe.ask(ONE, slow)
    slow.end(probe)
    assert probe.ask(later, lambda: 'asked').value == 'asked'
    assert probe.ask(ONE, lambda: 'anew').value == 'anew'


def test_so_many_may_hang_and_no_more_are_asked(probe, slow):
    for subject in (ONE, OTHER):
        with pytest.raises(ReplicaProbePending):
            probe.ask(subject, slow)
    third = ProbeSubject('third', 0, 'state')
    for _ in range(2):
        with pytest.raises(BackendUnresponsive):
            probe.ask(third, slow)
    slow.end(probe)
    assert probe.ask(ONE, raising).value == 'in_sync'


def test_who_is_kept_waiting_is_told_once(slow):
    told = []

    def on_slow():
        told.append(1)
        slow.may_end.set()

    probe = ReplicaProbe(DriverProbe(LONG, 2))
    assert probe.ask(ONE, slow, on_slow=on_slow).value == 'in_sync'
    assert told == [1]
    assert probe.ask(ONE, lambda: 'quick', on_slow=on_slow).value == 'quick'
    assert told == [1]
