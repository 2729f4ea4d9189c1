"""Rhythms of the share service besides those of every service."""

from oslo_config import cfg

GROUP = None
OPTS = [
    cfg.IntOpt('check_for_expired_shares_in_recycle_bin_interval',
               default=3600,
               help='Seconds between looks for shares whose time in the '
                    'recycle bin is over. Lower it when their capacity is '
                    'wanted sooner.'),
    cfg.IntOpt('periodic_deferred_delete_interval', default=300,
               help='Seconds between rounds over shares whose deletion '
                    'was deferred. Lower it when they pile up.'),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, GROUP)
