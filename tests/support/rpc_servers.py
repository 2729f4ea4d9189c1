"""Transports and servers of RPC tests."""

from collections.abc import Callable, Iterator
import contextlib
import typing

from manila_lite import conf as options
from manila_lite.rpc import transport

transport.init_backend(threading=True)


def transport_to(url: str) -> transport.Transport:
    """Connect to a broker with the options of a new service."""
    conf = options.new()
    # oslo.messaging registers the option with the first transport.
    import oslo_messaging

    oslo_messaging.TransportURL(conf)
    conf.set_override('transport_url', url)
    return transport.Transport(conf)


@contextlib.contextmanager
def running_servers() -> Iterator[Callable[[typing.Any], typing.Any]]:
    """Provide a function that starts servers; stop them at the end."""
    servers = []

    def start(server: typing.Any) -> typing.Any:
        server.start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.stop()
