"""Options of authentication."""

from oslo_config import cfg

GROUP = None
OPTS = [
    cfg.StrOpt(
        'auth_strategy',
        default='keystone',
        choices=[
            ('noauth', 'every caller is an administrator'),
            ('noauthv2', 'another published name of noauth'),
            ('keystone', 'tokens of the identity service'),
            ('http_basic', 'names and passwords from a file'),
        ],
        help='Authentication of the API. Use http_basic for an '
        'installation without Keystone, noauth only for trials on one '
        'machine.',
    ),
    cfg.BoolOpt(
        'noauth_allow_remote',
        default=False,
        help='Let noauth listen on other addresses than loopback. Everyone '
        'who reaches the port is then an administrator, so turn it on '
        'only in a trusted network.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, GROUP)
