"""Options of user messages."""

from oslo_config import cfg

GROUP = None
OPTS = [
    cfg.IntOpt(
        'message_ttl',
        default=2592000,
        help='Seconds a user message is kept. Raise it when users ask '
        'later why something failed.',
    ),
    cfg.IntOpt(
        'message_reap_interval',
        default=86400,
        help='Seconds between purges of expired messages and other old '
        'rows, which one scheduler of all runs. Lower it when many of '
        'them accumulate.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, GROUP)
