"""Rhythms of the share service besides those of every service."""

from oslo_config import cfg

GROUP = None
OPTS = [
    cfg.BoolOpt(
        'startup_reconciliation_enabled',
        default=True,
        help='Look after the start for resources that were left '
        'in flight, and rescue them. Turn it off to look at '
        'them first, with "manila-lite-manage recovery '
        'preview"; the timer of section [recovery] is another '
        'option.',
    ),
    cfg.IntOpt(
        'startup_reconciliation_wait_seconds',
        default=10,
        min=0,
        help='Seconds between the start of a driver and that look. '
        'Raise it for back ends that need a while before they '
        'answer right.',
    ),
    cfg.IntOpt(
        'check_for_expired_shares_in_recycle_bin_interval',
        default=3600,
        help='Seconds between looks for shares whose time in the '
        'recycle bin is over. Lower it when their capacity is '
        'wanted sooner.',
    ),
    cfg.BoolOpt(
        'delete_share_server_with_last_share',
        default=False,
        help='Delete a share server together with its last share. '
        'Turn it on when servers are costly; a new one is made '
        'for the next share.',
    ),
    cfg.BoolOpt(
        'automatic_share_server_cleanup',
        default=True,
        help='Delete share servers that nothing has been on for a '
        'while. Turn it off to keep them until somebody asks '
        'for their deletion.',
    ),
    cfg.IntOpt(
        'unused_share_server_cleanup_interval',
        default=10,
        min=10,
        max=720,
        help='Minutes that nothing is on a share server before it is '
        'deleted so. Raise it when projects often come back.',
    ),
    cfg.IntOpt(
        'periodic_deferred_delete_interval',
        default=300,
        help='Seconds between rounds over shares whose deletion '
        'was deferred. Lower it when they pile up.',
    ),
    cfg.IntOpt(
        'server_migration_driver_continue_update_interval',
        default=900,
        help='Seconds between questions to the driver of the '
        'destination whether the first phase of a share server '
        'migration is done. Lower it when servers are small.',
    ),
    cfg.IntOpt(
        'replica_state_update_interval',
        default=300,
        help='Seconds between questions to drivers how well replicas '
        'follow their shares, and how far the snapshots on them '
        'have come. Lower it when users wait for new replicas.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, GROUP)
