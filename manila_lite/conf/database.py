"""Options of new rows; the connection is an option of oslo.db."""

from oslo_config import cfg

GROUP = None
OPTS = [
    cfg.BoolOpt(
        'enable_new_services',
        default=True,
        help='Enable new services at once. Turn it off to check a new node '
        'before "service enable".',
    ),
    cfg.StrOpt(
        'share_name_template',
        default='share-%s',
        help='Template of share names on back ends, filled with the '
        'instance id. Set it before the first share is created when '
        'several installations use one back end.',
    ),
    cfg.StrOpt(
        'share_snapshot_name_template',
        default='share-snapshot-%s',
        help='Template of snapshot names on back ends, filled with the '
        'snapshot instance id. Set it together with '
        'share_name_template.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, GROUP)
