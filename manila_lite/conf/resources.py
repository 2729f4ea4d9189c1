"""Options of backups, transfers and user messages."""

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
    cfg.IntOpt(
        'transfer_retention_time',
        default=300,
        help='Seconds until a share transfer that is not accepted expires. '
        'Raise it when people pass on the keys.',
    ),
    cfg.IntOpt(
        'check_for_expired_transfers',
        default=300,
        help='Seconds between searches for expired share transfers, whose '
        'shares then become available again. Lower it if shares should not '
        'wait that long.',
    ),
    cfg.IntOpt(
        'share_transfer_salt_length',
        default=8,
        min=8,
        max=255,
        help='Characters of the salt with which the key of a share transfer '
        'is hashed. There is no need to change it.',
    ),
    cfg.IntOpt(
        'share_transfer_key_length',
        default=16,
        min=16,
        max=255,
        help='Characters of the key of a share transfer, with 4 bits each. '
        'Raise it when transfers remain open for days.',
    ),
    cfg.IntOpt(
        'message_ttl',
        default=2592000,
        help='Seconds a user message is kept. Raise it when users ask '
        'later why something failed.',
    ),
    cfg.IntOpt(
        'message_reap_interval',
        default=86400,
        help='Seconds between purges of expired messages and other old '
        'rows, which one scheduler of all runs. Lower it when many of '
        'them accumulate.',
    ),
]
