"""Addresses and intervals of the services."""

from oslo_config import cfg

GROUP = None
OPTS = [
    cfg.HostAddressOpt(
        'osapi_share_listen',
        default='::',
        help='Address the API listens on; :: stands for all addresses of '
        'IPv6 and of IPv4. Restrict it to the network of the clients or of '
        'the proxy.',
    ),
    cfg.PortOpt(
        'osapi_share_listen_port',
        default=8786,
        help='Port of the API. Change it when it is in use, and the '
        'endpoint in the service catalogue with it.',
    ),
    cfg.BoolOpt(
        'osapi_share_use_ssl',
        default=False,
        help='Not supported: terminate TLS in a proxy in front of the API. '
        'The service refuses to start with True, so that a file that '
        'requests TLS never leads to plain HTTP.',
    ),
    cfg.FloatOpt(
        'api_drain_time',
        default=0,
        min=0,
        help='Seconds for which an API process that is to stop still answers '
        'requests, while its health check fails already. Set it to longer '
        'than a proxy in front takes to find that out, so that no client '
        'notices the stop.',
    ),
    cfg.IntOpt(
        'graceful_shutdown_timeout',
        default=60,
        min=0,
        help='Seconds that a process that is to stop waits for driver calls, '
        'copies and requests in progress, beyond the time for which it still '
        'answers (api_drain_time, drain_time of section [monitoring]); 0 '
        'waits for as long as they take. Raise it, and TimeoutStopSec of the '
        'systemd unit to more than that, if driver calls take longer.',
    ),
    cfg.IntOpt(
        'report_interval',
        default=10,
        help='Seconds between heartbeats. Lower it, together with '
        'service_down_time, to detect a dead node earlier.',
    ),
    cfg.IntOpt(
        'cleanup_interval',
        default=1800,
        min=300,
        help='Seconds between removals of services that have been down for '
        'long. Lower it where nodes come and go.',
    ),
    cfg.IntOpt(
        'periodic_interval',
        default=60,
        help='Seconds between reports of capacity and capabilities. Raise '
        'it when back ends respond slowly.',
    ),
    cfg.IntOpt(
        'periodic_fuzzy_delay',
        default=60,
        help='Maximum random delay in seconds before the first run of a '
        'periodic task, so that services started together do not run it '
        'together; never more than the interval of the task. Set it to 0 to '
        'run all tasks at the start.',
    ),
]
