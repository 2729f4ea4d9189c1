"""How a pool is chosen for a share."""

from oslo_config import cfg

GROUP = None
OPTS = [
    cfg.IntOpt(
        'scheduler_max_attempts',
        default=3,
        help='Pools tried for one share before it ends in error. '
        'Raise it when back ends often refuse what they '
        'reported as fitting.',
    ),
    cfg.ListOpt(
        'scheduler_default_filters',
        default=[
            'OnlyHostFilter',
            'AvailabilityZoneFilter',
            'CapacityFilter',
            'CapabilitiesFilter',
            'DriverFilter',
            'ShareReplicationFilter',
            'CreateFromSnapshotFilter',
            'AffinityFilter',
            'AntiAffinityFilter',
        ],
        help='Filters a pool must pass to get a new share. Add a '
        'filter of your own by its entry point name.',
    ),
    cfg.ListOpt(
        'scheduler_default_weighers',
        default=['CapacityWeigher', 'GoodnessWeigher', 'HostAffinityWeigher'],
        help='Weighers whose sum ranks the pools that passed. '
        'Change it when free capacity is not what matters.',
    ),
    cfg.ListOpt(
        'scheduler_default_extend_filters',
        default=['CapacityFilter', 'DriverFilter'],
        help='Filters the pool of a share must pass before the '
        'share is extended.',
    ),
    cfg.FloatOpt(
        'capacity_weight_multiplier',
        default=1.0,
        help='Weight of free capacity. Negative fills one pool '
        'after the other instead of spreading.',
    ),
    cfg.FloatOpt(
        'pool_weight_multiplier',
        default=1.0,
        help='Weight of share servers a pool already runs. '
        'Negative prefers pools with more of them.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, GROUP)
