"""Options of default quotas."""

from oslo_config import cfg


def _limit(name: str, default: int, what: str) -> cfg.IntOpt:
    return cfg.IntOpt(
        name,
        default=default,
        mutable=True,
        deprecated_group='DEFAULT',
        deprecated_name=f'quota_{name}',
        help=f'Maximum {what} of a project, -1 for no limit. Change it '
        'when most projects need another limit; set limits of single '
        'projects with "quota set".',
    )


GROUP = cfg.OptGroup('quota', title='Default quotas of projects')
OPTS = [
    _limit('shares', 50, 'number of shares'),
    _limit('gigabytes', 1000, 'total size of shares in GiB'),
    cfg.IntOpt(
        'per_share_gigabytes',
        default=-1,
        mutable=True,
        deprecated_group='DEFAULT',
        deprecated_name='quota_per_share_gigabytes',
        help='Maximum size of one share in GiB, -1 for no limit. Set it '
        'when one share must not fill a back end.',
    ),
    _limit('snapshots', 50, 'number of snapshots'),
    _limit('snapshot_gigabytes', 1000, 'total size of snapshots in GiB'),
    _limit('share_networks', 10, 'number of share networks'),
    _limit('share_groups', 50, 'number of share groups'),
    _limit('share_group_snapshots', 50, 'number of share group snapshots'),
    _limit('share_replicas', 100, 'number of share replicas'),
    _limit('replica_gigabytes', 1000, 'total size of share replicas in GiB'),
    _limit('backups', 10, 'number of share backups'),
    _limit('backup_gigabytes', 1000, 'total size of share backups in GiB'),
    cfg.IntOpt(
        'encryption_keys',
        default=100,
        mutable=True,
        help='Maximum number of encryption keys of a project, -1 for no '
        'limit. Change it together with the limit of the key manager.',
    ),
]
