"""Options of the lock service."""

from oslo_config import cfg

GROUP = cfg.OptGroup('coordination', title='Locks between processes')
OPTS = [
    cfg.StrOpt(
        'backend_url',
        default='file://$state_path',
        secret=True,
        help='tooz URL of the lock service. Files are enough for one node; '
        'use redis:// or etcd3+http:// when several nodes serve the '
        'same back ends.',
    ),
    cfg.FloatOpt(
        'lock_timeout',
        default=10.0,
        min=0.0,
        help='Seconds to wait for a lock, for example while its holder is '
        'paused. After that work continues without the lock, because no '
        'result depends on it, and a warning is logged. Lower it if requests '
        'about one share should not occupy the API for so long.',
    ),
]
