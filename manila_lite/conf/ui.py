"""The page at /ui."""

from oslo_config import cfg

GROUP = cfg.OptGroup('ui', title='The page for administrators and users')
OPTS = [
    cfg.BoolOpt(
        'enabled',
        default=False,
        help='Whether the API serves a page for browsers at /ui. Users sign '
        'in as they do at the API, and may do what policies allow them; with '
        'auth_strategy = http_basic, identity_api in section [http_basic] '
        'must be on. Set it where browsers reach the API, over https only. '
        '"manila-lite serve" has the page by default if it listens on a '
        'loopback address.',
    )
]
