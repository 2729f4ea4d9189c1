"""A load of GET requests, from one process that uses little of a core.

A client of `http.client` needs as much processor time for a response as the
service, which would then compete with it.
"""

from collections.abc import Callable
import selectors
import socket
import statistics
import time
import typing

from benchmarks.service import TIMEOUT
from benchmarks.verdict import Verdict, percentile

FEW = 8
"""Connections that two cores have to share fairly."""

_HEADERS_END = b'\r\n\r\n'
_LENGTH = b'content-length:'


class Load(typing.NamedTuple):
    """Responses of a server; latencies in milliseconds, the shortest first."""

    a_second: float
    latencies: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.latencies)

    @property
    def p99(self) -> float:
        return percentile(self.latencies, 99)


def record_few(verdict: Verdict, name: str, load: Callable[[], Load]) -> None:
    """Record three loads of few connections, of each figure the median."""
    loads = [load() for _ in range(3)]
    verdict.record(
        f'GETs of one share by {FEW} connections, {name}',
        statistics.median(one.a_second for one in loads),
        'a second',
        at_least=2000,
        median_ms=round(statistics.median(one.median for one in loads), 2),
    )
    verdict.record(
        'the same: 99th percentile, to the median',
        statistics.median(one.p99 / one.median for one in loads),
        'times',
        at_most=2,
        p99_ms=round(statistics.median(one.p99 for one in loads), 2),
    )


def run(
    ports: list[int],
    path: str,
    headers: dict[str, str],
    *,
    connections: int,
    seconds: float,
) -> Load:
    """Measure connections that send without a pause.

    They are distributed evenly among the ports.
    """
    request = _request(path, headers)
    with selectors.DefaultSelector() as waiting:
        sent = {}
        for number in range(connections):
            client = socket.create_connection(
                ('127.0.0.1', ports[number % len(ports)]), TIMEOUT
            )
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            waiting.register(client, selectors.EVENT_READ)
            client.sendall(request)
            sent[client] = time.perf_counter()
        try:
            return _exchange(waiting, sent, request, seconds)
        finally:
            for client in sent:
                client.close()


def _exchange(
    waiting: selectors.BaseSelector,
    sent: dict[socket.socket, float],
    request: bytes,
    seconds: float,
) -> Load:
    began = time.perf_counter()
    latencies = []
    while (taken := time.perf_counter() - began) < seconds:
        for key, _ in waiting.select(TIMEOUT):
            client = key.fileobj
            _read_response(client)
            now = time.perf_counter()
            latencies.append((now - sent[client]) * 1e3)
            client.sendall(request)
            sent[client] = now
    return Load(len(latencies) / taken, sorted(latencies))


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
