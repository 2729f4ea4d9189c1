"""When the certificates end that the servers of an installation have."""

from collections.abc import Iterator
import contextlib
import socket
import ssl
import struct
import time
import typing
import urllib.parse

from oslo_config import cfg

from manila_lite import cmd
from manila_lite.cmd import known_options
from manila_lite.db import engines
from manila_lite.db.session import Database
from manila_lite.rpc import transport

PATIENCE = 5.0
"""Seconds to wait for a server."""

FIELDS = ('server', 'address', 'ends', 'days', 'authority_ends', 'problem')

_SSL_REQUEST = struct.pack('!ii', 8, 80877103)


class Server(typing.NamedTuple):
    """A server that a service verifies with the certificates in a file."""

    name: str
    host: str
    port: int
    authorities: str | None

    @property
    def address(self) -> str:
        return f'{self.host}:{self.port}'


def list_ends(conf: cfg.ConfigOpts, db: Database) -> list[dict[str, typing.Any]]:
    """Return what each server presents that the configuration wants TLS of."""
    return [_describe(server, db) for server in _servers(conf)]


def _describe(server: Server, db: Database) -> dict[str, typing.Any]:
    row: dict[str, typing.Any] = dict.fromkeys(FIELDS)
    row |= {'server': server.name, 'address': server.address}
    try:
        context = ssl.create_default_context(cafile=server.authorities)
        if server.authorities:
            row['authority_ends'] = _date(
                min(_seconds(one) for one in context.get_ca_certs())
            )
        ends = _ends(server, context, db)
    # An unreachable server is an answer as well, and so is one without TLS.
    except (OSError, ValueError) as error:
        row['problem'] = ' '.join(str(error).split())
    else:
        row |= {'ends': _date(ends), 'days': int((ends - time.time()) // 86400)}
    return row


def _ends(server: Server, context: ssl.SSLContext, db: Database) -> float:
    if server.name == 'database' and db.dialect == 'mysql':
        # The connection of its driver, which has verified the server.
        ends = db.read(lambda session: engines.find_certificate_end(session.connection))
        if ends is None:
            raise ValueError('the connection has no TLS')
        return float(ssl.cert_time_to_seconds(ends))
    with socket.create_connection((server.host, server.port), PATIENCE) as link:
        if server.name == 'database':
            link.sendall(_SSL_REQUEST)
            if link.recv(1) != b'S':
                raise ValueError('the server has no TLS')
        with context.wrap_socket(link, server_hostname=server.host) as secured:
            return _seconds(secured.getpeercert() or {})


def _seconds(certificate: typing.Mapping[str, typing.Any]) -> float:
    return float(ssl.cert_time_to_seconds(certificate['notAfter']))


def _date(seconds: float) -> str:
    return time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(seconds))


def _servers(conf: cfg.ConfigOpts) -> Iterator[Server]:
    if database := engines.find_verified_server(conf.database.connection):
        yield Server('database', *database)
    yield from _brokers(conf)
    locks = urllib.parse.urlsplit(conf.coordination.backend_url or '')
    query = dict(urllib.parse.parse_qsl(locks.query))
    if locks.hostname and (locks.scheme == 'rediss' or query.get('ssl') == 'true'):
        yield Server(
            'locks', locks.hostname, locks.port or 6379, query.get('ssl_ca_certs')
        )
    if conf.auth_strategy == 'keystone':
        yield from _keystone(conf)


def _brokers(conf: cfg.ConfigOpts) -> Iterator[Server]:
    transport.init_backend(threading=cmd.CONCURRENCY != 'eventlet')
    # No other command needs the library, and it wants the line before.
    import oslo_messaging

    from manila_lite.rpc import rabbit

    with contextlib.suppress(cfg.DuplicateOptError):
        conf.register_opts(oslo_messaging.transport._transport_opts)
    url = oslo_messaging.TransportURL.parse(conf)
    if url.transport not in ('rabbit', 'kombu'):
        return
    rabbit.prepare(conf)
    if conf[rabbit.GROUP].ssl:
        for host in url.hosts:
            authorities = conf[rabbit.GROUP].ssl_ca_file or None
            yield Server('broker', host.hostname, host.port or 5671, authorities)


def _keystone(conf: cfg.ConfigOpts) -> Iterator[Server]:
    known_options.register_token_options(conf)
    found = conf.keystone_authtoken
    url = urllib.parse.urlsplit(found.www_authenticate_uri or '')
    if url.scheme == 'https' and url.hostname:
        yield Server('Keystone', url.hostname, url.port or 443, found.cafile)
