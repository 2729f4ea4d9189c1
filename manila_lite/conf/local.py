"""Back-end section options of the driver for plain directories."""

from oslo_config import cfg

OPTS = [
    cfg.StrOpt(
        'local_root',
        default='$state_path/local',
        help='Directory that holds the shares. Put it on the disk '
        'that is to be given away; give each local back end '
        'its own.',
    ),
    cfg.FloatOpt(
        'local_capacity_gb',
        min=0,
        help='GiB reported as total capacity; all the file '
        'system has when unset. Set it when the disk serves '
        'others as well.',
    ),
    cfg.StrOpt(
        'local_export_options',
        default='sync,no_subtree_check',
        help='Options, besides rw or ro, of every client in the '
        'files that NFS servers read (see exports(5)).',
    ),
    cfg.StrOpt(
        'local_replication_type',
        choices=['readable', 'dr'],
        help='What replicas of shares are like that are not active: '
        'readable, or of use to nobody until they are promoted '
        '(dr). Shares are replicated between local back ends of '
        'one replication_domain. Keep it while there are '
        'replicas.',
    ),
    cfg.DictOpt(
        'local_replication_peers',
        default={},
        help='Where the roots of other back ends of the domain are '
        'on this machine, for instance '
        'other@local:/mnt/other/local. Set it for those that '
        'have no section with their local_root in this file.',
    ),
    cfg.IntOpt(
        'local_replication_recovery_point',
        default=600,
        min=0,
        help='Seconds of what users wrote that may be lost with the '
        'active replica: one that was brought up to date within '
        'them is in_sync. Keep it at twice the '
        'replica_state_update_interval at least.',
    ),
]


def register_backend(conf: cfg.ConfigOpts, group: str) -> None:
    conf.register_opts(OPTS, group)
