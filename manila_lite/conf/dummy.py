"""Options of the dummy driver, in the section of a back end."""

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

_FOLDER = 'dummy'
"""The folder of the built-in back end, below the state path."""

OPTS = [
    cfg.FloatOpt(
        'dummy_driver_default_driver_method_delay',
        default=2.0,
        min=0,
        help='Seconds each method of the dummy driver takes. Set it to 0 '
        'to measure the service alone.',
    ),
    cfg.DictOpt(
        'dummy_driver_driver_methods_delays',
        default=_DELAYS,
        help='Seconds that single methods take instead of the default '
        'delay. Empty it to measure the service alone.',
    ),
    cfg.StrOpt(
        'dummy_driver_state_path',
        default=f'$state_path/{_FOLDER}',
        sample_default=f'$state_path/{_FOLDER}-<name of the section>',
        help='Directory in which the dummy driver stores its state. By '
        'default each back end has its own. Set it if the state of a back '
        'end is to survive its renaming.',
    ),
    cfg.BoolOpt(
        'dummy_driver_fencing',
        default=True,
        help='Refuse calls of workers that were paused and came after the '
        'worker that took over from them, as a back end with fencing does.',
    ),
    cfg.DictOpt(
        'dummy_driver_fail_methods',
        default={},
        help='Methods that fail, each with the number of calls that fail, '
        'or always: create_share:1,extend_share:always.',
    ),
    cfg.ListOpt(
        'dummy_driver_hang_methods',
        default=[],
        help='Methods that never return. Use it to test a back end that hangs.',
    ),
    cfg.ListOpt(
        'dummy_driver_answer_lost_methods',
        default=[],
        help='Methods that succeed on the back end and then fail, as when '
        'the reply of a back end is lost.',
    ),
    cfg.ListOpt(
        'dummy_driver_refuse_clients',
        default=[],
        help='Clients (as in access_to, with * and ?) whose access rules '
        'fail, while other rules are applied.',
    ),
    cfg.IntOpt(
        'dummy_driver_from_snapshot_steps',
        default=0,
        min=0,
        help='Number of status requests until a share created from a '
        'snapshot is available; 0 creates it at once.',
    ),
    cfg.IntOpt(
        'dummy_driver_server_migration_steps',
        default=1,
        min=1,
        help='Number of requests until the first phase of a share server '
        'migration is done.',
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
        help='Capabilities of the driver as destination of a share server '
        'migration. Without compatible it accepts none.',
    ),
    cfg.IntOpt(
        'dummy_driver_share_migration_steps',
        default=1,
        min=1,
        help='Number of requests until the first phase of a share migration is done.',
    ),
    cfg.ListOpt(
        'dummy_driver_share_migration_offers',
        default=[
            'compatible',
            'writable',
            'preserve_metadata',
            'nondisruptive',
            'preserve_snapshots',
        ],
        help='Capabilities of the driver as source of a share migration to '
        'another dummy back end. Without compatible it migrates none.',
    ),
    cfg.IntOpt(
        'dummy_driver_backup_steps',
        default=1,
        min=1,
        help='Number of requests until a backup of a share, or its restore, '
        'is complete.',
    ),
    cfg.BoolOpt(
        'dummy_driver_share_replicas_migration',
        default=False,
        help='Whether share servers are migrated whose shares have replicas, '
        'to back ends of the same replication domain. Servers that exist '
        'keep the value they were created with.',
    ),
    cfg.StrOpt(
        'dummy_driver_replication_type',
        choices=['writable', 'readable', 'dr'],
        help='Replication type of shares. When unset it is readable if '
        'replication_domain is set, and shares are not replicated otherwise. '
        'Set replication_domain on all back ends that are to hold '
        "replicas of each other's shares.",
    ),
    cfg.StrOpt(
        'dummy_driver_consistent_snapshots',
        choices=['pool', 'host'],
        help='Within what snapshots of share groups are consistent. When '
        'unset they are not.',
    ),
    cfg.StrOpt(
        'dummy_driver_replication_path',
        default='$state_path/dummy-replication',
        help='Directory in which the dummy back ends of a replication '
        'domain find each other. Set the same for all share services '
        'of the domain.',
    ),
    cfg.IntOpt(
        'dummy_driver_replica_steps',
        default=0,
        min=0,
        help='Number of updates until a new replica has the content of the '
        'share; 0 copies it at once.',
    ),
    cfg.FloatOpt(
        'dummy_driver_capacity_gb',
        default=1000.0,
        min=0,
        help='Total capacity of each pool of the dummy back end in GiB.',
    ),
    cfg.FloatOpt(
        'dummy_driver_free_gb',
        min=0,
        help='Free capacity that each pool reports in GiB; when unset, the '
        'total less the shares.',
    ),
    cfg.IntOpt(
        'dummy_driver_network_allocations',
        default=1,
        min=1,
        help='Number of addresses of a share server in each subnet.',
    ),
    cfg.IntOpt(
        'dummy_driver_admin_network_allocations',
        default=0,
        min=0,
        help="Number of addresses of a share server in the administrators' "
        'network; needs admin_network_config_group.',
    ),
    cfg.BoolOpt(
        'dummy_driver_network_updates',
        default=True,
        help='Whether share servers support another subnet or another '
        'security service.',
    ),
    cfg.ListOpt(
        'dummy_driver_pools',
        default=['pool'],
        help='Names of the pools of the dummy back end.',
    ),
]


def set_default_folder(conf: cfg.ConfigOpts, group: str) -> None:
    """Give each back end a folder of its own."""
    if group != _FOLDER:
        conf.set_default(
            'dummy_driver_state_path', f'$state_path/{_FOLDER}-{group}', group
        )
