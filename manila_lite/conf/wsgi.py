"""Socket options of the built-in HTTP server."""

from oslo_config import cfg

GROUP = None
OPTS = [
    cfg.BoolOpt(
        'tcp_keepalive',
        default=True,
        help='Probe idle client connections. Turn it off when a proxy in '
        'front does so.',
    ),
    cfg.IntOpt(
        'tcp_keepalive_interval',
        help='Seconds between probes; the default of the system when '
        'unset. Lower it when dead clients hold connections.',
    ),
    cfg.IntOpt(
        'tcp_keepalive_count',
        help='Number of unanswered probes after which a connection is '
        'closed; the default of the system when unset.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, GROUP)
