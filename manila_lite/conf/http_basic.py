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
    ),
    cfg.BoolOpt(
        'identity_api',
        default=True,
        help='Serve a small identity API at /v3, for clients that can sign '
        'in at Keystone only, and accept its tokens. Turn it off when all '
        'clients use HTTP basic authentication. With noauth it accepts every '
        'password.',
    ),
    cfg.StrOpt(
        'token_key_file',
        default='$state_path/token_key',
        help='File of the key that signs tokens; created with mode 0600 at '
        'the first start. Set it to share one file between several API '
        'nodes. To end all tokens, delete the file and restart the API.',
    ),
    cfg.StrOpt(
        'token_key',
        secret=True,
        help='The key that signs tokens, 32 random bytes in base64, instead of '
        'a file. Set it in a file that only root can read, which systemd hands '
        'to the API as a credential.',
    ),
    cfg.StrOpt(
        'revoked_tokens_file',
        default='$state_path/revoked_tokens',
        help='File of the tokens that were revoked before they expired, for '
        'instance by a dashboard at sign-out. Set it to share one file '
        'between several API nodes; without that, a token is revoked on the '
        'node that is asked to.',
    ),
    cfg.IntOpt(
        'token_lifetime',
        default=3600,
        min=60,
        max=604800,
        help='Seconds for which a token is valid. Raise it for clients that '
        'do not renew their tokens.',
    ),
    cfg.StrOpt(
        'region',
        default='RegionOne',
        help='Region of the services in the catalog. Change it when clients '
        'are configured with another one.',
    ),
]
