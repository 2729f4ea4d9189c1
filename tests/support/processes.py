"""Commands as child processes: start them, wait for them, end them.

A process is only ever ended by its own id. Its output goes to a log file,
for the report of a failed test.
"""

from collections.abc import Callable
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time
import typing

from tests.support.forked import ForkedProcess

BINARIES = pathlib.Path(sys.executable).parent

Result = typing.TypeVar('Result')


def wait_until(
    check: Callable[[], Result],
    what: str,
    timeout: float = 60.0,
    interval: float = 0.05,
) -> Result:
    """Repeat a check until its result is true; return that result."""
    deadline = time.monotonic() + timeout
    pause = threading.Event()
    while not (result := check()):
        if time.monotonic() > deadline:
            raise AssertionError(f'not true within {timeout:g} s: {what}')
        pause.wait(interval)
    return result


def free_port() -> int:
    """Reserve a loopback port and return its number.

    It stays reserved while this process lives: the system assigns it to no
    connection and no other listener while the service that uses it starts,
    or restarts. A listener that binds to it by number gets it.
    """
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(('127.0.0.1', 0))
    _reserved.append(reserved)
    return reserved.getsockname()[1]


_reserved: list[socket.socket] = []


class Command:
    """One of our commands, running since it was created.

    It is the installed script, or forked, which starts faster. A forked one
    calls `enter` first, which may be pickled.
    """

    def __init__(
        self,
        name: str,
        *args: object,
        log: pathlib.Path,
        concurrency: str = 'threading',
        forked: bool = False,
        enter: Callable[[], None] | None = None,
    ):
        self.name = name
        self.log = log
        words = [str(arg) for arg in args]
        env = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(('MANILA_LITE_', 'OS_'))
        }
        log.touch()
        if forked:
            assert concurrency == 'threading'
            self._process = ForkedProcess(name, words, log, env, enter)
            return
        assert enter is None
        with log.open('ab') as output:
            self._process = subprocess.Popen(
                [BINARIES / name, *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**env, 'MANILA_LITE_CONCURRENCY': concurrency},
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> str:
        """Everything that commands with this log have printed."""
        return self.log.read_text(errors='replace')

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait_for(
        self, ready: Callable[[], Result], what: str, timeout: float = 60.0
    ) -> Result:
        """Wait for a true result; fail at once when the command ends."""

        def check() -> Result:
            result = ready()
            assert result or self.is_running, (
                f'{self.name} exited:\n{self.output}'
            )
            return result

        return wait_until(check, f'{self.name}: {what}', timeout)

    def wait_for_exit(self, timeout: float = 60.0) -> int:
        """Wait for the process to end and return its exit code."""
        return self._process.wait(timeout)

    def terminate(self) -> None:
        self._process.terminate()

    def stop(self, timeout: float = 60.0) -> float:
        """Stop with SIGTERM; return the seconds, fail on an exit code."""
        began = time.monotonic()
        self.terminate()
        code = self.wait_for_exit(timeout)
        assert code == 0, f'{self.name} exited with {code}:\n{self.output}'
        return time.monotonic() - began

    def kill(self) -> None:
        """Kill the process; do nothing when it has ended."""
        self._process.kill()
        self._process.wait()
