"""How long users can read what went wrong."""

from oslo_config import cfg

GROUP = None
OPTS = [
    cfg.IntOpt(
        'message_ttl',
        default=2592000,
        help='Seconds a user message is kept. Raise it when users '
        'come back later to ask why something failed.',
    ),
    cfg.IntOpt(
        'message_reap_interval',
        default=86400,
        help='Seconds between removals of expired messages. Lower '
        'it when they pile up faster.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, GROUP)
