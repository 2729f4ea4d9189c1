"""What a web server listens on, and what its clients may use."""

import dataclasses
import errno
import socket

ANY_ADDRESS = '::'
"""The host that stands for all addresses, of IPv4 as well."""

SocketOption = tuple[int, int, int]
"""Level, name and value."""

BACKLOG = 1024
"""Connections that the system accepts before the server does."""

THREADS = 20
"""More than can run at the same time.

Most threads wait for the write lock of the database; with fewer threads,
reads would queue behind them. They cost 1 MiB in all.
"""


@dataclasses.dataclass(frozen=True)
class Limits:
    """What clients may use; times in seconds."""

    connections: int
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
