"""What rows start with; the connection is an option of oslo.db."""

from oslo_config import cfg

GROUP = None
OPTS = [
    cfg.BoolOpt(
        'enable_new_services',
        default=True,
        help='New services take shares at once. Turn off to look '
        'at a new node before "service enable".',
    ),
    cfg.StrOpt(
        'share_name_template',
        default='share-%s',
        help='Name of a share on its back end, made from the '
        'instance id. Set it before the first share when '
        'several installations use one back end.',
    ),
    cfg.StrOpt(
        'share_snapshot_name_template',
        default='share-snapshot-%s',
        help='Name of a snapshot on its back end, made from the '
        'snapshot instance id. Set it together with '
        'share_name_template.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, GROUP)
