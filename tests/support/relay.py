"""A TCP proxy whose connections a test can cut and restore."""

from collections.abc import Callable, Iterator
import contextlib
import socket
import socketserver
import threading

import sqlalchemy as sa

_PORTS = {'mysql': 3306, 'postgresql': 5432}


class Relay:
    """Forwards connections to an address; `with Relay(...)` runs it."""

    def __init__(self, host: str, port: int):
        self.target = host, port
        self._open: set[socket.socket] = set()
        self._is_connected = True
        self._loses_answer = False
        self._server = socketserver.ThreadingTCPServer(
            ('127.0.0.1', 0), type('Handler', (_Handler,), {'relay': self})
        )
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]

    def __enter__(self) -> 'Relay':
        threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        ).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self.cut()
        self._server.server_close()

    def cut(self) -> None:
        """Break all connections and close new ones at once."""
        self._is_connected = False
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        self._is_connected = True

    def lose_next_answer(self) -> None:
        """Break the connection on which the target answers next."""
        self._loses_answer = True

    def _pump_back(self, server: socket.socket, client: socket.socket) -> None:
        _pump(server, client, self._takes_answer)

    def _takes_answer(self) -> bool:
        taken, self._loses_answer = self._loses_answer, False
        return taken

    def forward(self, client: socket.socket) -> None:
        """Forward data in both directions until one side closes."""
        if not self._is_connected:
            return
        with socket.create_connection(self.target) as server:
            pair = {client, server}
            self._open |= pair
            back = threading.Thread(
                target=self._pump_back, args=(server, client), daemon=True
            )
            back.start()
            _pump(client, server)
            back.join()
            self._open -= pair


@contextlib.contextmanager
def before_database(url: str) -> Iterator[tuple[Relay, str]]:
    """Run a relay to a database server; yield it and a URL through it."""
    parsed = sa.make_url(url)
    port = parsed.port or _PORTS[parsed.get_backend_name()]
    with Relay(parsed.host or '127.0.0.1', port) as relay:
        through = parsed.set(host='127.0.0.1', port=relay.port)
        yield relay, through.render_as_string(hide_password=False)


class _Handler(socketserver.BaseRequestHandler):
    relay: Relay

    def handle(self) -> None:
        self.relay.forward(self.request)


def _pump(
    source: socket.socket,
    sink: socket.socket,
    ends: Callable[[], bool] = lambda: False,
) -> None:
    with contextlib.suppress(OSError):
        while (data := source.recv(65536)) and not ends():
            sink.sendall(data)
    for side in (source, sink):
        with contextlib.suppress(OSError):
            side.shutdown(socket.SHUT_RDWR)
