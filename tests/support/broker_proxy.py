"""A TCP proxy to the broker whose connections a test can disturb."""

import contextlib
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
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._flows = threading.Event()
        self._flows.set()
        self.port = free_port()
        self.restore()

    def _serve(self, entrance: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = entrance.accept()
                threading.Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if self._tls is not None:
                near = self._tls.wrap_socket(near, server_side=True)
            far = socket.create_connection(self._target)
            self._pairs.append((near, far))
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=pair, daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._flows.wait()
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)

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
        with contextlib.suppress(OSError):
            self._entrance.shutdown(socket.SHUT_RDWR)
        self._entrance.close()
        for pair in self._pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()
        self._pairs.clear()

    def restore(self) -> None:
        """Accept connections, again after `cut`."""
        self._entrance = socket.create_server(('127.0.0.1', self.port))
        threading.Thread(
            target=self._serve, args=(self._entrance,), daemon=True
        ).start()
