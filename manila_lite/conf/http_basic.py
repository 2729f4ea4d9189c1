"""Options of `auth_strategy = http_basic`."""

from oslo_config import cfg

GROUP = cfg.OptGroup('http_basic', title='Sign-in by name and password')
OPTS = [
    cfg.StrOpt(
        'users_file',
        default='$state_path/users',
        help='File of users, one per line with the bcrypt hash of the '
        'password, user id, project id and roles. Written by '
        '"manila-lite-manage user add". Set it to share one file '
        'between several API nodes.',
    )
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, GROUP)
