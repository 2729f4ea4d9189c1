"""Signals that the kernel delivers to another thread than the main one."""

import subprocess
import sys

import pytest

CHILD = """
import signal
import threading
import time

from manila_lite.cmd import signals

handled = signals.Signals(lambda frame: print('report', flush=True))


def deliver():
    time.sleep(0.2)  # the main thread waits
    for number in ({numbers}):
        signal.pthread_kill(threading.get_ident(), number)
        time.sleep(0.2)


threading.Thread(target=deliver, daemon=True).start()
handled.{wait}
print('stopped', flush=True)
threading.Event().wait()
"""


@pytest.mark.parametrize(
    'numbers, wait, printed, code',
    [
        (
            'signal.SIGHUP, signal.SIGTERM, signal.SIGTERM',
            'wait(lambda: print("reload", flush=True))',
            ['reload', 'stopped'],
            143,
        ),
        (
            'signal.SIGUSR2, signal.SIGINT, signal.SIGINT',
            'wait(print)',
            ['report', 'stopped'],
            130,
        ),
        ('signal.SIGHUP, signal.SIGTERM', 'pause(60)', [], 0),
    ],
)
def test_main_thread_handles_the_signals_of_all(numbers, wait, printed, code):
    ended = subprocess.run(
        [sys.executable, '-c', CHILD.format(numbers=numbers, wait=wait)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.stdout.split(), ended.returncode) == (printed, code)
