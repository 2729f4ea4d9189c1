"""Options of the recovery of abandoned resources."""

from oslo_config import cfg

GROUP = cfg.OptGroup('recovery', title='Recovery of abandoned resources')
OPTS = [
    cfg.IntOpt(
        'interval',
        default=60,
        min=0,
        help='Seconds between passes that rescue resources in flight '
        'without work; 0 makes passes at start and on request only. '
        'Raise it when many services load an idle database.',
    ),
    cfg.IntOpt(
        'batch',
        default=30,
        min=1,
        help='Maximum number of pending rescues of one back end. Lower it '
        'when requests of users wait too long behind many rescues.',
    ),
    cfg.FloatOpt(
        'question_timeout',
        default=60.0,
        min=0.1,
        help='Seconds a driver may take to report the state of a resource; '
        'after that the resource is set to an error status. Raise it '
        'for back ends that respond slowly.',
    ),
    cfg.IntOpt(
        'unanswered_questions',
        default=8,
        min=1,
        help='Number of unanswered requests after which a back end is '
        'considered unresponsive; no others are made until one is '
        'answered. Each occupies a thread.',
    ),
    cfg.IntOpt(
        'log_retention',
        default=2592000,
        min=0,
        help='Seconds that decisions are kept in the recovery log; 0 keeps '
        'them. Raise it to look further back, at the price of a larger '
        'database.',
    ),
]
