"""Options of the local driver, in the section of a back end."""

from oslo_config import cfg

OPTS = [
    cfg.StrOpt(
        'local_root',
        default='$state_path/local',
        help='Directory that holds the shares. Put it on the disk that is '
        'to be shared; give each local back end its own.',
    ),
    cfg.FloatOpt(
        'local_capacity_gb',
        min=0,
        help='Total capacity to report in GiB; when unset, the size of the '
        'file system, of which the shares of other local back ends of the '
        'same configuration count as provisioned. Set it when the disk has '
        'other uses as well, or back ends of other configurations.',
    ),
    cfg.StrOpt(
        'local_export_options',
        default='sync,no_subtree_check',
        help='Export options of every client besides rw or ro, in the '
        'files that NFS servers read (see exports(5)).',
    ),
    cfg.HostAddressOpt(
        'local_export_host',
        help='Name or address of the file server that exports the root, as '
        'clients know it: export locations are then host:/path, and '
        '\\\\host\\share for CIFS. When unset, they are directories of '
        'this machine.',
    ),
    cfg.StrOpt(
        'local_share_mode',
        default='0777',
        regex='[0-7]{3,4}',
        help='Mode of the directory of a new share. By default all users of '
        'clients with access can write to it; NFS servers map root to '
        'the user nobody. Restrict it when local_share_owner is set.',
    ),
    cfg.StrOpt(
        'local_share_owner',
        help='User of the directory of a new share, or user:group, by name '
        'or id; when unset, that of the service. Set it when clients use the '
        'same users.',
    ),
    cfg.BoolOpt(
        'local_require_privileges',
        default=True,
        help='Do not start a back end with local_export_host unless the '
        'service has the privileges that the files of its users need. Turn '
        'it off when the file server maps all users of clients to the user '
        'of the service.',
    ),
    cfg.StrOpt(
        'local_replication_type',
        choices=['readable', 'dr'],
        help='Replication type of shares: replicas that are not active are '
        'readable, or not accessible before their promotion (dr). '
        'Shares are replicated between local back ends of one '
        'replication_domain. Do not change it while there are '
        'replicas.',
    ),
    cfg.DictOpt(
        'local_replication_peers',
        default={},
        help='Root directories of other back ends of the replication '
        'domain on this machine, for instance '
        'other@local:/mnt/other/local. Set it for back ends that have '
        'no section with local_root in this file.',
    ),
    cfg.IntOpt(
        'local_replication_recovery_point',
        default=600,
        min=0,
        help='Seconds of recent writes that may be lost with the active '
        'replica: a replica updated within this time is in_sync. Keep '
        'it at least twice the replica_state_update_interval.',
    ),
]
