"""Commands as child processes: start them, wait for them, end them.

A process is only ever ended by its own id. Its output goes to a log file,
for the report of a failed test.
"""

from collections.abc import Callable, Iterator
import contextlib
import os
import pathlib
import resource
import socket
import subprocess
import sys
import threading
import time
import typing

from tests.support import requirements
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
    """Return a loopback port that is given to no other test.

    It stays ours while this process lives, so a service may be restarted on
    it. The system assigns ports from higher numbers to connections.
    """
    for port in _own_ports:
        with socket.socket() as found:
            # Connections that were closed are no hindrance.
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                found.bind(('127.0.0.1', port))
                return port
    raise AssertionError('other test runs have taken all ports')


def _reserve_ports() -> Iterator[int]:
    """Yield ports in blocks; who holds the first of a block has all of it.

    So a run of thousands of tests keeps few sockets open.
    """
    first = os.getpid() % len(_BLOCKS)
    for start in (*_BLOCKS[first:], *_BLOCKS[:first]):
        guard = socket.socket()
        try:
            guard.bind(('127.0.0.1', start))
        except OSError:
            guard.close()
            continue
        _guards.append(guard)
        yield from range(start + 1, start + _BLOCKS.step)


_BLOCKS = range(10000, 32700, 50)
_guards: list[socket.socket] = []
_own_ports = _reserve_ports()


@contextlib.contextmanager
def open_files(number: int) -> Iterator[None]:
    """Allow this process so many; skip the test if the system does not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < number:
        requirements.missing(f'a process may not have {number} files open')
    if soft != resource.RLIM_INFINITY and soft < number:
        resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


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
            assert result or self.is_running, f'{self.name} exited:\n{self.output}'
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
