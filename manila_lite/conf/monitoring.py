"""Where processes answer questions about themselves."""

from oslo_config import cfg

GROUP = cfg.OptGroup('monitoring', title='Health and metrics of processes')
OPTS = [
    cfg.HostAddressOpt(
        'listen',
        default='127.0.0.1',
        help='Address at which manila-lite-scheduler, manila-lite-share and '
        'manila-lite-data answer /healthcheck and /metrics; :: stands for '
        'all addresses of IPv6 and of IPv4. There is no authentication: '
        'choose an address that only monitoring and load balancers reach.',
    ),
    cfg.PortOpt(
        'scheduler_port',
        help='Port of manila-lite-scheduler; without it, the process answers '
        'nothing. Set it to monitor each process by itself.',
    ),
    cfg.PortOpt(
        'share_port',
        help='Port of manila-lite-share; without it, the process answers '
        'nothing. Several processes of one machine need a port each, in a '
        'configuration file of its own.',
    ),
    cfg.PortOpt(
        'data_port',
        help='Port of manila-lite-data; without it, the process answers '
        'nothing. Set it to monitor each process by itself.',
    ),
    cfg.FloatOpt(
        'drain_time',
        default=0,
        min=0,
        help='Seconds for which a scheduler, share or data process that is to '
        'stop answers /healthcheck, with 503, at least. Set it to longer than '
        'the interval of what asks, so that a stop is not taken for a crash.',
    ),
    cfg.ListOpt(
        'metrics_projects',
        default=[],
        help='Ids of projects whose quota and its use /metrics of API and '
        'schedulers shows. Set it for projects that are to be warned before '
        'they reach a limit; each is a label with 20 or more values.',
    ),
    cfg.StrOpt(
        'backup_directory',
        help='Directory in which deploy keeps backups on this machine; /metrics '
        'of API and scheduler shows the age of the newest one. Set it on the '
        'machine that has the directory; deploy does so.',
    ),
    cfg.BoolOpt(
        'charts',
        default=True,
        help='Whether schedulers write samples for the charts of the page at '
        '/ui: every five minutes, kept for a week, and every day, kept for a '
        'year. They take 2,400 rows for the cloud and as many for each pool. '
        'Unset it if Prometheus or another system keeps these figures.',
    ),
    cfg.BoolOpt(
        'api_metrics',
        default=False,
        help='Whether the API answers /metrics, at the address of its '
        'clients. There is no authentication, and the page names back ends '
        'and their capacities: set it if osapi_share_listen is an address '
        'that only trusted networks reach, or if a proxy in front of the '
        'API refuses /metrics. "manila-lite serve" has the page by default '
        'if it listens on a loopback address.',
    ),
]
