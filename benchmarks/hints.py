"""What a hint costs beside a message of the bare AMQP library.

Both, and oslo.messaging as it was used for hints before, are measured in one
run and in turns, so that a busy machine disturbs all of them. Processor time is
that of this process, which sends and receives; what the broker takes is not in
it.
"""

from collections.abc import Callable, Iterator
import contextlib
import queue
import statistics
import threading
import time
import typing
import uuid

import amqp

from benchmarks.verdict import Verdict
from manila_lite.rpc import hints, transport
from tests.support import broker, rpc_servers

ROUNDS = 5
SENT = 400
"""Messages of a burst, in each round."""
ASKED = 60
"""Messages of which each waits for the one before to arrive."""

WHAT = 'processor to send and receive', 'time until it arrives'
LIMIT = 2.0
"""Times what the bare library takes."""


class Path(typing.NamedTuple):
    """A way of messages: sends one, and puts what arrives into a queue."""

    send: Callable[[str], object]
    arrived: 'queue.SimpleQueue[object]'


def run(verdict: Verdict) -> None:
    found: dict[str, list[tuple[float, float]]] = {}
    with broker.virtual_host() as url, contextlib.ExitStack() as stack:
        paths = {
            'bare library': stack.enter_context(_bare(url)),
            'hints': stack.enter_context(_hints(url)),
            'oslo.messaging': stack.enter_context(_oslo(url)),
        }
        for _ in range(ROUNDS):
            for name, path in paths.items():
                found.setdefault(name, []).append(_measure(path))
    _report(verdict, found)


def _measure(path: Path) -> tuple[float, float]:
    """Return processor time and latency of a message, in microseconds."""
    latencies = []
    for n in range(ASKED):
        begin = time.perf_counter()
        path.send(f'{n}')
        path.arrived.get(timeout=30)
        latencies.append(time.perf_counter() - begin)
        time.sleep(0.002)  # as between requests: the receiver is idle
    begin = time.process_time()
    for _ in range(SENT):
        path.send(f'{uuid.uuid4()}')
        path.arrived.get(timeout=30)
    taken = (time.process_time() - begin) / SENT
    return taken * 1e6, statistics.median(latencies) * 1e6


def _report(verdict: Verdict, found: dict[str, list[tuple[float, float]]]) -> None:
    medians = {
        name: [statistics.median(of) for of in zip(*rounds, strict=True)]
        for name, rounds in found.items()
    }
    bare = medians.pop('bare library')
    for what, value, unit in zip(WHAT, bare, ('us', 'us'), strict=True):
        verdict.record(f'bare library: {what}', value, unit)
    for name, values in medians.items():
        for what, value, raw in zip(WHAT, values, bare, strict=True):
            verdict.record(
                f'{name}: {what}',
                value / raw,
                'times the bare library',
                at_most=LIMIT if name == 'hints' else None,
                microseconds=round(value),
            )


@contextlib.contextmanager
def _bare(url: str) -> Iterator[Path]:
    """A transient queue without confirmation, read by a blocked thread."""
    arrived: queue.SimpleQueue[object] = queue.SimpleQueue()
    with _connection(url) as sending, _connection(url) as receiving:
        channel, name = receiving.channel(), f'bare-{uuid.uuid4().hex}'
        channel.queue_declare(name, exclusive=True)
        channel.basic_consume(
            name, no_ack=True, callback=lambda message: arrived.put(message.body)
        )
        outgoing = sending.channel()

        def receive() -> None:
            with contextlib.suppress(OSError, amqp.exceptions.AMQPError):
                while True:
                    receiving.drain_events()

        threading.Thread(target=receive, daemon=True).start()
        yield Path(
            lambda text: outgoing.basic_publish(
                amqp.Message(text, delivery_mode=1), routing_key=name
            ),
            arrived,
        )


@contextlib.contextmanager
def _connection(url: str) -> Iterator[typing.Any]:
    import oslo_messaging

    conf = rpc_servers.transport_to(url)._conf
    parsed = oslo_messaging.TransportURL.parse(conf)
    (host,) = parsed.hosts
    connection = amqp.Connection(
        host=f'{host.hostname}:{host.port}',
        userid=host.username,
        password=host.password,
        virtual_host=parsed.virtual_host or '/',
    )
    connection.connect()
    try:
        yield connection
    finally:
        connection.collect()


@contextlib.contextmanager
def _hints(url: str) -> Iterator[Path]:
    arrived: queue.SimpleQueue[object] = queue.SimpleQueue()
    rpc_transport = rpc_servers.transport_to(url)
    one = rpc_transport.receiver.subscribe('hints', 'one', arrived.put)
    one.is_active.wait(10)
    sender = hints.HintSender(rpc_transport)
    yield Path(lambda text: sender.send('hints', 'one', text), arrived)
    sender.stop()
    one.cancel()


@contextlib.contextmanager
def _oslo(url: str) -> Iterator[Path]:
    """A call's way, which hints took before: stored, confirmed and polled."""
    arrived: queue.SimpleQueue[object] = queue.SimpleQueue()
    rpc_transport: transport.Transport = rpc_servers.transport_to(url)
    server = rpc_transport.serve('oslo', 'one', [hints._HintEndpoint(arrived.put)])
    server.start()
    client = rpc_transport.client('oslo').to('one')
    yield Path(lambda text: client.cast(None, 'hint', {'work_id': text}), arrived)
    server.stop()
