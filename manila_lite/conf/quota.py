"""The limits of projects for which none were set."""

from oslo_config import cfg


def _limit(name: str, default: int, what: str) -> cfg.IntOpt:
    return cfg.IntOpt(
        name,
        default=default,
        deprecated_group='DEFAULT',
        deprecated_name=f'quota_{name}',
        help=f'{what} a project may have, -1 for any number. Change it '
        'when most projects need another limit; single projects are '
        'set with "quota set".',
    )


GROUP = cfg.OptGroup('quota', title='Default quotas of projects')
OPTS = [
    _limit('shares', 50, 'Shares'),
    _limit('gigabytes', 1000, 'GiB in all shares'),
    cfg.IntOpt(
        'per_share_gigabytes',
        default=-1,
        deprecated_group='DEFAULT',
        deprecated_name='quota_per_share_gigabytes',
        help='Largest size of one share in GiB, -1 for any size. '
        'Set it when one share must not fill a back end.',
    ),
    _limit('snapshots', 50, 'Snapshots'),
    _limit('snapshot_gigabytes', 1000, 'GiB in all snapshots'),
    _limit('share_networks', 10, 'Share networks'),
    _limit('share_groups', 50, 'Share groups'),
    _limit('share_group_snapshots', 50, 'Share group snapshots'),
    _limit('share_replicas', 100, 'Share replicas'),
    _limit('replica_gigabytes', 1000, 'GiB in all share replicas'),
    _limit('backups', 10, 'Share backups'),
    _limit('backup_gigabytes', 1000, 'GiB in all share backups'),
    cfg.IntOpt(
        'encryption_keys',
        default=100,
        help='Encryption keys a project may use, -1 for any number. '
        'Change it with the limit of the key manager.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, GROUP)
