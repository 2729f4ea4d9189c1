"""Options of events: notifications about changes of states."""

from oslo_config import cfg

GROUP = cfg.OptGroup('events', title='Events about changes of states')
OPTS = [
    cfg.BoolOpt(
        'enabled',
        default=False,
        help='Whether schedulers send every change of a state as a '
        'notification, to the bus and the topics of section '
        '[oslo_messaging_notifications]. Set it, for all schedulers, if '
        'something consumes the queues: a broker keeps what is not consumed. '
        'The purge of the journal then waits for what has not been sent.',
    ),
    cfg.FloatOpt(
        'interval',
        default=2.0,
        min=0.1,
        help='Seconds between looks for changes that have not been sent. '
        'Lower it when consumers need them sooner.',
    ),
]
