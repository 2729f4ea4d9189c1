"""A TCP proxy to the broker whose connections a test can disturb."""

import contextlib
import selectors
import socket
import ssl
import struct
import threading

from tests.support.processes import free_port


class BrokerProxy:
    """Forwards to an address; with `tls` it speaks TLS to its clients."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None = None):
        self._target = host, port
        self._tls = tls
        self._lock = threading.Lock()
        self._entrance: socket.socket | None = None
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._flows = threading.Event()
        self._flows.set()
        self.port = free_port()
        self.restore()

    def _serve(self, entrance: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = entrance.accept()
                threading.Thread(
                    target=self._join, args=(near, entrance), daemon=True
                ).start()

    def _join(self, near: socket.socket, entrance: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if self._tls is not None:
                near = self._tls.wrap_socket(near, server_side=True)
            far = socket.create_connection(self._target)
            with self._lock:
                if entrance is self._entrance:
                    self._pairs.append((near, far))
                else:
                    _end(near, far)  # cut meanwhile
            self._pump(near, far)

    def _pump(self, near: socket.socket, far: socket.socket) -> None:
        """Forward both ways in one thread: a TLS socket is not for two."""
        other = {near: far, far: near}
        with selectors.DefaultSelector() as selector:
            for end in other:
                selector.register(end, selectors.EVENT_READ)
            with contextlib.suppress(OSError, ValueError):
                while True:
                    for key, _ in selector.select():
                        if not self._pass_on(key.fileobj, other[key.fileobj]):
                            _shut(near, far)
                            return

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> bool:
        """Forward what has arrived; False at the end of the connection."""
        data = source.recv(65536)
        if isinstance(source, ssl.SSLSocket):
            while source.pending():
                data += source.recv(65536)
        self._flows.wait()
        sink.sendall(data)
        return bool(data)

    @property
    def number(self) -> int:
        """How many connections there have been."""
        return len(self._pairs)

    def freeze(self) -> None:
        """Pass nothing on any more, as if the network were gone."""
        self._flows.clear()

    def thaw(self) -> None:
        self._flows.set()

    def say(self, method: int, arguments: bytes = b'') -> None:
        """Send a method of the class `connection` to all clients."""
        payload = struct.pack('>HH', 10, method) + arguments
        frame = struct.pack('>BHI', 1, 0, len(payload)) + payload + b'\xce'
        for near, _ in self._pairs:
            near.sendall(frame)

    def cut(self) -> None:
        """End all connections, and accept none."""
        entrance = self._entrance
        with self._lock:
            self._entrance = None
            pairs, self._pairs = self._pairs, []
        if entrance is not None:
            _end(entrance)
        for pair in pairs:
            _end(*pair)

    def restore(self) -> None:
        """Accept connections, again after `cut`."""
        self._entrance = socket.create_server(('127.0.0.1', self.port))
        threading.Thread(
            target=self._serve, args=(self._entrance,), daemon=True
        ).start()


def _shut(*ends: socket.socket) -> None:
    for end in ends:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def _end(*ends: socket.socket) -> None:
    _shut(*ends)
    for end in ends:
        end.close()
