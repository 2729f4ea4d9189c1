"""Calls about replicas to a driver that is slow or hangs."""

import threading

import pytest

from manila_lite import exception
from manila_lite.share.manager.driver_probe import BackendUnresponsive, DriverProbe
from manila_lite.share.manager.replication.probe import (
    ProbeSubject,
    ReplicaProbe,
    ReplicaProbePending,
)

LONG, SHORT = 30.0, 0.4
ONE = ProbeSubject('one', 0, 'state')
OTHER = ProbeSubject('other', 0, 'state')


class Slow:
    """A method that returns when the test allows it."""

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
        """Let it return, and wait until the reply has been stored."""
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


def test_reply_is_returned_unchanged():
    said = patient().ask(ONE, lambda *args: args, 1, 2)
    assert said == ((1, 2), None)


def test_error_is_returned_too():
    said = patient().ask(ONE, raising)
    assert isinstance(said.error, exception.ShareBackendException)


def test_hanging_probe_is_given_up(probe, slow):
    with pytest.raises(ReplicaProbePending) as error:
        probe.ask(ONE, slow)
    assert not error.value.overdue


def test_no_concurrent_calls_about_one_replica(probe, slow):
    for overdue in (False, True, True, True):
        with pytest.raises(ReplicaProbePending) as error:
            probe.ask(ONE, slow)
        assert error.value.overdue is overdue
    assert slow.calls == 1
    assert probe.ask(OTHER, lambda: 'well').value == 'well'


def test_late_reply_counts_for_the_same_subject(probe, slow):
    with pytest.raises(ReplicaProbePending):
        probe.ask(ONE, slow)
    slow.end(probe)
    assert probe.ask(ONE, raising).value == 'in_sync'
    assert probe.ask(ONE, raising).error  # called again


@pytest.mark.parametrize(
    'later', [ONE._replace(generation=1), ONE._replace(what='snapshot')]
)
def test_late_reply_about_another_subject_is_dropped(probe, slow, later):
    with pytest.raises(ReplicaProbePending):
        probe.ask(ONE, slow)
    slow.end(probe)
    assert probe.ask(later, lambda: 'asked').value == 'asked'
    assert probe.ask(ONE, lambda: 'again').value == 'again'


def test_number_of_hanging_calls_is_limited(probe, slow):
    for subject in (ONE, OTHER):
        with pytest.raises(ReplicaProbePending):
            probe.ask(subject, slow)
    third = ProbeSubject('third', 0, 'state')
    for _ in range(2):
        with pytest.raises(BackendUnresponsive):
            probe.ask(third, slow)
    slow.end(probe)
    assert probe.ask(ONE, raising).value == 'in_sync'


def test_on_slow_is_called_once(slow):
    calls = []

    def on_slow():
        calls.append(1)
        slow.may_end.set()

    probe = ReplicaProbe(DriverProbe(LONG, 2))
    assert probe.ask(ONE, slow, on_slow=on_slow).value == 'in_sync'
    assert calls == [1]
    assert probe.ask(ONE, lambda: 'quick', on_slow=on_slow).value == 'quick'
    assert calls == [1]


def losing_the_claim(*args):
    raise exception.ClaimLost(id='work')


def test_call_of_a_worker_without_claim_says_nothing(probe):
    """The replica has not failed; the next worker asks again."""
    for _ in range(2):
        with pytest.raises(exception.ClaimLost):
            probe.ask(ONE, losing_the_claim)
    assert probe.ask(ONE, lambda: 'in_sync').value == 'in_sync'


def test_late_loss_of_a_claim_is_not_returned_to_another_worker(probe):
    slow = Slow()

    def lose_the_claim():
        slow()
        losing_the_claim()

    with pytest.raises(ReplicaProbePending):
        probe.ask(ONE, lose_the_claim)
    slow.end(probe)
    assert probe.ask(ONE, lambda: 'in_sync').value == 'in_sync'
