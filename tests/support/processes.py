"""Commands as child processes: started, waited for, always ended again.

A process is only ever ended by its own id. What it prints goes to a file,
which `logs` gives to whoever reports a failed test.
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

BINARIES = pathlib.Path(sys.executable).parent

Found = typing.TypeVar('Found')


def wait_until(
    check: Callable[[], Found],
    what: str,
    timeout: float = 60.0,
    every: float = 0.05,
) -> Found:
    """The first true answer of a check, asked again and again."""
    deadline = time.monotonic() + timeout
    between = threading.Event()
    while not (found := check()):
        if time.monotonic() > deadline:
            raise AssertionError(f'not within {timeout:g} s: {what}')
        between.wait(every)
    return found


def free_port() -> int:
    """A port of loopback that nobody listens on, nor will but the caller.

    It stays reserved for as long as this process lives: the system gives it
    to no connection and no other listener while a service that is to have
    it starts, or starts again. Whoever asks for it by number gets it.
    """
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(('127.0.0.1', 0))
    _reserved.append(reserved)
    return reserved.getsockname()[1]


_reserved: list[socket.socket] = []


class Command:
    """One command of ours, running from the moment it is made."""

    def __init__(
        self,
        name: str,
        *args: object,
        log: pathlib.Path,
        concurrency: str = 'threading',
        stdin: str = '',
    ):
        self.name = name
        self.log = log
        env = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(('MANILA_LITE_', 'OS_'))
        }
        with log.open('ab') as output:
            self._process = subprocess.Popen(
                [BINARIES / name, *map(str, args)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**env, 'MANILA_LITE_CONCURRENCY': concurrency},
            )
        with self._process.stdin as writing:
            writing.write(stdin.encode())

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> str:
        """All that commands with this log have printed."""
        return self.log.read_text(errors='replace')

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait_for(
        self, ready: Callable[[], Found], what: str, timeout: float = 60.0
    ) -> Found:
        """The first true answer; fails at once when the command ends."""

        def check() -> Found:
            found = ready()
            assert found or self.is_running, (
                f'{self.name} ended:\n{self.output}'
            )
            return found

        return wait_until(check, f'{self.name}: {what}', timeout)

    def wait_for_exit(self, timeout: float = 60.0) -> int:
        """The exit code, once there is one."""
        return self._process.wait(timeout)

    def terminate(self) -> None:
        self._process.terminate()

    def stop(self, timeout: float = 60.0) -> float:
        """Seconds that SIGTERM took; fails when it did not end well."""
        began = time.monotonic()
        self.terminate()
        code = self.wait_for_exit(timeout)
        assert code == 0, f'{self.name} ended with {code}:\n{self.output}'
        return time.monotonic() - began

    def kill(self) -> None:
        """End it as a power cut does; nothing when it has ended."""
        self._process.kill()
        self._process.wait()
