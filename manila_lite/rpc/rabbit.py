"""RabbitMQ: the options of its driver, and connections without oslo.messaging.

A hint needs none of what oslo.messaging does for each message, which has the
receiver poll and the sender wait for a confirmation. A connection here belongs
to one thread that blocks until the broker says something or another thread
wakes it. The addresses, accounts and TLS options are those of oslo.messaging.
"""

from collections.abc import Callable, Iterator
import contextlib
import errno
import logging
import os
import selectors
import socket
import ssl
import struct
import sys
import time
import typing
from urllib import parse

import amqp
from kombu import exceptions as kombu

# Kombu does so to connect; here, forked processes have it in common.
from kombu.transport import pyamqp  # noqa: F401
from oslo_config import cfg

from manila_lite import exception

LOG = logging.getLogger(__name__)

GROUP = 'oslo_messaging_rabbit'

EXCHANGE = 'manila-lite-hints'
"""The exchange, and how the names of its queues begin."""

CONNECT_TIMEOUT = 5.0
"""Seconds for each step of a new connection to one host."""

FRAME_TIMEOUT = 5.0
"""Seconds for the rest of a frame that has begun, and for each write."""

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0
"""Seconds before another try to connect; they double from the first on."""

FAILED: tuple[type[Exception], ...] = (OSError, amqp.exceptions.AMQPError)
"""What a connection that is lost or refused raises."""

_HEARTBEAT = 8
_TRANSIENT = 1
_PROTOCOLS = {
    name.removeprefix('PROTOCOL_').lower(): getattr(ssl, name)
    for name in dir(ssl)
    if name.startswith('PROTOCOL_')
}


def prepare(conf: cfg.ConfigOpts) -> tuple[type[Exception], ...]:
    """Use quorum queues, which survive a broker, unless configured.

    The queue manager stays off, and transient queues keep random names
    that expire: it would give two services of one program on one host the
    same reply queue, and each would take replies meant for the other.

    Returns the errors that oslo does not wrap: of a broker that cannot be
    reached, and of one that refuses a password or a virtual host.
    """
    from oslo_messaging import opts

    conf.register_opts(dict(opts.list_opts())[GROUP], GROUP)
    if not conf[GROUP].rabbit_ha_queues:
        conf.set_default('rabbit_quorum_queue', True, GROUP)
        conf.set_default('rabbit_transient_quorum_queue', True, GROUP)
    return kombu.KombuError, amqp.AMQPError


class Blocked(OSError):
    """The broker takes no messages at the moment: its memory or disk is full."""


class Refused(Exception):
    """The broker does not let this account send or receive hints."""


_NOT_USABLE: tuple[type[Exception], ...] = (*FAILED, Refused)


