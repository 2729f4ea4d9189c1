"""The threaded HTTP server: waitress, with limits for its connections.

A connection uses a thread only while the application runs. What a client
may do in between is limited: the time to send a request, the time without
activity, and the number of connections.
"""

from collections.abc import Callable, Iterable, Sequence
import dataclasses
import errno
import io
import re
import socket
import struct
import threading
import time
import typing

from waitress import (
    adjustments as waitress_adjustments,
    buffers as waitress_buffers,
    channel as waitress_channel,
    parser as waitress_parser,
    server as waitress_server,
    task as waitress_task,
    utilities as waitress_utilities,
    wasyncore,
)

from manila_lite.api import middleware
from manila_lite.cmd.request_threads import RequestThreads

ANY_ADDRESS = '::'
"""The host that stands for all addresses, of IPv4 as well."""

SocketOption = tuple[int, int, int]
"""Level, name and value."""

BACKLOG = 1024
"""Connections that the system accepts before the server does."""

THREADS = 20
"""More than can run at the same time.

Most threads wait for the write lock of the database; with fewer threads,
reads would queue behind them. They cost 1 MiB in all. How they divide the work is
in `request_threads`.
"""


@dataclasses.dataclass(frozen=True)
class Limits:
    """What clients may use; times in seconds, the size in bytes."""

    connections: int
    body_size: int
    header_time: float
    body_time: float
    idle_time: float


def listen_on_any_address(port: int, backlog: int) -> socket.socket:
    """Return a socket that listens on all addresses, IPv4 and IPv6.

    On a machine without IPv6 it listens on those of IPv4.
    """
    try:
        return socket.create_server(
            (ANY_ADDRESS, port),
            family=socket.AF_INET6,
            backlog=backlog,
            dualstack_ipv6=True,
        )
    except OSError as error:
        if error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
            raise
    return socket.create_server(('', port), backlog=backlog)


_ACCEPTED_AT_ONCE = 64
"""Connections to accept before other sockets are looked at again.

One, if other processes accept them as well: so that each gets its part.
"""

_CLOSING_INTERVAL = 0.02
"""Seconds between looks for requests that still run, when it closes."""

_LAST_CHANCE = 1.0
"""Seconds for requests that run still when those that wait are dropped."""

_MOST_FORGOTTEN = 64 << 20
"""Longest body that is read although it is refused."""

_READS = ('GET', 'HEAD', 'OPTIONS')

_END_OF_HEADERS = b'\r\n\r\n'

_PASS_INTERVAL = 1
"""Seconds between searches for connections beyond their time limits."""


