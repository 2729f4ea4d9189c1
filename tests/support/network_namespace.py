"""A second machine: a network namespace with a link to this one."""

from collections.abc import Iterator
import contextlib
import os
import subprocess
import sys
from typing import NamedTuple

CONNECT = """
import sys
import nfs_rs
address, port, path = sys.argv[1:]
url = f'nfs://{address}{path}?version=4.1&nfsport={port}'
try:
    with nfs_rs.Client.connect(url) as client:
        with client.open('notes', 'rb') as file:
            print(file.read())
        with client.open('from-far', 'wb') as file:
            file.write(b'hello')
        print('written')
except OSError as error:
    print(error.errno)
"""


class Machine(NamedTuple):
    """The namespace, its addresses, and those of this machine."""

    name: str
    addresses: tuple[str, str]
    hosts: tuple[str, str]

    def mount(self, host: str, port: int, path: str) -> list[str]:
        """Read and write files of a share with a complete NFS 4.1 client.

        Return what was printed: the results, or the number of an error.
        """
        address = f'[{host}]' if ':' in host else host
        return self.run(sys.executable, '-c', CONNECT, address, port, path)

    def run(self, *command: object) -> list[str]:
        done = subprocess.run(
            ['ip', 'netns', 'exec', self.name, *map(str, command)],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()


@contextlib.contextmanager
def machine() -> Iterator[Machine]:
    """Create a namespace with a link; finally remove both."""
    number = os.getpid() % 250 + 1
    name = f'manila-{os.getpid()}'
    link = f'mnl{os.getpid()}'
    hosts = f'198.18.{number}.1', f'fd00:18:{number:x}::1'
    addresses = f'198.18.{number}.2', f'fd00:18:{number:x}::2'
    _run('netns', 'add', name)
    try:
        _run(
            *('link', 'add', link, 'type', 'veth'),
            *('peer', 'name', 'eth0', 'netns', name),
        )
        for address, width in zip(hosts, (30, 64), strict=True):
            _add_address((), address, width, link)
        for address, width in zip(addresses, (30, 64), strict=True):
            _add_address(('-n', name), address, width, 'eth0')
        _run('link', 'set', link, 'up')
        _run('-n', name, 'link', 'set', 'eth0', 'up')
        yield Machine(name, addresses, hosts)
    finally:
        _run('netns', 'delete', name)  # and the link with it


def _add_address(where: tuple[str, ...], address: str, width: int, link: str) -> None:
    nodad = ('nodad',) if ':' in address else ()
    _run(*where, 'address', 'add', f'{address}/{width}', 'dev', link, *nodad)


def _run(*arguments: str) -> None:
    subprocess.run(['ip', *arguments], check=True, capture_output=True)
