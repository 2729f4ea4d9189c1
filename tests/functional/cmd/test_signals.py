"""Signals that the kernel delivers to another thread than the main one."""

import pathlib
import signal
import subprocess
import sys

import pytest

from tests.support.processes import wait_until

CHILD = """
import signal
import sys
import threading

from manila_lite.cmd import running

handled = running.Signals(lambda frame: print('report', flush=True))


def deliver():
    for line in sys.stdin:
        signal.pthread_kill(threading.get_ident(), int(line))


threading.Thread(target=deliver, daemon=True).start()
print('started', flush=True)
handled.{wait}
print('stopped', flush=True)
threading.Event().wait()
"""


def is_waiting(pid):
    """Whether the main thread of a process sleeps."""
    stat = pathlib.Path(f'/proc/{pid}/stat').read_text()
    return stat.rpartition(')')[2].split()[0] == 'S'


@pytest.mark.parametrize(
    'wait, signals, code',
    [
        (
            'wait(lambda: print("reload", flush=True))',
            [
                (signal.SIGHUP, 'reload'),
                (signal.SIGTERM, 'stopped'),
                (signal.SIGTERM, ''),
            ],
            143,
        ),
        (
            'wait(print)',
            [
                (signal.SIGUSR2, 'report'),
                (signal.SIGINT, 'stopped'),
                (signal.SIGINT, ''),
            ],
            130,
        ),
        ('pause(60)', [(signal.SIGHUP, None), (signal.SIGTERM, '')], 0),
    ],
)
def test_main_thread_handles_the_signals_of_all(wait, signals, code):
    with subprocess.Popen(
        [sys.executable, '-c', CHILD.format(wait=wait)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            assert child.stdout.readline() == 'started\n'
            for number, printed in signals:
                wait_until(lambda: is_waiting(child.pid), 'it waits')
                print(int(number), file=child.stdin, flush=True)
                if printed is not None:
                    assert child.stdout.readline().strip() == printed
            assert child.wait(60) == code
        finally:
            child.kill()
