"""What systemd hears of a process that has started."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading

import pytest

from manila_lite.cmd.running import Watchdog
from manila_lite.cmd.watchdog import Receiver
from manila_lite.db.session import Database
from manila_lite.work.job import Settings
from manila_lite.work.runner import Runner
from tests.support.processes import free_port, wait_until

COMMAND = pathlib.Path(sys.executable).with_name('manila-lite')
TIMEOUT = 60


@pytest.fixture
def systemd(tmp_path):
    """The socket on which systemd hears its services."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / 'notify'))
        receiver.settimeout(TIMEOUT)
        yield receiver


def hear(systemd):
    return systemd.recv(100)


def forget(systemd):
    """Forget what was sent until now; return how many messages it was."""
    systemd.setblocking(False)
    count = 0
    try:
        while hear(systemd):
            count += 1
    except BlockingIOError:
        return count
    finally:
        systemd.settimeout(TIMEOUT)


def test_process_reports_as_often_as_its_unit_wants(systemd, tmp_path):
    """Ended by SIGABRT, as when it reports no more, it says what its threads do."""
    with subprocess.Popen(
        [
            *(COMMAND, 'serve', '--state-dir', tmp_path / 'state'),
            *('--port', str(free_port())),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ
        | {'NOTIFY_SOCKET': systemd.getsockname(), 'WATCHDOG_USEC': '400000'},
    ) as process:
        try:
            while hear(systemd) != b'READY=1':
                pass
            heard = [hear(systemd) for _ in range(3)]
        finally:
            process.send_signal(signal.SIGABRT)
        _, said = process.communicate()
    assert heard == [b'WATCHDOG=1'] * 3
    assert process.returncode == -signal.SIGABRT
    assert 'in _sweep_forever' in said


@pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)
def test_nothing_is_reported_while_a_loop_hangs(systemd, database_url, caplog):
    db = Database(database_url)
    hangs, goes_on = threading.Event(), threading.Event()

    def hang(name):
        if threading.current_thread().name == 'blue-sweep':
            hangs.set()
            assert goes_on.wait(TIMEOUT)

    runner = Runner(
        db,
        queues=['blue'],
        handlers={},
        owner='me',
        settings=Settings(sweep_interval=0.01),
    )
    runner.start()
    watchdog = Watchdog([runner], Receiver(systemd.getsockname(), seconds=0.2))
    watchdog.start()
    assert hear(systemd) == b'WATCHDOG=1'
    db.on_step = hang
    assert hangs.wait(TIMEOUT)
    wait_until(lambda: 'has hung' in caplog.text, 'it is noticed')
    forget(systemd)
    caplog.clear()
    wait_until(lambda: 'has hung' in caplog.text, 'it is noticed again')
    assert forget(systemd) == 0
    goes_on.set()
    assert hear(systemd) == b'WATCHDOG=1'
    runner.stop(TIMEOUT)
    watchdog.stop(TIMEOUT)
    db.dispose()
