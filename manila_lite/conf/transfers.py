"""Options of share transfers."""

from oslo_config import cfg

GROUP = None
OPTS = [
    cfg.IntOpt(
        'transfer_retention_time',
        default=300,
        help='Seconds until a share transfer that is not accepted expires. '
        'Raise it when people pass on the keys.',
    ),
    cfg.IntOpt(
        'check_for_expired_transfers',
        default=300,
        help='Seconds between searches for expired share transfers, whose '
        'shares then become available again. Lower it if shares should not '
        'wait that long.',
    ),
    cfg.IntOpt(
        'share_transfer_salt_length',
        default=8,
        min=8,
        max=255,
        help='Characters of the salt with which the key of a share transfer '
        'is hashed. There is no need to change it.',
    ),
    cfg.IntOpt(
        'share_transfer_key_length',
        default=16,
        min=16,
        max=255,
        help='Characters of the key of a share transfer, with 4 bits each. '
        'Raise it when transfers remain open for days.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, GROUP)
