"""Options of the scheduler."""

from oslo_config import cfg

GROUP = None
OPTS = [
    cfg.IntOpt(
        'scheduler_max_attempts',
        default=3,
        help='Maximum number of pools tried for one share before it ends '
        'in error. Raise it when back ends often refuse what fits '
        'their reports; with 1 a refused share is not placed again.',
    ),
    cfg.FloatOpt(
        'scheduler_wait_for_backends',
        default=60.0,
        min=0.0,
        help='Seconds that a request which no pool can serve waits while an '
        'enabled back end has yet to report for the first time. Raise '
        'it when drivers take longer to start; with 0 requests do not '
        'wait.',
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
        help='Filters that a pool must pass for a new share. Add a filter '
        'of your own by its entry point name.',
    ),
    cfg.ListOpt(
        'scheduler_default_weighers',
        default=['CapacityWeigher', 'GoodnessWeigher', 'HostAffinityWeigher'],
        help='Weighers whose weighted sum ranks the pools that passed the '
        'filters. Change it when free capacity is not the criterion.',
    ),
    cfg.ListOpt(
        'scheduler_default_extend_filters',
        default=['CapacityFilter', 'DriverFilter'],
        help='Filters that the pool of a share must pass before the share is extended.',
    ),
    cfg.FloatOpt(
        'capacity_weight_multiplier',
        default=1.0,
        help='Weight of free capacity. A negative value fills one pool '
        'after the other instead of spreading shares.',
    ),
    cfg.FloatOpt(
        'pool_weight_multiplier',
        default=1.0,
        help='Weight of the number of share servers on a pool. A negative '
        'value prefers pools with more of them.',
    ),
]