class Waker:
    """Wakes the one thread that waits here, from any thread.

    A thread waits for the socket of its connection as well.
    """

    def __init__(self) -> None:
        self._near, self._far = socket.socketpair()
        self._near.setblocking(False)
        self._far.setblocking(False)
        self._is_set = False
        self.selector = selectors.DefaultSelector()
        self.selector.register(self._far, selectors.EVENT_READ)

    def wake(self) -> None:
        if not self._is_set:
            self._is_set = True
            # Closed, if the thread has ended meanwhile.
            with contextlib.suppress(OSError):
                self._near.send(b'.')

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until woken, or until something else is readable: then True."""
        ready = [key.fileobj for key, _ in self.selector.select(timeout)]
        if self._far in ready:
            with contextlib.suppress(BlockingIOError):
                self._far.recv(64)
            # What was asked for before this is seen by the caller.
            self._is_set = False
            ready.remove(self._far)
        return bool(ready)

    def close(self) -> None:
        self.selector.close()
        self._near.close()
        self._far.close()


class Brokers:
    """The hosts of `transport_url`, and how to connect to one of them."""

    def __init__(self, conf: cfg.ConfigOpts, url: typing.Any):
        self._options = conf[GROUP]
        self._hosts = [
            (f'{_bracketed(host.hostname)}:{host.port or 5672}', host)
            for host in url.hosts
        ] or [('localhost:5672', None)]
        self._virtual_host = parse.unquote(url.virtual_host or '') or '/'
        # Where to begin: processes are spread over the hosts.
        self._first = os.getpid() % len(self._hosts)

    def connect(self, waker: Waker, purpose: str) -> 'Link':
        """Return a connection to the first host that accepts one.

        Raises the error of a host that has refused it, or else of the last.
        """
        failures: list[Exception] = []
        begin, number = self._first, len(self._hosts)
        for index in range(begin, begin + number):
            address, host = self._hosts[index % number]
            try:
                link = self._connect_to(address, host, waker, purpose)
            except FAILED as error:
                LOG.debug('No connection to %s for hints: %s', address, error)
                failures.append(error)
            else:
                self._first = index % number
                return link
        failures.sort(key=lambda error: getattr(error, 'reply_code', None) is None)
        raise failures[0]

    def _connect_to(
        self, address: str, host: typing.Any, waker: Waker, purpose: str
    ) -> 'Link':
        program = os.path.basename(sys.argv[0])
        connection = amqp.Connection(
            host=address,
            userid=(host and host.username) or 'guest',
            password=(host and host.password) or 'guest',
            login_method=self._options.rabbit_login_method,
            virtual_host=self._virtual_host,
            ssl=self._tls(host and host.hostname),
            connect_timeout=CONNECT_TIMEOUT,
            heartbeat=self._options.heartbeat_timeout_threshold,
            client_properties={
                'capabilities': {
                    'authentication_failure_close': True,
                    'connection.blocked': True,
                    'consumer_cancel_notify': True,
                },
                'connection_name': f'{program}:{os.getpid()}:{purpose}',
            },
        )
        try:
            connection.connect()
            return Link(connection, waker, self._options.heartbeat_rate)
        except BaseException:
            connection.collect()
            raise

    def _tls(self, hostname: str | None) -> dict[str, typing.Any] | bool:
        """Return what oslo.messaging would use for this host."""
        options = self._options
        if not options.ssl:
            return False
        found: dict[str, typing.Any] = {}
        if options.ssl_version:
            found['ssl_version'] = _PROTOCOLS.get(options.ssl_version.lower())
        if options.ssl_key_file:
            found['keyfile'] = options.ssl_key_file
        if options.ssl_cert_file:
            found['certfile'] = options.ssl_cert_file
        if options.ssl_ca_file:
            found['ca_certs'] = options.ssl_ca_file
            found['cert_reqs'] = ssl.CERT_REQUIRED
            found['server_hostname'] = hostname
        return found or True


def _bracketed(hostname: str | None) -> str:
    name = hostname or 'localhost'
    return f'[{name}]' if ':' in name else name


class Link:
    """An open connection; only `close` may be called after an error."""

    def __init__(self, connection: typing.Any, waker: Waker, heartbeat_rate: int):
        self.is_blocked = False
        self._connection = connection
        self._waker = waker
        self._rate = max(heartbeat_rate, 1)
        connection.on_blocked = self._on_blocked
        connection.on_unblocked = self._on_unblocked
        self._socket = connection.transport.sock
        self._socket.settimeout(FRAME_TIMEOUT)
        with _read_as_error():
            self.channel = connection.channel()
        waker.selector.register(self._socket, selectors.EVENT_READ)
        self._next_beat = self._beat_after(time.monotonic())

    def declare_exchange(self) -> None:
        """Raises Refused if the account may not have it."""
        try:
            with _read_as_error():
                self.channel.exchange_declare(
                    EXCHANGE, 'direct', durable=True, auto_delete=False
                )
        except amqp.exceptions.ChannelError as error:
            raise Refused(str(error)) from error

    def open_channel(self) -> typing.Any:
        with _read_as_error():
            return self._connection.channel()

    def on_returned(self, call: Callable[[str, bytes], None]) -> None:
        """Call with address and body of each message that no queue got."""
        self.channel.events['basic_return'].add(
            lambda error, exchange, address, message: call(address, message.body)
        )

    def publish(self, address: str, body: bytes) -> None:
        """Send a message that is neither stored nor confirmed."""
        if self.is_blocked:
            raise Blocked(errno.EBUSY, 'the broker takes no messages at the moment')
        self.channel.send_method(
            amqp.spec.Basic.Publish,
            'Bssbb',
            (0, EXCHANGE, address, True, False),
            amqp.Message(body, delivery_mode=_TRANSIENT),
        )

    def wait(self) -> None:
        """Wait until the broker says something or the waker is used.

        What the broker says is handled, and heartbeats are sent and expected.
        """
        now = time.monotonic()
        left = None if self._next_beat is None else max(0.0, self._next_beat - now)
        if self._has_decrypted() or self._waker.wait(left):
            with _read_as_error():
                self._read()
        if self._next_beat is not None and time.monotonic() >= self._next_beat:
            self._connection.heartbeat_tick(self._rate)
            self._next_beat = self._beat_after(time.monotonic())

    def close(self, *, graceful: bool = False) -> None:
        """Close; if graceful, the broker has got all that was sent."""
        with contextlib.suppress(KeyError, ValueError):
            self._waker.selector.unregister(self._socket)
        with contextlib.suppress(*FAILED), _read_as_error():
            if graceful:
                self._connection.close()
        with contextlib.suppress(*FAILED):
            self._connection.collect()

    def _read(self) -> None:
        """Handle one method of the broker; the rest of it may be on its way."""
        while True:
            frame = self._connection.transport.read_frame()
            if self._connection.on_inbound_frame(frame) or frame[0] == _HEARTBEAT:
                return

    def _has_decrypted(self) -> bool:
        pending = getattr(self._socket, 'pending', None)
        return pending is not None and pending() > 0

    def _beat_after(self, now: float) -> float | None:
        interval = self._connection.heartbeat
        return now + interval / self._rate if interval else None

    def _on_blocked(self, reason: str) -> None:
        self.is_blocked = True
        LOG.warning('The message broker takes no hints at the moment: %s', reason)

    def _on_unblocked(self) -> None:
        self.is_blocked = False
        LOG.info('The message broker takes hints again')


@contextlib.contextmanager
def _read_as_error() -> Iterator[None]:
    """Treat input that cannot be parsed like a lost connection."""
    try:
        yield
    except (LookupError, ValueError, TypeError, AttributeError, struct.error) as error:
        if isinstance(error, OSError):
            raise  # a certificate that is not accepted is a ValueError, too
        raise amqp.exceptions.UnexpectedFrame(repr(error)) from error


class Publisher:
    """Sends messages from one thread; connects when there is one to send.

    `returned` is called with the address and body of one that no queue got.
    """

    def __init__(
        self,
        brokers: Brokers,
        returned: Callable[[str, bytes], None],
        clock: Callable[[], float] = time.monotonic,
    ):
        self._brokers, self._returned, self._clock = brokers, returned, clock
        self._waker = Waker()
        self._link: Link | None = None
        self._failure: Exception | None = None
        self._pause = FIRST_PAUSE
        self._next_try = 0.0

    def wake(self) -> None:
        self._waker.wake()

    def wait(self) -> None:
        """Wait until woken; handle what the broker says meanwhile."""
        if self._link is None:
            self._waker.wait()
            return
        try:
            self._link.wait()
        except FAILED as error:
            self._lose(error)

    def publish(self, address: str, body: bytes) -> bool:
        """Send a message; False if the account may not.

        Raises ServiceUnavailable if the message is lost.
        """
        try:
            link = self._link or self._connect()
            link.publish(address, body)
        except Refused:
            return False
        except FAILED as error:
            if not isinstance(error, Blocked):
                self._lose(error)
            raise exception.ServiceUnavailable(f'{error}') from error
        return True

    def close(self) -> None:
        if self._link is not None:
            self._link.close(graceful=True)
            self._link = None
        self._waker.close()

    def _connect(self) -> Link:
        """Return a new connection; for a while after a failure, only raise it."""
        if self._failure is not None and self._clock() < self._next_try:
            raise self._failure
        link = None
        try:
            link = self._brokers.connect(self._waker, 'hints sent')
            link.declare_exchange()
        except _NOT_USABLE as error:
            if link is not None:
                link.close()
            self._fail(error)
            raise
        link.on_returned(self._returned)
        self._failure, self._pause = None, FIRST_PAUSE
        self._link = link
        return link

    def _lose(self, error: Exception) -> None:
        """Give the connection up; the next message makes another one."""
        if self._link is None:
            return
        LOG.debug('The connection for hints is lost: %s', error)
        self._link.close()
        self._link = None
        if getattr(error, 'reply_code', None) == amqp.exceptions.AccessRefused.code:
            self._fail(Refused(str(error)))

    def _fail(self, error: Exception) -> None:
        if isinstance(error, Refused) and not isinstance(self._failure, Refused):
            LOG.warning(
                'This account may not send hints by the exchange %s; they go the '
                'slower way of calls: %s',
                EXCHANGE,
                error,
            )
        self._failure = error
        self._next_try = self._clock() + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
