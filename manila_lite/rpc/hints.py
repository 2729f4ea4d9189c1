"""Hints: messages that a work row is due.

A hint may arrive late, twice or never: the row is the truth, and the sweep of a
service finds what no hint has reached.
"""

from collections.abc import Callable, Iterable
import itertools
import logging
import math
import threading
import time
import typing

import orjson

from manila_lite import exception, metrics
from manila_lite.db import errors
from manila_lite.rpc.transport import RpcClient, Transport

if typing.TYPE_CHECKING:
    from manila_lite.rpc.rabbit import Publisher

LOG = logging.getLogger(__name__)

BATCH = 50
"""Hints in one message, at most."""

BATCHES_SINCE = 2
"""The release whose services know messages with several hints."""

RELEASES_KEPT = 30.0
"""Seconds for which the oldest release of a topic is not looked up again."""


UNSERVED_KEPT = 10.0
"""Seconds for which hints for an address go the way of calls at once, after
one has come back.
"""


class _Event:
    """Wakes the thread that sends by oslo.messaging only."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def wake(self) -> None:
        self._event.set()

    def wait(self) -> None:
        self._event.wait()
        self._event.clear()

    def close(self) -> None:
        """Do nothing: there is no connection."""


Hint = tuple[str, str, str]
"""Topic, queue, and the id of the work. `queue` is that of a back end, or the
topic for any of its servers.
"""


class HintSender:
    """Sends hints about due work to services, from one thread.

    `sent`, `failed` and `dropped` count hints since the start. A lost
    hint is no error: the sweep of the service finds the work a bit later.

    Over RabbitMQ, hints go past oslo.messaging. Those that come back are for
    services that do not listen there: of the previous release, just starting
    or ended. They go the way of calls, as do all over another transport and
    those of an account without permission: a queue of oslo.messaging keeps
    them, and they leave one by one if `oldest_release` tells of a service that
    knows only single hints.
    """

    LOG_INTERVAL = 60.0

    def __init__(
        self,
        transport: Transport,
        *,
        capacity: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
        oldest_release: Callable[[str, str | None], int | None] | None = None,
    ):
        self.sent = 0
        self.failed = 0
        self.dropped = 0
        self._transport, self._capacity, self._clock = transport, capacity, clock
        self._logged_at = -self.LOG_INTERVAL
        self._clients: dict[str, RpcClient] = {}
        self._oldest_release = oldest_release
        # Per topic, whether its services know batches, and until when.
        self._batching: dict[str, tuple[bool, float]] = {}
        # Per topic and queue, the ids in the order of their arrival.
        self._waiting: dict[tuple[str, str], dict[str, None]] = {}
        self._size = 0
        self._lock = threading.Lock()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._path: Publisher | _Event = _Event()
        self._publisher: Publisher | None = None
        # Topic and queue by address, and until when an address is not used.
        self._known: dict[str, tuple[str, str]] = {}
        self._unserved: dict[str, float] = {}

    def send(self, topic: str, queue: str, work_id: str) -> None:
        """Queue a hint for sending; never waits and never fails.

        A queue with the name of its topic means any server of the topic.
        """
        self.send_all([(topic, queue, work_id)])

    def send_all(self, hints: Iterable[Hint]) -> None:
        """Queue hints that leave together as far as they have one queue."""
        with self._lock:
            for topic, queue, work_id in hints:
                if work_id in self._waiting.get((topic, queue), ()):
                    continue
                if self._stopping or self._size >= self._capacity:
                    self._drop(1)
                    continue
                self._waiting.setdefault((topic, queue), {})[work_id] = None
                self._size += 1
            if not self._waiting or self._stopping:
                return
            # Started by the first hint, as a server may fork before that.
            if self._thread is None or not self._thread.is_alive():
                self._start()
            path = self._path
        path.wake()

    def _start(self) -> None:
        """Start the thread, with a connection of its own."""
        self._publisher = self._transport.publisher(self._take_back)
        self._path = self._publisher or _Event()
        self._thread = threading.Thread(target=self._run, name='hints', daemon=True)
        self._thread.start()

    def stop(self, timeout: float = 1.0) -> None:
        """Send queued hints for at most `timeout` seconds, drop the rest."""
        with self._lock:
            self._stopping = True
            thread, path = self._thread, self._path
        path.wake()
        if thread is not None:
            thread.join(timeout)
        with self._lock:
            self._drop(self._size)
            self._waiting.clear()
            self._size = 0

    def _drop(self, number: int) -> None:
        self.dropped += number
        metrics.HINTS_LOST.increment(by=number)

    def _run(self) -> None:
        path = self._path
        while True:
            while (batch := self._next()) is not None:
                self._dispatch(*batch)
            if self._stopping:
                break
            path.wait()
        path.close()

    def _next(self) -> tuple[str, str, list[str]] | None:
        """Return what goes into the next message; None without hints."""
        with self._lock:
            if not self._waiting:
                return None
            (topic, queue), found = next(iter(self._waiting.items()))
            taken = list(itertools.islice(found, BATCH))
            for work_id in taken:
                del found[work_id]
            del self._waiting[topic, queue]
            if found:  # the other queues come first
                self._waiting[topic, queue] = found
            self._size -= len(taken)
        return topic, queue, taken

    def _dispatch(self, topic: str, queue: str, work_ids: list[str]) -> None:
        """Send hints for one queue, in one message if possible."""
        address = topic if queue == topic else f'{topic}.{queue}'
        if self._publisher is None or self._is_unserved(address):
            self._cast_all(topic, queue, work_ids)
            return
        self._known[address] = topic, queue
        try:
            if self._publisher.publish(address, _to_body(work_ids)):
                self._count_sent(len(work_ids))
            else:
                self._cast_all(topic, queue, work_ids)
        except exception.ServiceUnavailable as error:
            self._note_failure(queue, error, len(work_ids))

    def _take_back(self, address: str, body: bytes) -> None:
        """Send hints that came back by a queue of oslo.messaging."""
        self._unserved[address] = self._clock() + UNSERVED_KEPT
        work_ids = _from_body(body)
        self.sent -= len(work_ids)
        self._cast_all(*self._known[address], work_ids, counted=True)

    def _is_unserved(self, address: str) -> bool:
        until = self._unserved.get(address)
        if until is not None and self._clock() >= until:
            del self._unserved[address]
            return False
        return until is not None

    def _cast_all(
        self, topic: str, queue: str, work_ids: list[str], *, counted: bool = False
    ) -> None:
        """Send by oslo.messaging, which waits for the broker to confirm."""
        batches = [work_ids]
        if len(work_ids) > 1 and not self._knows_batches(topic):
            batches = [[one] for one in work_ids]
        for batch in batches:
            args: dict[str, typing.Any] = {'work_id': batch[0]}
            if batch[1:]:
                args['more'] = batch[1:]
            try:
                self._client(topic, queue).cast(None, 'hint', args)
            except exception.ServiceUnavailable as error:
                self._note_failure(queue, error, len(batch))
            else:
                self._count_sent(len(batch), counted=counted)

    def _knows_batches(self, topic: str) -> bool:
        if self._oldest_release is None:
            return True
        knows, until = self._batching.get(topic, (False, -math.inf))
        now = self._clock()
        if now >= until:
            try:
                oldest = self._oldest_release(topic, None)
                knows = oldest is None or oldest >= BATCHES_SINCE
            except errors.UNAVAILABLE:
                knows = False
            self._batching[topic] = (knows, now + RELEASES_KEPT)
        return knows

    def _client(self, topic: str, queue: str) -> RpcClient:
        client = self._clients.get(topic)
        if client is None:
            client = self._clients[topic] = self._transport.client(topic)
        return client if queue == topic else client.to(queue)

    def _count_sent(self, number: int, *, counted: bool = False) -> None:
        self.sent += number
        if not counted:
            metrics.HINTS_SENT.increment(by=number)

    def _note_failure(self, queue: str, error: Exception, lost: int) -> None:
        self.failed += lost
        metrics.HINTS_LOST.increment(by=lost)
        if self._clock() - self._logged_at >= self.LOG_INTERVAL:
            self._logged_at = self._clock()
            LOG.warning(
                'Lost a hint for %s (%d since the start); '
                'the sweep will find the work: %s',
                queue,
                self.failed,
                error,
            )


def _to_body(work_ids: list[str]) -> bytes:
    return orjson.dumps({'work_ids': work_ids})


def _from_body(body: bytes) -> list[str]:
    """Return the ids; what a newer release says beside them is ignored."""
    return [str(one) for one in orjson.loads(body)['work_ids']]


class HintListener:
    """Passes hints to a runner and calls to its endpoints.

    Hints come past oslo.messaging if that is possible, and by the server for
    calls from those that cannot send them otherwise. It is one server: two
    on one queue would take messages from each other.
    """

    def __init__(
        self,
        transport: Transport,
        topic: str,
        server: str,
        wake: Callable[[str], object],
        endpoints: Iterable[typing.Any] = (),
    ):
        self._name = topic, server
        self._wake = wake
        self._receiver = transport.receiver
        self._subscription: typing.Any = None
        self._server = transport.serve(topic, server, [_HintEndpoint(wake), *endpoints])

    def start(self) -> None:
        if self._receiver is not None:
            self._subscription = self._receiver.subscribe(*self._name, self._receive)
        self._server.start()

    def stop(self) -> None:
        if self._subscription is not None:
            self._subscription.cancel()
        self._server.stop()

    def _receive(self, body: bytes) -> None:
        try:
            work_ids = _from_body(body)
        except (ValueError, LookupError, TypeError):
            LOG.warning('A message to %s is no hint', '.'.join(self._name))
            return
        for one in work_ids:
            self._wake(one)


class _HintEndpoint:
    def __init__(self, wake: Callable[[str], object]):
        self._wake = wake

    def hint(
        self, ctx: object, work_id: str, more: Iterable[str] = (), **newer: object
    ) -> None:
        """Wake the runner; what a newer release says beside it is ignored."""
        for one in (work_id, *more):
            self._wake(one)

    def ping(self, ctx: object) -> None:
        """Do nothing: the sender wants to know whether the bus works."""

    hint.exposed = ping.exposed = True  # type: ignore[attr-defined]
