"""Addresses and rhythms of the processes."""

from oslo_config import cfg

GROUP = None
OPTS = [
    cfg.HostAddressOpt(
        'osapi_share_listen',
        default='::',
        help='Address the API binds to. Narrow it to the '
        'network the clients or the proxy use.',
    ),
    cfg.PortOpt(
        'osapi_share_listen_port',
        default=8786,
        help='Port of the API. Change it when it is taken, and '
        'the endpoint in the service catalogue with it.',
    ),
    cfg.BoolOpt(
        'osapi_share_use_ssl',
        default=False,
        help='Not offered: end TLS in a proxy before the API. The '
        'service refuses to start with True, so that no file '
        'that asks for TLS is ever served in the clear.',
    ),
    cfg.IntOpt(
        'report_interval',
        default=10,
        help='Seconds between heartbeats. Lower it, with '
        'service_down_time, to notice a dead node earlier.',
    ),
    cfg.IntOpt(
        'cleanup_interval',
        default=1800,
        min=300,
        help='Seconds between removals of services that are long '
        'gone. Lower it where nodes come and go.',
    ),
    cfg.IntOpt(
        'periodic_interval',
        default=60,
        help='Seconds between reports of capacity and '
        'capabilities. Raise it when back ends are slow to '
        'ask.',
    ),
    cfg.IntOpt(
        'periodic_fuzzy_delay',
        default=60,
        help='Most seconds a periodic task waits at start, at '
        'random, so that nodes started together do not ask '
        'together. 0 starts at once.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, GROUP)
