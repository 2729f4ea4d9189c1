"""Messages within one process: the oslo.messaging driver of `memory://`.

A message goes straight into the executor of the receiving server, so
nothing polls and this module owns no thread. The receiver gets a JSON
copy, as over a broker; no object is shared with the sender.
`memory://one` and `memory://two` are separate, like virtual hosts.
"""

import collections
from collections.abc import Collection
from concurrent import futures
import threading
import typing
import weakref

from oslo_config import cfg
from oslo_messaging import Target, exceptions, transport
from oslo_messaging._drivers import base, common
from oslo_serialization import jsonutils

Address = tuple[str, str, str | None]
"""Exchange, topic, and server (None: any server of the topic)."""


class MemoryMessage(base.RpcIncomingMessage):
    """A received message, with the future for its reply."""

    def __init__(self, text: str, reply_future: 'futures.Future[str] | None'):
        super().__init__(*jsonutils.loads(text))
        self._reply_future = reply_future

    def reply(self, reply: object = None, failure: object = None) -> None:
        if self._reply_future is None:
            return
        if failure is not None:
            failure = common.serialize_remote_exception(failure)
        self._reply_future.set_result(jsonutils.dumps((reply, failure)))

    def requeue(self) -> None:
        raise NotImplementedError('memory:// delivers at most once')

    def heartbeat(self) -> None:
        """Do nothing: a caller in the same process uses its timeout only."""


class MemoryListener(base.Listener):
    """The listener of one server, at its addresses."""

    def __init__(
        self,
        broker: 'Broker',
        addresses: Collection[Address],
        batch_timeout: float | None,
    ):
        super().__init__(batch_size=1, batch_timeout=batch_timeout)
        self.addresses = addresses
        self._broker = broker

    def start(self, on_incoming_callback: object) -> None:
        super().start(on_incoming_callback)
        self._broker.subscribe(self)

    def stop(self) -> None:
        self._broker.unsubscribe(self)
        super().stop()

    def cleanup(self) -> None:
        """Do nothing: a stopped listener holds no resources."""


class Broker:
    """The listeners of one virtual host, by address."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[Address, collections.deque[MemoryListener]] = {}

    def subscribe(self, listener: MemoryListener) -> None:
        with self._lock:
            for address in listener.addresses:
                self._listeners.setdefault(address, collections.deque()).append(
                    listener
                )

    def unsubscribe(self, listener: MemoryListener) -> None:
        """Remove the listener; it gets no messages after the return."""
        with self._lock:
            for address in listener.addresses:
                self._listeners[address].remove(listener)
                if not self._listeners[address]:
                    del self._listeners[address]

    def deliver(
        self,
        address: Address,
        text: str,
        *,
        fanout: bool = False,
        reply_future: 'futures.Future[str] | None' = None,
    ) -> bool:
        """Deliver to the next listener in turn, or to all with `fanout`.

        Returns False when there is no listener. The lock is held, so a
        stopped listener is never called; the call only puts the message
        into the executor's queue.
        """
        with self._lock:
            listeners = self._listeners.get(address)
            if listeners is None:
                return False
            chosen = tuple(listeners) if fanout else (listeners[0],)
            listeners.rotate(-1)
            for listener in chosen:
                listener.on_incoming_callback([MemoryMessage(text, reply_future)])
            return True


_brokers: weakref.WeakValueDictionary[typing.Any, Broker] = (
    weakref.WeakValueDictionary()
)
_brokers_lock = threading.Lock()


def _broker_of(url: transport.TransportURL) -> Broker:
    """Return the broker of a virtual host; it lives as long as a driver."""
    name = (tuple(host.hostname for host in url.hosts), url.virtual_host)
    with _brokers_lock:
        broker = _brokers.get(name)
        if broker is None:
            broker = _brokers[name] = Broker()
        return broker


class MemoryDriver(base.BaseDriver):
    """RPC within one process, with the semantics of a broker.

    As over a broker, a cast without a listener is lost. A call without a
    listener, and a cast sent with `at_least_once`, raise
    MessageUndeliverable at once.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        url: object,
        default_exchange: str | None = None,
        allowed_remote_exmods: list[str] | None = None,
    ):
        super().__init__(conf, url, default_exchange, allowed_remote_exmods)
        self._broker = _broker_of(url)

    def send(
        self,
        target: Target,
        ctxt: dict,
        message: dict,
        wait_for_reply: bool | None = None,
        timeout: float | None = None,
        call_monitor_timeout: float | None = None,
        retry: int | None = None,
        transport_options: typing.Any = None,
    ) -> typing.Any:
        reply_future: futures.Future[str] | None = (
            futures.Future() if wait_for_reply else None
        )
        address = self._address(target, target.server)
        delivered = self._broker.deliver(
            address,
            jsonutils.dumps((ctxt, message)),
            fanout=bool(target.fanout),
            reply_future=reply_future,
        )
        must_be_delivered = wait_for_reply or (
            transport_options is not None and transport_options.at_least_once
        )
        if not delivered and must_be_delivered:
            raise exceptions.MessageUndeliverable(
                None, address[0], address[1:], message
            )
        return None if reply_future is None else self._result(reply_future, timeout)

    def _address(self, target: Target, server: str | None) -> Address:
        exchange = target.exchange or self._default_exchange
        return exchange, target.topic, None if target.fanout else server

    def _result(
        self, reply_future: 'futures.Future[str]', timeout: float | None
    ) -> typing.Any:
        try:
            reply, failure = jsonutils.loads(reply_future.result(timeout))
        except futures.TimeoutError:
            raise exceptions.MessagingTimeout(
                f'no reply within {timeout} seconds'
            ) from None
        if failure is not None:
            raise common.deserialize_remote_exception(
                failure, self._allowed_remote_exmods
            )
        return reply

    def listen(
        self, target: Target, batch_size: int, batch_timeout: float | None
    ) -> MemoryListener:
        addresses = (self._address(target, None), self._address(target, target.server))
        return MemoryListener(self._broker, addresses, batch_timeout)

    def send_notification(
        self,
        target: object,
        ctxt: object,
        message: object,
        version: float,
        retry: int | None = None,
    ) -> None:
        raise NotImplementedError('memory:// carries no notifications')

    def listen_for_notifications(
        self,
        targets_and_priorities: object,
        pool: str | None,
        batch_size: int,
        batch_timeout: float | None,
    ) -> None:
        raise NotImplementedError('memory:// carries no notifications')

    def cleanup(self) -> None:
        """Do nothing: the driver has no connection and no thread."""
