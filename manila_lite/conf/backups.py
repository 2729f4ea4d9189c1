"""Options of share backups."""

from oslo_config import cfg

GROUP = None
OPTS = [
    cfg.StrOpt(
        'backup_driver',
        default='folder',
        help='Entry point of the group manila_lite.data.backups that keeps '
        'the backups of shares. Set it to keep them elsewhere than in '
        'backup_folder.',
    ),
    cfg.StrOpt(
        'backup_folder',
        default='$state_path/backups',
        help='Directory in which data services keep backups, one below it '
        'for each. Set it to a directory on storage other than that of the '
        'shares. Data services on several machines need the same one, on a '
        'file system that all of them mount.',
    ),
    cfg.ListOpt(
        'backup_ignore_files',
        default=['lost+found'],
        help='Names at the top of shares that are neither backed up nor '
        'removed when a backup is restored. Add what the storage keeps '
        'there itself.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, GROUP)
