"""Options of the share service."""

from oslo_config import cfg

GROUP = None
OPTS = [
    cfg.BoolOpt(
        'startup_reconciliation_enabled',
        default=True,
        help='Rescue resources that were left in flight, once after the '
        'start. Turn it off to review them first, with '
        '"manila-lite-manage recovery preview"; the periodic passes '
        'are configured in section [recovery].',
    ),
    cfg.IntOpt(
        'startup_reconciliation_wait_seconds',
        default=10,
        min=0,
        help='Seconds between the start of a driver and that pass. Raise '
        'it for back ends that need some time until their replies are '
        'reliable.',
    ),
    cfg.IntOpt(
        'check_for_expired_shares_in_recycle_bin_interval',
        default=3600,
        help='Seconds between removals of shares whose time in the recycle '
        'bin has expired. Lower it when their capacity is needed '
        'sooner.',
    ),
    cfg.BoolOpt(
        'delete_share_server_with_last_share',
        default=False,
        help='Delete a share server together with its last share. Turn it '
        'on when servers are expensive; the next share gets a new '
        'one.',
    ),
    cfg.BoolOpt(
        'automatic_share_server_cleanup',
        default=True,
        help='Delete share servers that have been unused for some time. '
        'Turn it off to keep them until they are deleted on request.',
    ),
    cfg.IntOpt(
        'unused_share_server_cleanup_interval',
        default=10,
        min=10,
        max=720,
        help='Minutes a share server must be unused before it is deleted '
        'automatically. Raise it when projects often come back.',
    ),
    cfg.IntOpt(
        'periodic_deferred_delete_interval',
        default=300,
        help='Seconds between retries of deferred deletions. Lower it when '
        'they accumulate.',
    ),
    cfg.IntOpt(
        'migration_driver_continue_update_interval',
        default=60,
        help='Seconds between requests to the driver whether the first phase '
        'of a share migration is done. Lower it when shares are small.',
    ),
    cfg.IntOpt(
        'driver_backup_continue_update_interval',
        default=60,
        help='Seconds between requests to the driver how much of a backup '
        'that it makes is done. Lower it when shares are small.',
    ),
    cfg.IntOpt(
        'driver_restore_continue_update_interval',
        default=60,
        help='Seconds between requests to the driver how much of a backup '
        'that it keeps is restored. Lower it when shares are small.',
    ),
    cfg.IntOpt(
        'server_migration_driver_continue_update_interval',
        default=900,
        help='Seconds between requests to the destination driver whether '
        'the first phase of a share server migration is done. Lower '
        'it when servers are small.',
    ),
    cfg.IntOpt(
        'replica_state_update_interval',
        default=300,
        help='Seconds between updates of the state of replicas and of the '
        'snapshots on them. Lower it when users wait for new '
        'replicas.',
    ),
]
