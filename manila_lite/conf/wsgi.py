"""Sockets of the built-in HTTP server."""

from oslo_config import cfg

GROUP = None
OPTS = [
    cfg.BoolOpt(
        'tcp_keepalive',
        default=True,
        help='Probe idle client connections. Turn off when a proxy '
        'in front does so.',
    ),
    cfg.IntOpt(
        'tcp_keepalive_interval',
        help='Seconds between probes; the system decides when '
        'unset. Lower it when dead clients hold connections.',
    ),
    cfg.IntOpt(
        'tcp_keepalive_count',
        help='Unanswered probes after which a connection is '
        'closed; the system decides when unset.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, GROUP)
