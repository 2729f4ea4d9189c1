"""Receives hints from RabbitMQ, in one thread for all servers of a process."""

from collections.abc import Callable
import contextlib
import logging
import math
import random
import threading
import time
import typing
import uuid

import amqp

from manila_lite.rpc import rabbit

LOG = logging.getLogger(__name__)

CANCEL_TIMEOUT = 1.0
"""Seconds that a subscription may take to end; then it gets nothing more."""

ABANDONED = 60_000
"""Milliseconds after which the broker removes a queue that a crash left."""

LOG_INTERVAL = 60.0

# A quorum queue would be the default of some virtual hosts.
_CLASSIC = {'x-queue-type': 'classic'}


class Subscription:
    """Receives the hints for one server of a topic, until cancelled."""

    def __init__(
        self,
        topic: str,
        server: str,
        receive: Callable[[bytes], object],
        on_cancelled: Callable[['Subscription'], None],
    ):
        self.topic = topic
        self.address = f'{topic}.{server}'
        self.is_active = threading.Event()
        self.ended = threading.Event()
        self._pass_on = receive
        self._on_cancelled = on_cancelled

    def cancel(self) -> None:
        """End it; another server of the topic gets the next hints."""
        self._on_cancelled(self)
        if self.is_active.is_set():
            self.ended.wait(CANCEL_TIMEOUT)

    def receive(self, message: typing.Any) -> None:
        self._pass_on(message.body)


class Receiver:
    """The subscriptions of a process, its connection and its thread.

    Each server has a queue of its own that vanishes with its connection, and
    the servers of a topic have one that vanishes with the last of them. What
    is sent while there is none comes back to the sender.
    """

    def __init__(
        self, brokers: rabbit.Brokers, clock: Callable[[], float] = time.monotonic
    ):
        self._brokers = brokers
        self._clock = clock
        self._logged_at = -LOG_INTERVAL
        self._lock = threading.Lock()
        self._wanted: list[Subscription] = []
        self._waker: rabbit.Waker | None = None

    def subscribe(
        self, topic: str, server: str, receive: Callable[[bytes], object]
    ) -> Subscription:
        """Receive hints for a server from now on, or once the broker is up."""
        one = Subscription(topic, server, receive, self._remove)
        with self._lock:
            self._wanted = [*self._wanted, one]
            if self._waker is None:
                self._waker = rabbit.Waker()
                threading.Thread(
                    target=self._run, args=(self._waker,), name='hints-in', daemon=True
                ).start()
            self._waker.wake()
        return one

    def _remove(self, one: Subscription) -> None:
        with self._lock:
            self._wanted = [other for other in self._wanted if other is not one]
            if self._waker is not None:
                self._waker.wake()

    def _run(self, waker: rabbit.Waker) -> None:
        """Receive until no subscription is left, whatever the broker does."""
        pause = 0.0
        while not self._is_done():
            connected_at = math.inf
            try:
                with contextlib.closing(
                    self._brokers.connect(waker, 'hints received')
                ) as link:
                    connected_at = self._clock()
                    self._receive(link)
                    pause = 0.0
            except Exception as error:  # noqa: BLE001 the service goes on
                if not isinstance(error, (*rabbit.FAILED, rabbit.Refused)):
                    LOG.exception('Receiving hints has failed')
                # A broker that accepts connections and drops them is no reason
                # to connect twice a second.
                if self._clock() - connected_at >= rabbit.LONGEST_PAUSE:
                    pause = 0.0
                pause = self._wait_after(error, waker, pause)
        waker.close()

    def _is_done(self) -> bool:
        """Whether the thread is to end; the next subscription makes another."""
        with self._lock:
            if self._wanted:
                return False
            self._waker = None
            return True

    def _receive(self, link: rabbit.Link) -> None:
        link.declare_exchange()
        consumers: dict[Subscription, Consumer] = {}
        try:
            while wanted := self._wanted:
                for one in [one for one in consumers if one not in wanted]:
                    consumers.pop(one).cancel()
                    one.ended.set()
                for one in wanted:
                    if one not in consumers:
                        consumers[one] = Consumer(link, one)
                        one.is_active.set()
                link.wait()
            for consumer in consumers.values():
                consumer.cancel()
        finally:
            for one in consumers:
                one.is_active.clear()
                one.ended.set()
        link.close(graceful=True)

    def _wait_after(self, error: Exception, waker: rabbit.Waker, pause: float) -> float:
        """Return the pause that has been made; log what only hints may notice.

        The servers for calls log that the broker is down or refuses them.
        """
        may_not = isinstance(error, (rabbit.Refused, amqp.exceptions.ChannelError))
        if may_not and self._clock() - self._logged_at >= LOG_INTERVAL:
            self._logged_at = self._clock()
            LOG.warning(
                'This account may not receive hints by %s; they go the slower '
                'way of calls: %s',
                rabbit.EXCHANGE,
                error,
            )
        pause = min(2 * pause or rabbit.FIRST_PAUSE, rabbit.LONGEST_PAUSE)
        LOG.debug('Another connection for hints in up to %g s: %s', pause, error)
        waker.wait(pause * random.uniform(0.5, 1))  # noqa: S311 not a secret
        return pause


class Consumer:
    """The queues of a subscription on one connection."""

    def __init__(self, link: rabbit.Link, one: Subscription):
        self._consumed: list[tuple[typing.Any, str]] = []
        channel = link.open_channel()
        name = f'{rabbit.EXCHANGE}.{one.address}'[:200] + f'.{uuid.uuid4().hex}'
        channel.queue_declare(name, exclusive=True, arguments=_CLASSIC)
        channel.queue_bind(name, rabbit.EXCHANGE, one.address)
        self._consume(channel, name, one)
        try:
            self._consume_shared(link.open_channel(), one)
        except amqp.exceptions.ChannelError as error:
            # As when the broker that has the queue is down: then each server
            # of the topic gets all hints for any of them.
            LOG.info('%s receives hints without the common queue: %s', name, error)
            channel.queue_bind(name, rabbit.EXCHANGE, one.topic)

    def _consume_shared(self, channel: typing.Any, one: Subscription) -> None:
        """Consume what is for any server of the topic.

        RabbitMQ refuses queues of several connections that are not durable.
        """
        name = f'{rabbit.EXCHANGE}.{one.topic}'
        channel.queue_declare(
            name,
            durable=True,
            auto_delete=True,
            arguments={**_CLASSIC, 'x-expires': ABANDONED},
        )
        channel.queue_bind(name, rabbit.EXCHANGE, one.topic)
        self._consume(channel, name, one)

    def _consume(self, channel: typing.Any, name: str, one: Subscription) -> None:
        tag = channel.basic_consume(name, no_ack=True, callback=one.receive)
        self._consumed.append((channel, tag))

    def cancel(self) -> None:
        """End both; what has been delivered before is received."""
        for channel, tag in self._consumed:
            channel.basic_cancel(tag)
            channel.close()
