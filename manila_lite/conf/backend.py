"""Options of back end sections that all drivers share."""

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
        help='Whether the driver creates share servers on share networks. '
        'Required; share types name the mode they need.',
    ),
    cfg.StrOpt(
        'share_backend_name',
        help='Name reported to the scheduler; defaults to the name of the '
        'section. Give several back ends the same name to let a share '
        'type use any of them.',
    ),
    cfg.StrOpt(
        'backend_availability_zone',
        help='Availability zone of this back end, if it differs from '
        'storage_availability_zone.',
    ),
    cfg.StrOpt(
        'replication_domain',
        help='Back ends with the same domain can hold replicas of each '
        "other's shares. Set it when their storage can replicate.",
    ),
    cfg.IntOpt(
        'reserved_share_percentage',
        default=0,
        help='Percentage of the capacity that is not available for new '
        'shares. Raise it when the back end must not run full.',
    ),
    cfg.IntOpt(
        'reserved_share_from_snapshot_percentage',
        default=0,
        help='Reserved percentage for shares that are created from '
        'snapshots, which may have to stay on the back end; 0 uses '
        'reserved_share_percentage.',
    ),
    cfg.IntOpt(
        'reserved_share_extend_percentage',
        default=0,
        help='Reserved percentage for extending shares; 0 uses '
        'reserved_share_percentage. Set it lower than that to keep '
        'capacity for growth.',
    ),
    cfg.FloatOpt(
        'max_over_subscription_ratio',
        default=20.0,
        min=1.0,
        help='Ratio of provisioned to physical capacity that thin shares '
        'may reach. Lower it when users fill their shares.',
    ),
    cfg.StrOpt(
        'filter_function',
        help='Expression for DriverFilter that is true for shares this '
        'back end accepts. Set it to reject some shares, for instance '
        '"share.size < 100".',
    ),
    cfg.StrOpt(
        'goodness_function',
        help='Expression for GoodnessWeigher with a value of 0 to 100; '
        'shares go to the back end with the highest value.',
    ),
    cfg.StrOpt(
        'network_config_group',
        help='Section with the options of the network plug-in; defaults to '
        'this section. Set it when several back ends share one '
        'network.',
    ),
    cfg.StrOpt(
        'admin_network_config_group',
        help="Section with the options of the administrators' network; "
        'without it share servers have no addresses there.',
    ),
    cfg.ListOpt(
        'migration_ignore_files',
        default=['lost+found'],
        help='Names at the top of shares that the data service does not copy '
        'when it migrates a share from this back end. Add what the storage '
        'creates in every share.',
    ),
    cfg.IntOpt(
        'max_shares_per_share_server',
        default=-1,
        help='Maximum number of share instances on one share server, -1 '
        'for no limit. Set it when servers get slow.',
    ),
    cfg.IntOpt(
        'max_share_server_size',
        default=-1,
        help='Maximum total size of the shares and snapshots on one share '
        'server in GiB, -1 for no limit. A larger share gets a server of its '
        'own, on which it can be extended without limit.',
    ),
]
