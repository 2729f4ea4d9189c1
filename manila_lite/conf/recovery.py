"""What is done about work whose holder is gone."""

from oslo_config import cfg

GROUP = cfg.OptGroup('recovery', title='Recovery of what nobody works on')
OPTS = [
    cfg.IntOpt(
        'interval',
        default=60,
        min=0,
        help='Seconds between looks for resources in flight that '
        'nobody works on; 0 looks at start and on request '
        'only. Raise it when many services make the idle '
        'database busy.',
    ),
    cfg.IntOpt(
        'batch',
        default=30,
        min=1,
        help='Resources of one back end whose rescue is owed at a '
        'time. Lower it when requests of users wait too long '
        'behind a mass of rescues.',
    ),
    cfg.FloatOpt(
        'question_timeout',
        default=60.0,
        min=0.1,
        help='Seconds a driver may take to say what became of a '
        'resource; then the resource is given up, visibly. '
        'Raise it for back ends that are slow to ask.',
    ),
    cfg.IntOpt(
        'unanswered_questions',
        default=8,
        min=1,
        help='Questions a driver may leave unanswered before the '
        'back end counts as away; until one is answered no '
        'others are asked. Each keeps a thread.',
    ),
    cfg.IntOpt(
        'log_retention',
        default=2592000,
        min=60,
        help='Seconds that the log of recovery remembers its '
        'decisions. Raise it to look further back, at the '
        'price of a larger database.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, GROUP)
