"""A memcached of a test."""

from collections.abc import Iterator
import contextlib
import shutil
import socket
import subprocess

from tests.support import requirements
from tests.support.processes import free_port, wait_until


@contextlib.contextmanager
def running() -> Iterator[tuple[int, subprocess.Popen]]:
    """Start a server; yield its port and its process.

    Skips without the program; fails if CI is set.
    """
    program = shutil.which('memcached')
    if program is None:
        requirements.missing('memcached is not installed')
    port = free_port()
    process = subprocess.Popen(
        [program, '-l', '127.0.0.1', '-p', str(port), '-U', '0', '-u', 'root']
    )
    try:
        wait_until(lambda: _answers(port), 'memcached answers')
        yield port, process
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    with (
        contextlib.suppress(OSError),
        socket.create_connection(('127.0.0.1', port)) as client,
    ):
        client.sendall(b'version\r\n')
        return client.recv(100).startswith(b'VERSION')
    return False
