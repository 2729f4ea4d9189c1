"""Whether a daemon answers, with daemons that this test plays itself."""

import contextlib
import socket

import pytest

from manila_lite.share.drivers.btrfs.daemons import probes
from manila_lite.share.drivers.btrfs.daemons.probes import Probe

REPLY = b'\x80\0\0\x18mani\0\0\0\1' + bytes(16)


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Server:
    """A port that is listened on, and a probe that calls it."""

    def __init__(self, listening):
        self.listening = listening
        self.port = listening.getsockname()[1]
        self.clock = Clock()
        self.probe = Probe(probes.nfs(self.port), clock=self.clock)
        self.connections = []

    def ask(self, seconds=1.0):
        """Let a round pass."""
        self.probe.ask()
        self.clock.now += seconds

    def accept(self):
        self.connections.append(self.listening.accept()[0])

    def reply(self):
        """Reply to a call on the last connection, once it is there."""
        assert len(self.connections[-1].recv(100)) == 44
        # What is sent within a machine has arrived when this returns.
        self.connections[-1].sendall(REPLY)

    def close(self):
        for one in self.connections:
            one.close()


@pytest.fixture
def server():
    with contextlib.closing(socket.create_server(('127.0.0.1', 0))) as listening:
        listening.settimeout(60)
        server = Server(listening)
        yield server
        server.probe.reset()
        server.close()


@pytest.fixture
def answered(server):
    """Let the server reply to the first call."""
    server.ask()
    server.accept()
    server.reply()
    server.ask()
    assert server.probe.has_reply
    return server


def test_server_is_silent_after_five_seconds_without_a_reply(answered):
    heard = answered.clock.now - 1
    while not answered.probe.silent_for() >= probes.SILENCE:
        assert answered.clock.now - heard < probes.SILENCE + 1
        answered.ask(0.5)
    assert answered.clock.now - heard >= probes.SILENCE


def test_late_reply_counts(answered):
    """A busy server is slow; it is not replaced."""
    for _ in range(3):
        while answered.probe.silent_for() < probes.SILENCE - 1:
            answered.ask(0.5)
        answered.reply()
        answered.ask(0.5)
        assert answered.probe.silent_for() == 0
        assert not answered.probe.is_waiting


def test_answered_connection_is_used_again(answered):
    """A server whose clients have all its files open accepts no other."""
    for _ in range(20):
        answered.reply()
        answered.ask()
        assert answered.probe.silent_for() == 0
    answered.listening.setblocking(False)
    with pytest.raises(BlockingIOError):
        answered.accept()


def test_server_that_lets_a_connection_hang_is_called_on_another(answered):
    answered.ask()
    answered.ask()
    answered.accept()
    answered.reply()
    answered.ask()
    assert not answered.probe.is_waiting


def test_time_without_calls_is_not_silence(answered):
    """The machine was suspended, or the supervisor stopped."""
    for _ in range(probes.CALLS):
        answered.clock.now += 1000
        assert answered.probe.silent_for() < probes.SILENCE
        answered.probe.ask()


def test_time_of_an_earlier_supervisor_counts(server):
    """It has hung together with the server."""
    server.probe = Probe(probes.nfs(server.port), 4.0, server.clock)
    for _ in range(probes.CALLS + 1):
        assert server.probe.silent_for() == 0
        server.ask(0.5)
    assert server.probe.silent_for() >= probes.SILENCE


def test_closed_port_is_silence(answered):
    answered.listening.close()
    answered.close()
    for _ in range(8):
        answered.ask()
    assert answered.probe.silent_for() >= probes.SILENCE


def test_other_reply_is_none(server):
    server.ask()
    server.accept()
    server.connections[-1].sendall(b'\0' * 28)
    server.ask()
    server.ask()
    assert not server.probe.has_reply


@pytest.mark.parametrize('question', [
    probes.smb('192.0.2.1', 445),
    probes.nfs(2049)._replace(namespace='/dev/null/missing'),
    probes.nfs(2049)._replace(namespace='/dev/null'),
], ids=['address', 'missing', 'unmounted'])  # fmt: skip
def test_daemon_that_cannot_be_called_is_not_silent(question):
    """Its address has moved, or its network is to be created again."""
    clock = Clock()
    probe = Probe(question, clock=clock)
    for _ in range(20):
        clock.now += 1
        probe.ask()
        assert probe.silent_for() == 0
        assert not probe.is_waiting


def test_calls_do_not_pile_up(answered):
    """The loop of the supervisor also goes on when something else happens."""
    for _ in range(20):
        answered.probe.ask()
    answered.accept()
    answered.listening.setblocking(False)
    with pytest.raises(BlockingIOError):
        answered.accept()
