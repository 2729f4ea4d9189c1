"""How often a check runs, and who waits for it."""

import threading

import pytest

from manila_lite.cmd.build.health import NOT_KNOWN, Throttled
from tests.support.clock import ManualClock
from tests.support.processes import wait_until


class Counted:
    """A check that counts its runs; with `gate`, they wait for it."""

    def __init__(self, reason=None, gate=None):
        self.reason, self.gate, self.runs = reason, gate, 0

    def __call__(self):
        self.runs += 1
        if self.gate is not None:
            assert self.gate.wait(60)
        return self.reason


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def gate():
    """A gate that is closed during the test."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def throttled(clock):
    """`throttled(check)`: at most once in 5 s, after failures in 1 s."""

    def throttled(check, wait=None):
        return Throttled(
            check, 5, 1, patience=60, late='is late', wait=wait, clock=clock
        )

    return throttled


@pytest.mark.parametrize('reason, interval', [(None, 5), ('is bad', 1)])
def test_check_runs_once_per_interval(throttled, clock, reason, interval):
    check = Counted(reason)
    ask = throttled(check)
    for runs in range(1, 4):
        for _ in range(5):
            assert ask() == reason
        assert check.runs == runs
        clock.now += interval


def test_last_answer_holds_while_the_next_check_runs(throttled, clock, gate):
    check = Counted('is bad')
    ask = throttled(check, wait=0.0)
    ask()
    wait_until(lambda: ask() == 'is bad', 'an answer')
    check.gate = gate
    clock.now += 1
    assert ask() == 'is bad'
    clock.now += 59
    assert ask() == 'is bad'
    clock.now += 1
    assert ask() == 'is late'
    check.reason = None
    gate.set()
    wait_until(lambda: not ask.is_running, 'the check ends')
    assert ask() is None
    assert check.runs == 2


def test_check_that_has_never_ended_says_nothing_good(throttled, clock, gate):
    """A process that starts without a broker has not reached one."""
    ask = throttled(Counted(gate=gate), wait=0.0)
    assert ask() is ask() is NOT_KNOWN
    clock.now += 60
    assert ask() == 'is late'
    gate.set()
    wait_until(lambda: ask() is None, 'an answer')


def test_check_that_raises_counts_as_failed(throttled, monkeypatch):
    monkeypatch.setattr(threading, 'excepthook', lambda args: None)

    def fail():
        raise ZeroDivisionError

    assert throttled(fail)() == 'failed'


def test_check_is_repeated_after_a_thread_could_not_start(
    throttled, clock, monkeypatch
):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    check = Counted()
    ask = throttled(check)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, 'start', refuse)
        assert ask() == ask() == 'cannot be checked'
    clock.now += 1
    assert ask() is None
    assert check.runs == 1
