"""How accepted requests are carried out."""

from oslo_config import cfg

GROUP = cfg.OptGroup('work', title='Work accepted and still owed')
OPTS = [
    cfg.FloatOpt(
        'lease',
        default=30.0,
        min=0.1,
        help='Seconds after which the work of a process that no '
        'longer renews it is taken over. Lower it to recover '
        'faster; keep it well above the longest pause of a '
        'loaded node or database.',
    ),
    cfg.FloatOpt(
        'sweep_interval',
        default=2.0,
        min=0.01,
        help='Seconds between looks for work whose message was '
        'late or lost. Raise it when many services make the '
        'idle database busy.',
    ),
    cfg.IntOpt(
        'workers_per_backend',
        default=2,
        min=1,
        help='Operations of one back end carried out at a time. '
        'Raise it for back ends that are slow but parallel.',
    ),
    cfg.IntOpt(
        'scheduler_workers',
        default=2,
        min=1,
        help='Requests one scheduler places at a time. Rarely worth '
        'raising: placing is quick.',
    ),
    cfg.IntOpt(
        'max_attempts',
        default=5,
        min=1,
        help='Tries of an operation whose failure may pass. Raise '
        'it when back ends are away for longer at a time.',
    ),
    cfg.FloatOpt(
        'retry_delay',
        default=1.0,
        min=0.0,
        help='Seconds before the first retry; grows and varies '
        'from try to try. Raise it when retries hinder a '
        'back end that is coming up.',
    ),
    cfg.IntOpt(
        'max_queue',
        default=5000,
        min=0,
        help='Operations waiting for workers at which the API '
        'answers 503 with Retry-After instead of accepting '
        'more; 0 accepts always. Lower it when users prefer a '
        'refusal to a long wait.',
    ),
    cfg.FloatOpt(
        'operation_timeout',
        default=3600.0,
        min=0.1,
        help='Seconds without progress after which an operation '
        'is no longer held and is rescued. Keep it above the '
        'longest call of any driver, copies included.',
    ),
    cfg.IntOpt(
        'journal_retention',
        default=2592000,
        min=60,
        help='Seconds that the journal of status changes remembers. '
        'Raise it to look further back, at the price of a '
        'larger database.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, GROUP)
