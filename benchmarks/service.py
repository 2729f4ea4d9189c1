"""`manila-lite serve` as a child process, and a client for it."""

from collections.abc import Iterator
import contextlib
import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import typing

from tests.support.processes import free_port

COMMAND = pathlib.Path(sys.executable).with_name('manila-lite')
TIMEOUT = 60.0

_TICKS = os.sysconf('SC_CLK_TCK')


def cpu_seconds(pid: int) -> float:
    """Return the seconds of CPU time that a process has used."""
    stat = pathlib.Path(f'/proc/{pid}/stat').read_text()
    fields = stat.rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def cpu_seconds_of_threads(pid: int) -> float:
    """Return the seconds of CPU time of the threads that are alive.

    They are counted in nanoseconds. `cpu_seconds` is a count of clock ticks,
    at which timers wake up threads: of a process that is nearly idle it
    shows up to twice the time.
    """
    tasks = pathlib.Path(f'/proc/{pid}/task')
    return (
        sum(int(one.read_text().split()[0]) for one in tasks.glob('*/schedstat')) / 1e9
    )


def memory(pid: int) -> float:
    """Return MiB of memory of a process, shared pages in proportion (PSS)."""
    path = f'/proc/{pid}/smaps_rollup'
    for line in pathlib.Path(path).read_text().splitlines():
        if line.startswith('Pss:'):
            return int(line.split()[1]) / 1024
    raise LookupError(path)


def tree(pid: int) -> list[int]:
    """Return a process and its descendants."""
    tasks = pathlib.Path(f'/proc/{pid}/task').glob('*/children')
    children = [int(id) for one in tasks for id in one.read_text().split()]
    return [pid, *(found for child in children for found in tree(child))]


class Service:
    """One running process; `startup_seconds` ends with the first response."""

    def __init__(self, folder: str):
        self.port = free_port()
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)
        self._path = pathlib.Path(folder, 'log')
        self._log = self._path.open('ab')
        began = time.monotonic()
        self._process = subprocess.Popen(
            [
                COMMAND,
                'serve',
                '--state-dir',
                f'{folder}/state',
                '--port',
                str(self.port),
            ],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )
        self._wait_until_ready()
        self.startup_seconds = time.monotonic() - began
        self.cpu_until_ready = self.cpu()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + TIMEOUT
        while True:
            try:
                # Uses the database, unlike the list of versions.
                with contextlib.closing(Client(self)) as client:
                    client.get('/types')
                return
            except OSError as error:
                if self._process.poll() is not None or (time.monotonic() > deadline):
                    self.stop()
                    raise RuntimeError(
                        'serve does not answer:\n' + self._path.read_text()
                    ) from error
                time.sleep(0.01)

    def cpu(self) -> float:
        """Return the seconds of CPU time used so far."""
        return cpu_seconds(self._process.pid)

    def cpu_of_threads(self) -> float:
        """Return that of the threads that are alive, exactly."""
        return cpu_seconds_of_threads(self._process.pid)

    def memory(self) -> float:
        """Return MiB of memory, shared pages in proportion (PSS)."""
        return memory(self._process.pid)

    def stop(self) -> float:
        """Stop the process if it runs; return the seconds that it took."""
        began = time.monotonic()
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(TIMEOUT)
            finally:
                self._process.kill()
        self._log.close()
        return time.monotonic() - began


@contextlib.contextmanager
def running() -> Iterator[Service]:
    """Start a service on new state, yield it and stop it."""
    with tempfile.TemporaryDirectory() as folder:
        service = Service(folder)
        try:
            yield service
        finally:
            service.stop()


class Address(typing.NamedTuple):
    """The address of a service, for clients in other processes."""

    port: int


class Client:
    """One persistent connection; not thread-safe."""

    def __init__(self, service: typing.Any, token: str | None = None):
        self._headers = {
            'X-OpenStack-Manila-API-Version': '2.65',
            'Content-Type': 'application/json',
        }
        if token is not None:
            self._headers['X-Auth-Token'] = token
        self._connection = http.client.HTTPConnection(
            '127.0.0.1', service.port, timeout=TIMEOUT
        )

    def get(self, path: str) -> typing.Any:
        return self.request('GET', path)

    def request(self, method: str, path: str, body: object = None) -> typing.Any:
        """Return the parsed response; raise RuntimeError from status 400."""
        self._connection.request(
            method, f'/v2{path}', body=json.dumps(body), headers=self._headers
        )
        response = self._connection.getresponse()
        text = response.read()
        if response.status >= 400:
            raise RuntimeError(f'{method} {path}: {response.status} {text}')
        return json.loads(text) if text else None

    def close(self) -> None:
        self._connection.close()
