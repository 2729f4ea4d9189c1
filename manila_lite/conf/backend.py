"""Options of every back end's own section, whatever its driver."""

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'my_backend',
    title='A back end',
    help='An example: one such section for each name in '
    'enabled_share_backends, with the options of its driver.',
)
OPTS = [
    cfg.StrOpt(
        'share_driver',
        help='Driver of the back end: an entry point name such as '
        'local or dummy, or the dotted path of a class. '
        'Required.',
    ),
    cfg.BoolOpt(
        'driver_handles_share_servers',
        help='Whether the driver makes share servers on share '
        'networks. Required; share types name the mode they '
        'need.',
    ),
    cfg.StrOpt(
        'share_backend_name',
        help="Name told to the scheduler, the section's own when "
        'unset. Give several back ends one name to let a share '
        'type mean any of them.',
    ),
    cfg.StrOpt(
        'backend_availability_zone',
        help='Zone of this back end when it stands elsewhere than '
        'storage_availability_zone says.',
    ),
    cfg.StrOpt(
        'replication_domain',
        help='Back ends with the same word here may hold replicas '
        "of each other's shares. Set it when their storage "
        'can replicate.',
    ),
    cfg.IntOpt(
        'reserved_share_percentage',
        default=0,
        help='Percent of the capacity that new shares may not use. '
        'Raise it when the back end must not run full.',
    ),
    cfg.IntOpt(
        'reserved_share_from_snapshot_percentage',
        default=0,
        help='The same for shares made from snapshots, which may '
        'have to stay on the back end; the general value when '
        '0.',
    ),
    cfg.IntOpt(
        'reserved_share_extend_percentage',
        default=0,
        help='The same for extending shares; the general value when '
        '0. Set it lower than the general value to keep room '
        'for growth.',
    ),
    cfg.FloatOpt(
        'max_over_subscription_ratio',
        default=20.0,
        min=1.0,
        help='How often capacity may be promised by thin shares. '
        'Lower it when shares really get filled.',
    ),
    cfg.StrOpt(
        'filter_function',
        help='Expression that is true for shares this back end '
        'takes, for DriverFilter. Set it to keep some shares '
        'away, for instance "share.size < 100".',
    ),
    cfg.StrOpt(
        'goodness_function',
        help='Expression of 0 to 100 that says how welcome a share '
        'is, for GoodnessWeigher.',
    ),
    cfg.StrOpt(
        'network_config_group',
        help='Section with the options of the network plug-in, this '
        'one when unset. Set it to have several back ends share '
        'one network.',
    ),
    cfg.StrOpt(
        'admin_network_config_group',
        help='The same for the network of administrators; share '
        'servers have no addresses there when unset.',
    ),
    cfg.IntOpt(
        'max_shares_per_share_server',
        default=-1,
        help='Share instances one share server takes, -1 for any '
        'number. Set it when servers get slow.',
    ),
    cfg.IntOpt(
        'max_share_server_size',
        default=-1,
        help='GiB one share server takes, -1 for any size.',
    ),
]


def register_backend(conf: cfg.ConfigOpts, group: str) -> None:
    conf.register_opts(OPTS, group)
