"""smbclient, as a client of CIFS shares."""

import contextlib
import os
import pathlib
import subprocess
import tempfile
import typing

from tests.support.processes import wait_until

PASSWORD = 'a password'


class SmbError(Exception):
    """The status that the server has answered with."""


class SmbClient(typing.NamedTuple):
    """A user of a server, in a network namespace of this machine."""

    user: str
    port: int
    password: str = PASSWORD
    address: str = '127.0.0.1'
    namespace: str | None = None

    def __call__(self, share: str, command: str) -> str:
        """Run one command of smbclient in a share; return what it prints."""
        done = subprocess.run(
            [*self._command(share), '--command', command],
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        out = done.stdout + done.stderr
        if done.returncode or 'NT_STATUS_' in out:
            raise SmbError(out)
        return out

    def write(self, share: str, name: str, data: bytes) -> None:
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            self(share, f'put {file.name} {name}')

    def read(self, share: str, name: str) -> bytes:
        with tempfile.NamedTemporaryFile() as file:
            self(share, f'get {name} {file.name}')
            return pathlib.Path(file.name).read_bytes()

    def names(self, share: str) -> set[str]:
        lines = self(share, 'recurse off; ls').splitlines()
        return {
            line.split()[0]
            for line in lines
            if line.startswith('  ') and line.split()[0] not in ('.', '..')
        }

    @contextlib.contextmanager
    def session(self, share: str) -> typing.Iterator['SmbSession']:
        """Connect to a share until the end of the block."""
        process = subprocess.Popen(
            ['stdbuf', '-o0', *self._command(share)],
            env=self._environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        session = SmbSession(process)
        try:
            session('ls')
            yield session
        finally:
            process.kill()
            process.communicate()

    def _command(self, share: str) -> list[str]:
        return [
            *(['ip', 'netns', 'exec', self.namespace] if self.namespace else []),
            'smbclient',
            '--configfile=/dev/null',
            f'--port={self.port}',
            f'//{self.address}/{share}',
        ]

    def _environment(self) -> dict[str, str]:
        return os.environ | {'USER': self.user, 'PASSWD': self.password}


class SmbSession:
    """A client that stays connected."""

    def __init__(self, process: subprocess.Popen):
        self._process = process
        self._printed = b''
        os.set_blocking(process.stdout.fileno(), False)

    def __call__(self, command: str) -> str:
        """Run one command; return what it prints."""
        mark = os.urandom(8).hex()
        start = len(self._printed)
        self._send(command)

        def is_done() -> bool:
            # smbclient says that it does not know the command. It takes the
            # second of two lines that it has read when there is a third.
            self._send(mark)
            self._printed += self._process.stdout.read() or b''
            return (
                f'{mark}: command not found'.encode() in self._printed
                or self._process.poll() is not None
            )

        wait_until(is_done, f'{command} has ended')
        out = self._printed[start:].decode()
        if 'NT_STATUS_' in out or self._process.poll() is not None:
            raise SmbError(out)
        return out

    def _send(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f'{line}\n'.encode())
            self._process.stdin.flush()
