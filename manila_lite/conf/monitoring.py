"""Where scheduler and share processes answer questions about themselves."""

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'monitoring', title='Health of scheduler and share processes'
)
OPTS = [
    cfg.HostAddressOpt(
        'listen',
        default='127.0.0.1',
        help='Address at which manila-lite-scheduler and manila-lite-share '
        'answer /healthcheck; :: stands for all addresses of IPv6 and of '
        'IPv4. There is no authentication: choose an address that only '
        'monitoring and load balancers reach.',
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
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, GROUP)
