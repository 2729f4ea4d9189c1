"""Back-end section options of the driver that tests use."""

from oslo_config import cfg

_DELAYS = {
    'ensure_share': '1.05',
    'create_share': '3.98',
    'get_pool': '0.5',
    'do_setup': '0.05',
    '_get_pools_info': '0.1',
    '_update_share_stats': '0.3',
    'create_replica': '3.99',
    'delete_replica': '2.98',
    'promote_replica': '0.75',
    'update_replica_state': '0.85',
    'create_replicated_snapshot': '4.15',
    'delete_replicated_snapshot': '3.16',
    'update_replicated_snapshot': '1.17',
    'migration_start': '1.01',
    'migration_continue': '1.02',
    'migration_complete': '1.03',
    'migration_cancel': '1.04',
    'migration_get_progress': '1.05',
    'migration_check_compatibility': '0.05',
    'create_backup': '1.50',
    'restore_backup': '1.50',
    'update_share_network_subnet_from_metadata': '0.5',
}

OPTS = [
    cfg.FloatOpt(
        'dummy_driver_default_driver_method_delay',
        default=2.0,
        min=0,
        help='Seconds each method of the dummy driver takes. Set '
        'it to 0 to measure the service alone.',
    ),
    cfg.DictOpt(
        'dummy_driver_driver_methods_delays',
        default=_DELAYS,
        help='Seconds of single methods instead of the default '
        'delay. Empty it to measure the service alone.',
    ),
    cfg.StrOpt(
        'dummy_driver_state_path',
        default='$state_path/dummy',
        help='Directory in which the dummy driver remembers what '
        'it made. Give each dummy back end its own.',
    ),
    cfg.DictOpt(
        'dummy_driver_fail_methods',
        default={},
        help='Methods that fail, each with how many calls do, or '
        'with always: create_share:1,extend_share:always.',
    ),
    cfg.ListOpt(
        'dummy_driver_hang_methods',
        default=[],
        help='Methods that do not come back. Use it to see a stuck back end.',
    ),
    cfg.ListOpt(
        'dummy_driver_answer_lost_methods',
        default=[],
        help='Methods that do their work and then fail, as when '
        'the answer of a back end is lost.',
    ),
    cfg.ListOpt(
        'dummy_driver_refuse_clients',
        default=[],
        help='Clients (as in access_to, with * and ?) whose access '
        'rules come to nothing, while others are applied.',
    ),
    cfg.IntOpt(
        'dummy_driver_from_snapshot_steps',
        default=0,
        min=0,
        help='How often it has to be asked before a share from a '
        'snapshot is there; 0 makes it at once.',
    ),
    cfg.IntOpt(
        'dummy_driver_server_migration_steps',
        default=1,
        min=1,
        help='How often it has to be asked before the first phase '
        'of a share server migration is done.',
    ),
    cfg.ListOpt(
        'dummy_driver_server_migration_offers',
        default=[
            'compatible',
            'writable',
            'nondisruptive',
            'preserve_snapshots',
            'migration_cancel',
            'migration_get_progress',
        ],
        help='What it can do when a share server migrates to it. '
        'Without compatible it takes none.',
    ),
    cfg.StrOpt(
        'dummy_driver_replication_type',
        choices=['writable', 'readable', 'dr'],
        help='How its shares are replicated; not at all when unset. '
        'Set replication_domain as well, on all back ends that '
        "are to hold replicas of each other's shares.",
    ),
    cfg.StrOpt(
        'dummy_driver_replication_path',
        default='$state_path/dummy-replication',
        help='Directory in which the dummy back ends of a '
        'replication domain find each other. Give those of '
        'several share services the same.',
    ),
    cfg.IntOpt(
        'dummy_driver_replica_steps',
        default=0,
        min=0,
        help='How often a new replica has to be asked for before it '
        'has the content of the share; 0 copies it at once.',
    ),
    cfg.FloatOpt(
        'dummy_driver_capacity_gb',
        default=1000.0,
        min=0,
        help='GiB each pool of the dummy back end reports in all.',
    ),
    cfg.FloatOpt(
        'dummy_driver_free_gb',
        min=0,
        help='GiB each pool reports as free; what its shares '
        'leave over when unset.',
    ),
    cfg.IntOpt(
        'dummy_driver_network_allocations',
        default=1,
        min=1,
        help='Addresses each of its share servers has in each subnet.',
    ),
    cfg.IntOpt(
        'dummy_driver_admin_network_allocations',
        default=0,
        min=0,
        help='Addresses each of its share servers has in the '
        "administrators' network; needs "
        'admin_network_config_group.',
    ),
    cfg.BoolOpt(
        'dummy_driver_network_updates',
        default=True,
        help='Whether its share servers say that they can take '
        'another subnet or security service.',
    ),
    cfg.ListOpt(
        'dummy_driver_pools',
        default=['pool'],
        help='Names of the pools of the dummy back end.',
    ),
]


def register_backend(conf: cfg.ConfigOpts, group: str) -> None:
    conf.register_opts(OPTS, group)
