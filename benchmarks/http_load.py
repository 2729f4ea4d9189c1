"""A load of GET requests, from one process that uses little of a core.

A client of `http.client` needs as much processor time for a response as the
service, which would then compete with it.
"""

import selectors
import socket
import time

from benchmarks.service import TIMEOUT

_HEADERS_END = b'\r\n\r\n'
_LENGTH = b'content-length:'


def responses_per_second(
    ports: list[int],
    path: str,
    headers: dict[str, str],
    *,
    connections: int,
    seconds: float,
) -> float:
    """Return the throughput of connections that send without a pause.

    They are distributed evenly among the ports.
    """
    request = _request(path, headers)
    with selectors.DefaultSelector() as waiting:
        for number in range(connections):
            client = socket.create_connection(
                ('127.0.0.1', ports[number % len(ports)]), TIMEOUT
            )
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            waiting.register(client, selectors.EVENT_READ)
            client.sendall(request)
        try:
            return _exchange(waiting, request, seconds)
        finally:
            for key in list(waiting.get_map().values()):
                key.fileobj.close()


def _exchange(waiting: selectors.BaseSelector, request: bytes, seconds: float) -> float:
    began = time.perf_counter()
    count = 0
    while (taken := time.perf_counter() - began) < seconds:
        for key, _ in waiting.select(TIMEOUT):
            _read_response(key.fileobj)
            count += 1
            key.fileobj.sendall(request)
    return count / taken


def _request(path: str, headers: dict[str, str]) -> bytes:
    lines = [
        f'GET /v2{path} HTTP/1.1',
        'Host: 127.0.0.1',
        *(f'{name}: {value}' for name, value in headers.items()),
        '',
        '',
    ]
    return '\r\n'.join(lines).encode()


def _read_response(client: socket.socket) -> None:
    data = b''
    while (end := data.find(_HEADERS_END)) < 0:
        data += _receive(client)
    if not data.startswith(b'HTTP/1.1 200'):
        raise RuntimeError(data.decode(errors='replace'))
    head = data[:end].lower()
    place = head.index(_LENGTH) + len(_LENGTH)
    length = int(head[place:].partition(b'\r\n')[0])
    while len(data) < end + len(_HEADERS_END) + length:
        data += _receive(client)


def _receive(client: socket.socket) -> bytes:
    received = client.recv(65536)
    if not received:
        raise RuntimeError('the service has closed a connection')
    return received
