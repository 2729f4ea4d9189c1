"""Which processes have hung, by their messages."""

import os

import pytest

from manila_lite.cmd.watchdog import Children, Receiver

SECONDS = 8.0
OWN = os.getpid()


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def children(clock, monkeypatch):
    """What hears this process as if it was a child."""
    monkeypatch.delenv('NOTIFY_SOCKET', raising=False)
    made = Children(SECONDS, clock)
    yield made
    made._socket.close()


@pytest.fixture
def receiver(children):
    address = children._socket.getsockname()
    return Receiver('@' + address[1:].decode(), SECONDS)


def look_after(children, clock, seconds):
    """Look four times within the seconds, as the parent does."""
    found = []
    for _ in range(4):
        clock.now += seconds / 4
        found += children.find_hung()
    return found


def test_process_that_has_never_reported_has_not_hung(children, clock):
    assert look_after(children, clock, SECONDS) == []


def test_process_that_reports_no_more_has_hung(children, clock, receiver):
    receiver.send()
    assert look_after(children, clock, SECONDS) == []
    assert look_after(children, clock, SECONDS) == [OWN]


def test_process_that_hangs_on_is_found_again(children, clock, receiver):
    receiver.send()
    assert look_after(children, clock, 2 * SECONDS) == [OWN]
    assert look_after(children, clock, 2 * SECONDS) == [OWN]


def test_process_that_reports_has_not_hung(children, clock, receiver):
    for _ in range(20):
        receiver.send()
        assert look_after(children, clock, SECONDS) == []


def test_process_that_has_ended_has_not_hung(children, clock, receiver):
    receiver.send()
    look_after(children, clock, 1)
    children.forget(OWN)
    assert look_after(children, clock, 2 * SECONDS) == []


def test_sender_does_not_wait_for_a_receiver_that_is_busy_or_gone(children, receiver):
    for _ in range(1000):
        receiver.send()
    children._socket.close()
    receiver.send()


def test_none_has_hung_while_the_parent_did_not_run(children, clock, receiver):
    """The machine was paused, and all its processes."""
    receiver.send()
    look_after(children, clock, 1)
    clock.now += 1000
    assert children.find_hung() == set()
    assert look_after(children, clock, SECONDS) == []