class HttpServer:
    """An HTTP server on all addresses of a host, with one pool of threads."""

    def __init__(
        self,
        app: Callable,
        host: str,
        port: int,
        limits: Limits,
        socket_options: Iterable[tuple[int, int, int]] = (),
        threads: int = THREADS,
        sockets: Sequence[socket.socket] = (),
    ):
        settings = waitress_adjustments.Adjustments(
            host=host,
            port=port,
            ident='manila_lite',
            # The application reads them if it is configured to
            clear_untrusted_proxy_headers=False,
            asyncore_use_poll=True,
            # waitress refuses a body of this size, too
            max_request_body_size=limits.body_size + 1,
            backlog=BACKLOG,
            cleanup_interval=_PASS_INTERVAL,
            # Connections are limited by _Listener, not by waitress, which
            # stops to accept any
            connection_limit=1 << 30,
        )
        settings.socket_options = [*settings.socket_options, *socket_options]
        self._map: dict[int, typing.Any] = {}
        self._threads = RequestThreads(threads, self._poll, self._wake)
        self._listeners = [
            _Listener(
                app,
                map=self._map,
                adj=settings,
                dispatcher=self._threads,
                limits=limits,
                accepted_at_once=1 if sockets else _ACCEPTED_AT_ONCE,
                **where,
            )
            for where in _sockets(host, port, settings, sockets)
        ]
        self.port = self._listeners[0].effective_port

    def run(self) -> None:
        """Serve until `close`; return when all responses are sent."""
        self._threads.run()

    def _poll(self, timeout: float) -> bool:
        wasyncore.poll2(timeout, self._map)
        return bool(self._map)

    def _wake(self) -> None:
        self._listeners[0].trigger.pull_trigger()

    def close(self, timeout: float = 0.0) -> None:
        """Accept nothing more; end after all requests that were received.

        They get `timeout` seconds; then those that wait are dropped.
        """
        trigger = self._listeners[0].trigger
        trigger.pull_trigger(self._stop_accepting)
        self._wait_while_busy(timeout)
        self._threads.drop_waiting()
        self._wait_while_busy(_LAST_CHANCE)
        pulled = threading.Event()

        def close_connections() -> None:
            # A loop that is awake anyway would close the trigger too soon.
            pulled.wait()
            self._close_connections()

        try:
            trigger.pull_trigger(close_connections)
        finally:
            pulled.set()

    def _wait_while_busy(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        pause = threading.Event()
        while self._is_busy() and time.monotonic() < deadline:
            pause.wait(_CLOSING_INTERVAL)

    def _stop_accepting(self) -> None:
        for listener in self._listeners:
            wasyncore.dispatcher.close(listener)
        for channel in self._channels():
            channel.close_if_idle()

    def _is_busy(self) -> bool:
        return any(not found.is_replaceable for found in self._channels())

    def _channels(self) -> list['_Channel']:
        return [
            found for found in list(self._map.values()) if isinstance(found, _Channel)
        ]

    def _close_connections(self) -> None:
        for listener in self._listeners:
            for channel in listener.active_channels.values():
                channel.close_when_flushed = True
            listener.close()


def _sockets(
    host: str,
    port: int,
    settings: waitress_adjustments.Adjustments,
    shared: Sequence[socket.socket],
) -> list[dict[str, typing.Any]]:
    """Return the arguments of a listener for each socket."""
    if not shared and host != ANY_ADDRESS:
        return [{'sockinfo': address} for address in settings.listen]
    return [
        {
            '_sock': found,
            'sockinfo': (found.family, found.type, found.proto, found.getsockname()),
            'bind_socket': False,
        }
        for found in shared or [listen_on_any_address(port, BACKLOG)]
    ]


_ORIGIN = re.compile(rb'^origin:[ \t]*([^\r\n]*)\r', re.IGNORECASE | re.MULTILINE)
_LONGEST_ORIGIN = 1000


class _Parser(waitress_parser.HTTPRequestParser):
    """Reads what is refused for its length, and forgets it.

    A client that still sends when the connection is closed sees a broken
    pipe instead of the response.
    """

    command = 'GET'
    path = request_uri = '/'
    query = ''
    url_scheme = 'http'
    """What the application is shown of a request that cannot be parsed."""

    expect_continue: bool
    _left = 0
    _tail = b''

    def received(self, data: bytes) -> int:
        if self._left:
            return self._forget(data)
        first = self.header_plus
        count = super().received(data)
        if isinstance(self.error, waitress_utilities.RequestHeaderFieldsTooLarge):
            self._refuse_headers(first + data)
        elif isinstance(self.error, waitress_utilities.RequestEntityTooLarge):
            self._refuse_body()
        return count

    def _refuse_headers(self, received: bytes) -> None:
        self._left = _MOST_FORGOTTEN
        self._look_through(received)

    def _look_through(self, received: bytes) -> None:
        """Look for the end of headers that are refused.

        Whether a browser shows the response to its page depends on Origin.
        """
        if found := _ORIGIN.search(received):
            self.headers['ORIGIN'] = found[1].decode('latin-1').rstrip()
        self._tail = received[-_LONGEST_ORIGIN:]
        self.completed = self._left == 0 or _END_OF_HEADERS in received

    def _refuse_body(self) -> None:
        if self.chunked:
            self.body_rcv.buf = _Nothing()
            self.completed = (
                self.body_rcv.completed
                or self.body_rcv.error is not None
                or self.body_bytes_received > _MOST_FORGOTTEN
            )
        elif self.expect_continue:
            # It waits before it sends.
            self.expect_continue = False
        elif self.content_length <= _MOST_FORGOTTEN:
            self._left = self.content_length
            self.completed = self._left == 0

    def _forget(self, data: bytes) -> int:
        count = min(self._left, len(data))
        self._left -= count
        if self.headers_finished:
            self.completed = self._left == 0
        else:
            self._look_through(self._tail + data[:count])
        return count


class _Nothing(waitress_buffers.OverflowableBuffer):
    """A buffer that keeps nothing."""

    def __init__(self) -> None:
        super().__init__(1)

    def append(self, s: bytes) -> None:
        pass


class _Refusal(waitress_task.WSGITask):
    """Lets the application answer what the server refuses.

    The response has the headers and the form of all others then.
    """

    def execute(self) -> None:
        error = self.request.error
        if isinstance(error, waitress_utilities.InternalServerError):
            # The application has failed.
            self.complete = True
            waitress_task.ErrorTask.execute(self)
            return
        environ = self.get_environment()
        environ['wsgi.input'] = io.BytesIO()
        environ[middleware.REFUSED] = (error.code, error.body)
        self.set_close_on_finish()
        super().execute()


class _Channel(waitress_channel.HTTPChannel):
    """A connection that blocks no thread and knows what it waits for."""

    parser_class = _Parser
    error_task_class = _Refusal

    is_postponed = False
    """Whether the next request waits until the client reads a response."""

    _timed = None
    _timed_since = 0.0
    _active_at = 0.0

    @property
    def last_activity(self) -> float:
        """The time of `time.monotonic` at which something was sent."""
        return self._active_at

    @last_activity.setter
    def last_activity(self, wall_time: float) -> None:
        # waitress has the time of a clock that an administrator may set.
        self._active_at = time.monotonic()

    def received(self, data: bytes) -> bool:
        accepted = super().received(data)
        self._note_progress()
        return accepted

    def _note_progress(self) -> None:
        """Remember since when headers, or a body, are being received."""
        request = self.request
        part = request and (request, request.headers_finished)
        if part != self._timed:
            self._timed, self._timed_since = part, time.monotonic()

    def is_overdue(self, limits: Limits, now: float) -> bool:
        """Return whether the client has used up its time."""
        if not self.is_replaceable:
            return False
        if now - self.last_activity > limits.idle_time:
            return True
        if self._timed is None:
            return False
        _, is_body = self._timed
        limit = limits.body_time if is_body else limits.header_time
        return now - self._timed_since > limit

    @property
    def is_quick(self) -> bool:
        """Whether the next request changes nothing, and waits for no lock."""
        return self.requests[0].command in _READS

    @property
    def is_replaceable(self) -> bool:
        """Return whether no thread is, or will be, busy for the client."""
        return not self.requests or self.is_postponed

    def close_if_idle(self) -> None:
        """Close unless there is a request, or a response to send."""
        if not (self.requests or self.request or self.total_outbufs_len):
            self.handle_close()

    def drop(self) -> None:
        """Close at once, with what the client has not read."""
        if self.total_outbufs_len:
            self.socket.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)
            )
        self.handle_close()

    def _flush_outbufs_below_high_watermark(self) -> None:
        """Never wait for the client in a thread of the application.

        What the client does not read is bounded: a response is one body,
        and the next request is postponed until it is sent.
        """

    def postpone(self) -> bool:
        """Postpone the next request if a response is not sent yet."""
        self.is_postponed = bool(self.total_outbufs_len)
        return self.is_postponed

    def writable(self) -> bool:
        return bool(super().writable() or self.is_postponed)

    def handle_write(self) -> None:
        super().handle_write()
        if self.is_postponed and not self.total_outbufs_len:
            self.is_postponed = False
            if self.connected and self.requests:
                self.server.add_task(self)


