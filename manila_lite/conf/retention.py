"""Options for the retention of obsolete rows."""

from oslo_config import cfg

GROUP = cfg.OptGroup('retention', title='Retention of old rows')
OPTS = [
    cfg.IntOpt(
        'driver_calls',
        default=2592000,
        min=0,
        help='Seconds that the calls of drivers are kept, which the page '
        'shows in the history of a share; 0 keeps them. Lower it if this '
        'table becomes too large.',
    ),
    cfg.IntOpt(
        'journal_rows',
        default=0,
        min=0,
        help='Number of status changes in the journal, at most. Older ones, and '
        'the calls of drivers of their time, are deleted every minute, however '
        'young they are; 0 is no limit. A million takes about 1 GB with its '
        'calls. Set it to the space that the database has for them.',
    ),
    cfg.IntOpt(
        'services',
        default=2592000,
        min=0,
        help='Seconds without a heartbeat after which a service is deleted '
        'from the list of services, unless it is disabled or has shares, '
        'share servers or work; 0 keeps it. Lower it where nodes come and '
        'go.',
    ),
    cfg.IntOpt(
        'server_migrations',
        default=2592000,
        min=0,
        help='Seconds that migrations of share servers are kept after their '
        'end; 0 keeps them. Raise it to look further back.',
    ),
]
