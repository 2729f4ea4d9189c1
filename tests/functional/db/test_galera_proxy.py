"""The proxy in front of Galera, as it is documented."""

from collections.abc import Iterator
import contextlib
import http.server
import pathlib
import shutil
import socket
import socketserver
import subprocess
import threading

import pytest

from tests.support import requirements
from tests.support.processes import free_port, wait_until

PAGE = pathlib.Path(__file__).parents[3] / 'doc/source/databases.rst'
NODES = {'192.0.2.31': '127.0.0.31', '192.0.2.32': '127.0.0.32'} | {
    '192.0.2.33': '127.0.0.33'
}


class Node:
    """A node that tells its name to those that connect, and its health."""

    def __init__(self, address: str, port: int, check_port: int):
        self.name = address.encode()
        self.is_healthy = True
        self.checks = 0
        self._servers = [
            _Server((address, port), _handler(self)),
            http.server.ThreadingHTTPServer((address, check_port), _health(self)),
        ]
        for server in self._servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


def _handler(node: Node) -> type[socketserver.BaseRequestHandler]:
    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(node.name)
            self.request.recv(1)

    return Handler


def _health(node: Node) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            node.checks += 1
            self.send_response(200 if node.is_healthy else 503)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Do not write to the output of the tests."""

    return Handler


class Proxy:
    """A running HAProxy, its nodes and the connections through it."""

    def __init__(self, port: int, nodes: list[Node]):
        self.nodes = nodes
        self._port = port
        self._open: list[tuple[bytes, socket.socket]] = []

    def connect(self) -> bytes | None:
        """Open a connection; return the name of its node."""
        link = socket.create_connection(('127.0.0.1', self._port), timeout=5)
        name = link.recv(100)
        if not name:
            link.close()
            return None
        self._open.append((name, link))
        return name

    def used(self) -> set[bytes]:
        """Return the names of the nodes to which connections are open."""
        for name, link in list(self._open):
            link.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                with contextlib.suppress(ConnectionError):
                    assert not link.recv(1)
                link.close()
                self._open.remove((name, link))
        return {name for name, _ in self._open}

    def leads_to(self, node: Node) -> bool:
        """Return whether all connections, with a new one, lead there."""
        self.connect()
        return self.used() == {node.name}

    def close(self) -> None:
        for _, link in self._open:
            link.close()


@pytest.fixture
def proxy(tmp_path) -> Iterator[Proxy]:
    program = shutil.which('haproxy')
    if program is None:
        requirements.missing('HAProxy is not installed')
    port, node_port, check_port = (free_port() for _ in range(3))
    text = PAGE.read_text()
    section = text[text.index('   listen manila_lite_database') :]
    section, _, _ = section.partition('\n\n')
    section = section.replace('192.0.2.20:3306', f'127.0.0.1:{port}')
    section = section.replace(':3306', f':{node_port}')
    section = section.replace('port 9200', f'port {check_port}')
    for documented, address in NODES.items():
        section = section.replace(documented, address)
    file = tmp_path / 'haproxy.cfg'
    file.write_text(f'{section}\n')
    with contextlib.ExitStack() as stack:
        nodes = [Node(each, node_port, check_port) for each in NODES.values()]
        for node in nodes:
            stack.callback(node.stop)
        process = subprocess.Popen([program, '-db', '-f', file])
        stack.callback(process.wait)
        stack.callback(process.kill)
        proxy = Proxy(port, nodes)
        stack.callback(proxy.close)
        wait_until(lambda: _answers(port), 'HAProxy answers')
        yield proxy


def _answers(port: int) -> bool:
    with contextlib.suppress(ConnectionRefusedError):
        socket.create_connection(('127.0.0.1', port), timeout=5).close()
        return True
    return False


def test_all_connections_lead_to_one_node_after_any_of_them_was_away(proxy):
    first, second, third = proxy.nodes
    wait_until(lambda: proxy.leads_to(first), 'the first node is used')
    first.is_healthy = False
    wait_until(lambda: proxy.leads_to(second), 'the second one is used')
    second.is_healthy = False
    wait_until(lambda: proxy.leads_to(third), 'the third one is used')
    for node in (second, first):
        node.is_healthy = True
        node.checks = 0
        wait_until(lambda node=node: node.checks > 3, 'it is used again')
        for _ in range(3):
            assert proxy.leads_to(third)
    third.is_healthy = False
    wait_until(lambda: proxy.leads_to(first), 'the first node is used')