class _Listener(waitress_server.TcpWSGIServer):
    """A listening socket that always has room for one more connection."""

    channel_class = _Channel

    def __init__(
        self, *args: object, limits: Limits, accepted_at_once: int, **kwargs: object
    ):
        self._limits = limits
        self._accepted_at_once = accepted_at_once
        self._next_pass = 0.0
        super().__init__(*args, **kwargs)

    def add_task(self, channel: _Channel) -> None:
        if not channel.postpone():
            super().add_task(channel)

    def pull_trigger(self) -> None:
        """Let the leader look at what has changed, unless it is the caller."""
        if not self.task_dispatcher.is_leader():
            super().pull_trigger()

    def readable(self) -> bool:
        if (now := time.monotonic()) >= self._next_pass:
            self._next_pass = now + _PASS_INTERVAL
            self._drop_overdue(now)
        return super().readable() and (
            len(self._map) < self._limits.connections
            or any(channel.is_replaceable for channel in self._channels())
        )

    def handle_accept(self) -> None:
        for _ in range(self._accepted_at_once):
            if len(self._map) >= self._limits.connections:
                self._close_least_active()
            known = len(self._map)
            super().handle_accept()
            if len(self._map) == known:
                return

    def _close_least_active(self) -> None:
        replaceable = [
            channel for channel in self._channels() if channel.is_replaceable
        ]
        if replaceable:
            min(replaceable, key=lambda found: found.last_activity).drop()

    def _channels(self) -> list[_Channel]:
        """Return the connections of all addresses."""
        return [found for found in self._map.values() if type(found) is _Channel]

    def maintenance(self, now: float) -> None:
        """Do nothing: the time of waitress may be set."""

    def _drop_overdue(self, now: float) -> None:
        for channel in list(self.active_channels.values()):
            if channel.is_overdue(self._limits, now):
                channel.drop()
