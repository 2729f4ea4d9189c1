"""Options of rows and transactions; the connection is one of oslo.db."""

from oslo_config import cfg

GROUP = None
OPTS = [
    cfg.BoolOpt(
        'enable_new_services',
        default=True,
        help='Enable new services at once. Turn it off to check a new node '
        'before "service enable".',
    ),
    cfg.StrOpt(
        'share_name_template',
        default='share-%s',
        help='Template of share names on back ends, filled with the '
        'instance id. Set it before the first share is created when '
        'several installations use one back end.',
    ),
    cfg.StrOpt(
        'share_snapshot_name_template',
        default='share-snapshot-%s',
        help='Template of snapshot names on back ends, filled with the '
        'snapshot instance id. Set it together with '
        'share_name_template.',
    ),
    cfg.StrOpt(
        'share_backup_name_template',
        default='share-backup-%s',
        help='Template of the names that drivers get of the backups they '
        'make, filled with the backup id. Set it together with '
        'share_name_template.',
    ),
    cfg.FloatOpt(
        'transaction_retry_limit',
        default=20.0,
        min=0.0,
        help='Seconds for which a transaction is repeated that loses '
        'against others: deadlocks, waits for locks, conflicts of Galera '
        'nodes. After that the API answers 503, and accepted work is tried '
        'again later. Raise it if clients get such answers under load.',
    ),
]
