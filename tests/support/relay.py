"""A TCP proxy whose connections a test can cut and restore."""

from collections.abc import Callable, Iterator
import contextlib
import socket
import socketserver
import threading

import sqlalchemy as sa

_PORTS = {'mysql': 3306, 'postgresql': 5432}


class HeldRequest:
    """A request whose client is gone before the target has received it.

    To the target the client seems to be alive. That is also the state of a
    request that the target has received and executes slowly.
    """

    def __init__(self) -> None:
        self.arrived = threading.Event()
        self.decided = threading.Event()
        self.ended = threading.Event()
        self.is_passed = False

    def pass_on(self) -> None:
        """Let the target execute it; return when it has."""
        self._decide(is_passed=True)

    def drop(self) -> None:
        """Break the connection to the target."""
        self._decide(is_passed=False)

    def _decide(self, *, is_passed: bool) -> None:
        assert self.arrived.is_set(), 'there was no request'
        if not self.decided.is_set():
            self.is_passed = is_passed
            self.decided.set()
        assert self.ended.wait(60)


class Relay:
    """Forwards connections to an address; `with Relay(...)` runs it."""

    def __init__(self, host: str, port: int):
        self.target = host, port
        self._open: set[socket.socket] = set()
        self._is_connected = True
        self._loses_answer = False
        self._next_held: HeldRequest | None = None
        self._held: list[HeldRequest] = []
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
        for held in self._held:
            held.decided.set()
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

    def hold_next_request(self) -> HeldRequest:
        """Break the connection of the client that sends the next request.

        The target does not see it: it gets the request when a test says so.
        """
        self._next_held = HeldRequest()
        self._held.append(self._next_held)
        return self._next_held

    def _pump_on(
        self, client: socket.socket, server: socket.socket
    ) -> HeldRequest | None:
        """Forward what the client sends; return what was held of it."""
        held = None
        with contextlib.suppress(OSError):
            while held is None and (data := client.recv(65536)):
                held, self._next_held = self._next_held, None
                if held is not None:
                    client.shutdown(socket.SHUT_RDWR)
                    held.arrived.set()
                    held.decided.wait()
                    if not held.is_passed:
                        break
                server.sendall(data)
        if held is None or not held.is_passed:
            _shut(client, server)  # else the answer ends both directions
        return held

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
            held = self._pump_on(client, server)
            back.join()
            self._open -= pair
        if held is not None:
            held.ended.set()


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
    source: socket.socket, sink: socket.socket, ends: Callable[[], bool] = lambda: False
) -> None:
    with contextlib.suppress(OSError):
        while (data := source.recv(65536)) and not ends():
            sink.sendall(data)
    _shut(source, sink)


def _shut(*connections: socket.socket) -> None:
    for connection in connections:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
