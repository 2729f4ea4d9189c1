"""HAProxy in front of the APIs, the database and other servers.

The process runs on this machine and opens its connections in the namespace
of the node `proxy`. So it leads from the loopback address of this machine to
the nodes, and from the nodes to servers of this machine.
"""

import contextlib
import csv
import pathlib
import socket
import subprocess
from typing import NamedTuple

from tests.cluster.nodes import Node
from tests.support.processes import wait_until

API_PORT = 8786
# What clients expect of a 503, also while no API is up.
NO_API = (
    'http-error status 503 content-type application/json string '
    """'{"serviceUnavailable": {"code": 503, "message": """
    """"No API service is available; try again later."}}' """
    'hdr Retry-After 5'
)
LOOPBACK = ' 127.0.0.1:'
"""Servers of this machine, which are in none of the namespaces."""

# As deploy/ sets it up, but quicker to notice.
_API = f"""
frontend api
    mode http
    bind 127.0.0.1:{{port}}
    bind {{address}}:{API_PORT} namespace {{namespace}}
    http-request set-header X-Forwarded-Proto http
    {{no_api}}
    default_backend api

backend api
    mode http
    balance leastconn
    option redispatch 1
    retries 3
    retry-on conn-failure
    option httpchk GET /healthcheck
    http-check expect status 200
    default-server check inter 1s fastinter 500ms downinter 500ms fall 2 rise 1
"""
_GLOBAL = """
global
    maxconn 4000
    # Long answers are not on their way to a client as a whole.
    tune.sndbuf.client 32768
    stats socket {socket} mode 600 level admin
    log stdout format timed local0 notice

defaults
    log global
    timeout connect 3s
    timeout client 2m
    timeout server 2m
    timeout check 4s
"""


class Backend(NamedTuple):
    """Servers of one port, of which the nodes use the proxy's address."""

    name: str
    port: int
    servers: tuple[str, ...]
    options: tuple[str, ...] = ()

    @property
    def is_local(self) -> bool:
        return all(LOOPBACK in server for server in self.servers)

    def section(self, node: Node) -> str:
        lines = [
            'mode tcp',
            f'bind {node.address}:{self.port} namespace {node.namespace}',
            'timeout client 1h',
            'timeout server 1h',
            *self.options,
            *(
                f'server {server}'
                if LOOPBACK in server
                else f'server {server} namespace {node.namespace}'
                for server in self.servers
            ),
        ]
        return f'\nlisten {self.name}\n' + ''.join(f'    {line}\n' for line in lines)


class Proxy:
    """The process, and commands to it."""

    def __init__(self, node: Node, port: int):
        self.node = node
        self.port = port
        self._socket = node.folder / 'socket'
        self._process: subprocess.Popen | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self, apis: list[Node], backends: list[Backend]) -> None:
        file = self.node.folder / 'haproxy.cfg'
        file.write_text(
            ''.join(
                [
                    _GLOBAL.format(socket=self._socket),
                    _API.format(
                        port=self.port,
                        no_api=NO_API,
                        address=self.node.address,
                        namespace=self.node.namespace,
                    ),
                    *(
                        f'    server {api.name} {api.address}:{API_PORT} '
                        f'namespace {self.node.namespace}\n'
                        for api in apis
                    ),
                    *(one.section(self.node) for one in backends),
                ]
            )
        )
        with (self.node.folder / 'log').open('ab') as log:
            self._process = subprocess.Popen(
                ['haproxy', '-db', '-f', file],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        wait_until(self._answers, f'HAProxy answers: {file.parent}/log')

    def _answers(self) -> bool:
        assert self._process.poll() is None, self.log
        with contextlib.suppress(OSError):
            return bool(self.command('show info'))
        return False

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def command(self, text: str) -> str:
        """Send a command to the running process; return its answer."""
        with contextlib.closing(
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        ) as link:
            link.settimeout(10)
            link.connect(str(self._socket))
            link.sendall(f'{text}\n'.encode())
            answer = b''
            while data := link.recv(65536):
                answer += data
        return answer.decode()

    def cut(self, backend: str, server: str) -> None:
        """Close the connections to a server and open no others."""
        self.command(f'set server {backend}/{server} state maint')
        self.close(backend, server)

    def close(self, backend: str, server: str) -> None:
        """Close the connections to a server, whatever they are used for."""
        self.command(f'shutdown sessions server {backend}/{server}')

    def mend(self, backend: str, server: str) -> None:
        self.command(f'set server {backend}/{server} state ready')

    def drain(self, backend: str, server: str) -> None:
        """Send nothing to a server any more, and wait until it is unused."""
        self.command(f'set server {backend}/{server} state drain')
        wait_until(
            lambda: not self.sessions(backend)[server],
            f'{server} has answered everything',
            timeout=60,
        )

    def status(self, backend: str) -> dict[str, str]:
        """Return the status of each server of a backend, by its name."""
        return {
            name: row['status'].split()[0]
            for name, row in self._servers(backend).items()
        }

    def sessions(self, backend: str) -> dict[str, int]:
        """Return the number of sessions of each server of a backend.

        Over HTTP a session lasts for a request.
        """
        return {name: int(row['scur']) for name, row in self._servers(backend).items()}

    def _servers(self, backend: str) -> dict[str, dict[str, str]]:
        text = self.command('show stat').strip().removeprefix('# ')
        return {
            row['svname']: row
            for row in csv.DictReader(text.splitlines())
            if row['pxname'] == backend and row['svname'] not in ('FRONTEND', 'BACKEND')
        }

    @property
    def log(self) -> str:
        return pathlib.Path(self.node.folder / 'log').read_text()
