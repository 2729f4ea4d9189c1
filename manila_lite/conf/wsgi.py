"""Connections of the built-in HTTP server."""

from oslo_config import cfg

GROUP = None
OPTS = [
    cfg.IntOpt(
        'client_max_connections',
        default=4000,
        min=10,
        help='Maximum number of open connections of an API process. Beyond '
        'it, a new connection takes the place of the one that has been '
        'inactive for longest. Needs two open files for each.',
    ),
    cfg.FloatOpt(
        'client_header_timeout',
        default=30,
        min=1,
        help='Seconds a client may take to send the line and headers of a '
        'request. After that the connection is closed.',
    ),
    cfg.FloatOpt(
        'client_body_timeout',
        default=60,
        min=1,
        help='Seconds a client may take to send the body of a request. Raise '
        'it for clients on very slow lines.',
    ),
    cfg.FloatOpt(
        'client_idle_timeout',
        default=120,
        min=1,
        help='Seconds after which a connection without activity is closed: '
        'without a request, or with a response that the client does not '
        'read. Keep it above the idle time of a proxy in front, so that the '
        'proxy closes first.',
    ),
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
