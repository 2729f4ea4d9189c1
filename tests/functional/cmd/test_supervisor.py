"""Processes that one parent forks, restarts and stops."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys

import pytest

from tests.support.processes import wait_until

CHILD = """
import os
import signal
import sys
import threading

from manila_lite.cmd import supervisor, watchdog

supervisor.RESTART_PAUSE = float(os.environ.get('PAUSE', 0.05))


def say(*words):
    # At once: all processes write to one file.
    os.write(1, (' '.join(map(str, words)) + chr(10)).encode())


def report(receiver):
    hangs = threading.Event()
    signal.signal(signal.SIGUSR1, lambda number, frame: hangs.set())
    threading.Thread(target=send, args=[receiver, hangs], daemon=True).start()


def send(receiver, hangs):
    receiver.send()
    say('reported', os.getpid())
    while not hangs.wait(receiver.interval):
        receiver.send()


def serve(code, on_ready):
    wanted = threading.Event()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, frame: received(number))

    def received(number):
        say(number, os.getpid())
        if number == signal.SIGTERM:
            raise SystemExit(code)

    if receiver := watchdog.Receiver.from_environment():
        report(receiver)
    supervisor.receive_all()
    say('serves', os.getpid())
    on_ready()
    while True:
        signal.pause()


def service(code):
    return lambda on_ready: serve(code, on_ready)


codes = [int(one) for one in sys.argv[1:]]
found = supervisor.Supervisor(
    ((f'one {place}', service(code)) for place, code in enumerate(codes)),
    on_ready=lambda: say('ready'),
    on_stop=lambda: say('stops'),
)
sys.exit(0 if found.run() else 1)
"""


class Parent:
    """The parent; `lines` are those that it and its processes print."""

    def __init__(self, folder: pathlib.Path, *codes: int, **env: str):
        self._log = folder / 'log'
        with self._log.open('wb') as log:
            self.process = subprocess.Popen(
                [sys.executable, '-c', CHILD, *map(str, codes)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | env,
            )

    def wait_for(self, first: str, number: int) -> list[int]:
        """Wait for a number of lines; return the processes they name."""

        def found() -> list[int]:
            lines = [line.split() for line in self._log.read_text().splitlines()]
            return [int(line[-1]) for line in lines if line[0] == first]

        return wait_until(
            lambda: len(pids := found()) >= number and pids,
            f'{number} lines with {first}',
        )

    def count(self, line: str) -> int:
        return self._log.read_text().splitlines().count(line)

    def wait_until_ready(self) -> None:
        wait_until(lambda: self.count('ready'), 'all are ready')


@pytest.fixture
def start(tmp_path):
    """`start(*codes, **env)`: a parent of services that exit with these codes."""
    with contextlib.ExitStack() as stack:

        def run(*codes: int, **env: str) -> Parent:
            parent = Parent(tmp_path, *codes, **env)
            stack.callback(parent.process.wait)
            stack.callback(parent.process.kill)
            return parent

        yield run


def exists(pid: int) -> bool:
    """Whether a process runs; one that is not waited for does not."""
    with contextlib.suppress(OSError):
        stat = pathlib.Path(f'/proc/{pid}/stat').read_text()
        return stat.rpartition(')')[2].split()[0] != 'Z'
    return False


def test_all_are_stopped_by_the_signal_and_once(start):
    parent = start(0, 0)
    pids = parent.wait_for('serves', 2)
    parent.wait_until_ready()
    parent.process.terminate()
    assert parent.process.wait(30) == 0
    assert sorted(parent.wait_for(str(signal.SIGTERM.value), 2)) == sorted(pids)
    assert parent.count('stops') == parent.count('ready') == 1


def test_a_process_that_fails_to_stop_is_an_error(start):
    parent = start(0, 3)
    parent.wait_for('serves', 2)
    parent.process.terminate()
    assert parent.process.wait(30) == 1


def test_a_process_that_ends_is_started_again(start):
    parent = start(0, 0)
    first, second = parent.wait_for('serves', 2)
    os.kill(first, signal.SIGKILL)
    *_, third = parent.wait_for('serves', 3)
    assert exists(third)
    assert exists(second)
    parent.process.terminate()
    assert parent.process.wait(30) == 0


def test_none_outlives_a_parent_that_is_killed(start):
    parent = start(0, 0)
    pids = parent.wait_for('serves', 2)
    parent.process.kill()
    wait_until(lambda: not any(exists(pid) for pid in pids), 'processes have ended')


def test_reload_is_passed_on(start):
    parent = start(0, 0)
    pids = parent.wait_for('serves', 2)
    parent.process.send_signal(signal.SIGHUP)
    received = parent.wait_for(str(signal.SIGHUP.value), 2)
    assert sorted(received) == sorted(pids)
    assert parent.process.poll() is None


def test_processes_have_the_names_of_their_services(start):
    parent = start(0, 0)
    assert sorted(
        pathlib.Path(f'/proc/{pid}/comm').read_text().strip()
        for pid in parent.wait_for('serves', 2)
    ) == ['one 0', 'one 1']


# The watchdog of systemd

SECONDS = 3.0


@pytest.fixture
def systemd(tmp_path):
    """The socket on which systemd hears its services."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / 'notify'))
        receiver.settimeout(30)
        yield receiver


@pytest.fixture
def start_watched(start, systemd):
    """Start two services, which systemd expects to report."""

    def run(**env):
        return start(
            *(0, 0),
            NOTIFY_SOCKET=systemd.getsockname(),
            WATCHDOG_USEC=str(int(SECONDS * 1e6)),
            **env,
        )

    return run


def is_silent(systemd, seconds):
    """Whether nothing is sent for so long, after what has been sent."""
    systemd.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while systemd.recv(100):
            pass
    systemd.settimeout(seconds)
    try:
        systemd.recv(100)
    except TimeoutError:
        return True
    finally:
        systemd.settimeout(30)
    return False


def test_parent_reports_while_all_are_alive(start_watched, systemd):
    parent = start_watched()
    parent.wait_for('serves', 2)
    assert [systemd.recv(100) for _ in range(5)] == [b'WATCHDOG=1'] * 5
    parent.process.terminate()
    assert parent.process.wait(30) == 0


def test_parent_reports_while_a_process_waits_to_be_started(start_watched, systemd):
    parent = start_watched(PAUSE='3600')
    first, _ = parent.wait_for('serves', 2)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: not exists(first), 'it has ended')
    assert not is_silent(systemd, SECONDS)


def test_parent_that_hangs_does_not_report(start_watched, systemd):
    parent = start_watched()
    parent.wait_for('serves', 2)
    parent.process.send_signal(signal.SIGSTOP)
    try:
        wait_until(lambda: is_silent(systemd, SECONDS), 'the parent reports no more')
    finally:
        parent.process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize('stopped', [True, False])
def test_process_that_hangs_is_started_again(start_watched, systemd, stopped):
    """What is stopped does not handle SIGABRT."""
    parent = start_watched()
    first, second = parent.wait_for('reported', 2)
    os.kill(first, signal.SIGSTOP if stopped else signal.SIGUSR1)
    *_, third = parent.wait_for('serves', 3)
    assert exists(third)
    assert exists(second)
    assert not exists(first)
    assert systemd.recv(100) == b'WATCHDOG=1'
    parent.process.terminate()
    assert parent.process.wait(30) == 0
