"""Options of work: leases, sweeps, retries and limits."""

from oslo_config import cfg

GROUP = cfg.OptGroup('work', title='Accepted work')
OPTS = [
    cfg.FloatOpt(
        'lease',
        default=30.0,
        min=0.1,
        help='Seconds after which work is taken over when its process no '
        'longer renews the lease. Lower it to recover faster; keep it '
        'well above the longest pause of a loaded node or database.',
    ),
    cfg.FloatOpt(
        'sweep_interval',
        default=2.0,
        min=0.01,
        help='Seconds between sweeps for work whose hint was late or lost. '
        'Raise it when many services load an idle database.',
    ),
    cfg.IntOpt(
        'workers_per_backend',
        min=1,
        help='Number of operations that one process runs on one back end at '
        'the same time, at most. Threads are started as they are needed. By '
        'default the driver states the number; those that come with the '
        'service state 16. Lower it to spare a back end; raise it for one '
        'that is slow but parallel.',
    ),
    cfg.IntOpt(
        'scheduler_workers',
        default=2,
        min=1,
        help='Number of requests that one scheduler places at the same '
        'time. Rarely worth raising: placement is quick.',
    ),
    cfg.IntOpt(
        'data_workers',
        default=2,
        min=1,
        help='Number of shares that one data service copies at the same '
        'time. Raise it when the storage is faster than one copy.',
    ),
    cfg.IntOpt(
        'max_attempts',
        default=5,
        min=1,
        help='Maximum number of attempts of an operation after transient '
        'errors. Raise it when back ends are unavailable for longer '
        'times.',
    ),
    cfg.FloatOpt(
        'retry_delay',
        default=1.0,
        min=0.0,
        help='Seconds before the first retry; grows from retry to retry, '
        'with some randomness. Raise it when retries disturb a back '
        'end that is starting.',
    ),
    cfg.IntOpt(
        'max_queue',
        default=5000,
        min=0,
        help='Number of operations in the queue of one back end, or of the '
        'scheduler, at which the API responds with 503 and Retry-After '
        'to further requests for it; 0 means no limit. Lower it when '
        'users prefer a refusal to a long wait.',
    ),
    cfg.FloatOpt(
        'operation_timeout',
        default=3600.0,
        min=0.1,
        help='Seconds without progress after which the lease of an '
        'operation is no longer renewed and it is rescued. Keep it '
        'above the longest call of any driver, copies included.',
    ),
    cfg.FloatOpt(
        'driver_hang_time',
        default=300.0,
        min=0.0,
        help='Seconds for which the same operations may occupy all workers '
        'of a back end before it is reported as down and is given no '
        'new shares, until one of them ends. Raise it when regular '
        'operations, such as copies, take longer; 0 never reports it.',
    ),
    cfg.IntOpt(
        'unserved_timeout',
        default=900,
        min=0,
        help='Seconds without any process of a back end, or without any data '
        'service, after which the work in its queue fails. Raise it when back '
        'ends may be down for longer and users shall wait for them; 0 keeps '
        'the work until an administrator cancels it.',
    ),
    cfg.FloatOpt(
        'transfer_wait',
        default=5.0,
        min=0.0,
        help='Seconds that a request to accept a share transfer waits for '
        'the back end, since clients expect the share in their project '
        'after it. Lower it if slow back ends occupy too many threads of '
        'the API; the transfer is carried out in any case.',
    ),
    cfg.IntOpt(
        'journal_retention',
        default=2592000,
        min=0,
        help='Seconds that status changes are kept in the journal; 0 keeps '
        'them. Raise it to look further back, at the price of a larger '
        'database.',
    ),
]
