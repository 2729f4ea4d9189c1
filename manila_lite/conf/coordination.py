"""Options of the lock service."""

from oslo_config import cfg

GROUP = cfg.OptGroup('coordination', title='Locks between processes')
OPTS = [
    cfg.StrOpt(
        'backend_url',
        default='file://$state_path',
        help='tooz URL of the lock service. Files are enough for one node; '
        'use redis:// or etcd3+http:// when several nodes serve the '
        'same back ends.',
    )
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, GROUP)
