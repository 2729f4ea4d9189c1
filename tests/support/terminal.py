"""A terminal of a machine that is a network namespace."""

import os
import pathlib
import shlex
import signal
import subprocess
import uuid

from tests.support.processes import wait_until

TIMEOUT = 240.0
"""Seconds for a line; commands that wait look every five seconds."""


class Terminal:
    """A shell that runs one line after the other."""

    def __init__(
        self,
        namespace: str,
        folder: pathlib.Path,
        log: pathlib.Path,
        **environment: str,
    ):
        self._log = log
        with log.open('wb') as output:
            self._process = subprocess.Popen(
                ['nsenter', f'--net=/run/netns/{namespace}', 'bash'],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                cwd=folder,
                env={
                    name: value
                    for name, value in os.environ.items()
                    if not name.startswith(('MAKE', 'MANILA_LITE_', 'OS_'))
                }
                | environment,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        """All that has been printed."""
        return self._log.read_text(errors='replace')

    def run(self, line: str, stdin: str = '') -> str:
        """Run a line; return what it prints."""
        start, mark = len(self.output), uuid.uuid4().hex
        self._send(f'{{ {line}\n}} <<< {shlex.quote(stdin)}; echo "{mark} $?"\n')
        self.wait_for(f'{mark} ', line)
        printed, _, code = self.output[start:].rpartition(f'{mark} ')
        assert code == '0\n', f'{line} ended with {code}{printed}'
        return printed

    def start(self, line: str) -> None:
        """Let a line become what runs in the terminal."""
        self._send(f'exec {line}\n')

    def wait_for(self, text: str, what: str) -> None:
        def is_printed() -> bool:
            has_ended = self._process.poll() is not None
            found = text in self.output
            assert found or not has_ended, self.output
            return found

        wait_until(is_printed, what, TIMEOUT)

    def interrupt(self) -> None:
        """Send what Control-C sends, to all that runs; wait for its end."""
        os.killpg(self._process.pid, signal.SIGINT)
        self._process.wait(TIMEOUT)

    def close(self) -> None:
        """Kill all that runs in it."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(TIMEOUT)
        assert self._process.stdin is not None
        self._process.stdin.close()

    def _send(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text.encode())
        self._process.stdin.flush()
