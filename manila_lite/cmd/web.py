"""The web servers: waitress with threads, eventlet's own with eventlet."""

from collections.abc import Callable, Iterable, Iterator, Sequence
import contextlib
import logging
import resource
import socket
import typing

from oslo_config import cfg

from manila_lite import conf as options
from manila_lite.cmd import CONCURRENCY, connections

LOG = logging.getLogger(__name__)

_OTHER_FILES = 500
"""Files that a process may have open beside its client connections."""

_FILES_PER_CONNECTION = 2
"""A long response that the client does not read is kept in a file."""


NO_BODY = 1024
"""Bytes that the body of a request without one may have."""

_FEW_CLIENTS = connections.Limits(
    connections=100, body_size=NO_BODY, header_time=10, body_time=10, idle_time=60
)
_FEW_THREADS = 4


def web_server(
    app: Callable, conf: cfg.ConfigOpts, sockets: Sequence[socket.socket] = ()
) -> typing.Any:
    """Return a listening server; `run` serves until `close`.

    It listens on sockets that it shares with other processes, if given.
    """
    return _listen(
        app,
        conf.osapi_share_listen,
        conf.osapi_share_listen_port,
        _limits(conf),
        _keepalive_options(conf),
        connections.THREADS,
        sockets,
    )


def shared_sockets(conf: cfg.ConfigOpts) -> list[socket.socket]:
    """Return listening sockets for the API servers of several processes."""
    host, port = conf.osapi_share_listen, conf.osapi_share_listen_port
    with _report_refusal(host, port):
        if host == connections.ANY_ADDRESS:
            return [connections.listen_on_any_address(port, connections.BACKLOG)]
        found = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        return [
            socket.create_server(
                address[:2], family=family, backlog=connections.BACKLOG
            )
            for family, *_, address in found
        ]


def small_server(app: Callable, host: str, port: int) -> typing.Any:
    """Return a listening server for a few clients with short requests."""
    return _listen(app, host, port, _FEW_CLIENTS, [], _FEW_THREADS)


def _listen(
    app: Callable,
    host: str,
    port: int,
    limits: connections.Limits,
    socket_options: list[connections.SocketOption],
    threads: int,
    sockets: Sequence[socket.socket] = (),
) -> typing.Any:
    if host == connections.ANY_ADDRESS:
        app = _with_plain_addresses(app)
    with _report_refusal(host, port):
        return _server_class()(
            app, host, port, limits, socket_options, threads, sockets
        )


@contextlib.contextmanager
def _report_refusal(host: str, port: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise options.BadConfiguration(
            f'cannot listen on {host} port {port}: {error.strerror}'
        ) from error


def _with_plain_addresses(app: Callable) -> Callable:
    """Name IPv4 clients by their IPv4 address, not by the mapped one."""

    def call(environ: dict, start_response: Callable) -> Iterable[bytes]:
        address = environ.get('REMOTE_ADDR', '')
        environ['REMOTE_ADDR'] = address.removeprefix('::ffff:')
        return app(environ, start_response)

    return call


def load_server() -> None:
    """Import what serves requests, for processes that are forked."""
    _server_class()


def _server_class() -> Callable:
    if CONCURRENCY == 'eventlet':
        return _EventletServer
    from manila_lite.cmd.connections import HttpServer

    return HttpServer


def _limits(conf: cfg.ConfigOpts) -> connections.Limits:
    return connections.Limits(
        connections=_possible_connections(conf.client_max_connections),
        body_size=conf.max_request_body_size,
        header_time=conf.client_header_timeout,
        body_time=conf.client_body_timeout,
        idle_time=conf.client_idle_timeout,
    )


def _possible_connections(wanted: int) -> int:
    """Return the wanted number, or fewer if the system allows fewer files.

    The soft limit of open files, often 1024, is raised as far as necessary.
    """
    needed = _OTHER_FILES + wanted * _FILES_PER_CONNECTION
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft != unlimited and soft < needed:
        soft = needed if hard == unlimited else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == unlimited or soft >= needed:
        return wanted
    files = max(soft - _OTHER_FILES, soft // 2)
    possible = min(wanted, files // _FILES_PER_CONNECTION)
    LOG.warning(
        'client_max_connections is %d, but the limit of %d open files allows '
        '%d; raise LimitNOFILE of the service',
        wanted,
        soft,
        possible,
    )
    return possible


def _keepalive_options(conf: cfg.ConfigOpts) -> list[connections.SocketOption]:
    """Return the options of a connection; those of the system if unset."""
    if not conf.tcp_keepalive:
        return []
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    if conf.tcp_keepalive_interval is not None:
        options.append(
            (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, conf.tcp_keepalive_interval)
        )
    if conf.tcp_keepalive_count is not None:
        options.append(
            (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, conf.tcp_keepalive_count)
        )
    return options


class _EventletServer:
    """The WSGI server of eventlet.

    It limits how long a client may be inactive, not the duration of a
    request: a connection occupies a greenlet only.
    """

    def __init__(
        self,
        app: Callable,
        host: str,
        port: int,
        limits: connections.Limits,
        options: Iterable[connections.SocketOption],
        threads: int,
        sockets: Sequence[socket.socket] = (),
    ):
        import eventlet
        import eventlet.wsgi

        self._app, self._limits = app, limits
        if host == connections.ANY_ADDRESS:
            self._socket = connections.listen_on_any_address(port, connections.BACKLOG)
        else:
            family = socket.AF_INET6 if ':' in host else socket.AF_INET
            self._socket = eventlet.listen(
                (host, port), family=family, backlog=connections.BACKLOG
            )
        for option in options:  # connections inherit them
            self._socket.setsockopt(*option)
        self.port = self._socket.getsockname()[1]

    def run(self) -> None:
        import eventlet.wsgi

        self._running = eventlet.getcurrent()
        eventlet.wsgi.server(
            self._socket,
            self._app,
            log_output=False,
            debug=False,
            max_size=self._limits.connections,
            keepalive=self._limits.idle_time,
            socket_timeout=min(self._limits.header_time, self._limits.body_time),
        )

    def close(self, timeout: float) -> None:
        import eventlet

        eventlet.kill(self._running, SystemExit)
