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

from manila_lite import exception, metrics
from manila_lite.db import errors
from manila_lite.rpc.transport import RpcClient, Transport

LOG = logging.getLogger(__name__)

BATCH = 50
"""Hints in one message, at most."""

BATCHES_SINCE = 2
"""The release whose services know messages with several hints."""

RELEASES_KEPT = 30.0
"""Seconds for which the oldest release of a topic is not looked up again."""


class HintSender:
    """Sends hints about due work to services, from one thread.

    `sent`, `failed` and `dropped` count hints since the start. A lost
    hint is no error: the sweep of the service finds the work a bit later.

    The broker confirms each message, which takes milliseconds. Hints for a
    queue that arrive meanwhile leave together in the next message, unless
    `oldest_release` tells of a service that knows only single hints.
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
        self._transport = transport
        self._capacity = capacity
        self._clock = clock
        self._logged_at = -self.LOG_INTERVAL
        self._clients: dict[str, RpcClient] = {}
        self._oldest_release = oldest_release
        # Per topic, whether its services know batches, and until when.
        self._batching: dict[str, tuple[bool, float]] = {}
        # Per topic and queue, the ids in the order of their arrival.
        self._waiting: dict[tuple[str, str], dict[str, None]] = {}
        self._size = 0
        self._changed = threading.Condition()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def send(self, topic: str, queue: str, work_id: str) -> None:
        """Queue a hint for sending; never waits and never fails.

        A queue with the name of its topic means any server of the topic.
        """
        with self._changed:
            if work_id in self._waiting.get((topic, queue), ()):
                return
            if self._stopping or self._size >= self._capacity:
                self._drop(1)
                return
            self._waiting.setdefault((topic, queue), {})[work_id] = None
            self._size += 1
            # Started by the first hint, as a server may fork before that.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._run, name='hints', daemon=True
                )
                self._thread.start()
            self._changed.notify()

    def stop(self, timeout: float = 1.0) -> None:
        """Send queued hints for at most `timeout` seconds, drop the rest."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(timeout)
        with self._changed:
            self._drop(self._size)
            self._waiting.clear()
            self._size = 0

    def _drop(self, number: int) -> None:
        self.dropped += number
        metrics.HINTS_LOST.increment(by=number)

    def _run(self) -> None:
        while (batch := self._next()) is not None:
            topic, queue, work_ids = batch
            if not work_ids:  # dropped in the meantime
                continue
            args: dict[str, typing.Any] = {'work_id': work_ids[0]}
            if work_ids[1:]:
                args['more'] = work_ids[1:]
            try:
                self._client(topic, queue).cast(None, 'hint', args)
                self.sent += len(work_ids)
                metrics.HINTS_SENT.increment(by=len(work_ids))
            except exception.ServiceUnavailable as error:
                self._note_failure(queue, error, len(work_ids))

    def _next(self) -> tuple[str, str, list[str]] | None:
        """Wait for hints; return what goes into the next message."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._stopping)
            if not self._waiting:
                return None
            (topic, queue), found = next(iter(self._waiting.items()))
            several = len(found) > 1
        # May ask the database, for which no sender waits.
        limit = BATCH if several and self._knows_batches(topic) else 1
        with self._changed:
            found = self._waiting.pop((topic, queue), {})
            taken = list(itertools.islice(found, limit))
            for work_id in taken:
                del found[work_id]
            if found:  # the other queues come first
                self._waiting[topic, queue] = found
            self._size -= len(taken)
        return topic, queue, taken

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


class HintListener:
    """Passes hints to a runner and calls to its endpoints.

    One server receives both; two servers on one queue would take messages
    from each other.
    """

    def __init__(
        self,
        transport: Transport,
        topic: str,
        server: str,
        wake: Callable[[str], object],
        endpoints: Iterable[typing.Any] = (),
    ):
        self._server = transport.serve(topic, server, [_HintEndpoint(wake), *endpoints])

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self._server.stop()


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
