"""How callers prove who they are."""

from oslo_config import cfg

GROUP = None
OPTS = [
    cfg.StrOpt(
        'auth_strategy',
        default='keystone',
        choices=[
            ('noauth', 'everybody is an administrator'),
            ('noauthv2', 'the same, under another published name'),
            ('keystone', 'tokens of the identity service'),
            ('http_basic', 'names and passwords from a file'),
        ],
        help='Sign-in of the API. Use http_basic for an '
        'installation without Keystone, noauth only to try '
        'things on one machine.',
    ),
    cfg.BoolOpt(
        'noauth_allow_remote',
        default=False,
        help='Let noauth listen on more than loopback. Whoever '
        'reaches the port is then an administrator: turn on '
        'only in a network you would trust with that.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, GROUP)
