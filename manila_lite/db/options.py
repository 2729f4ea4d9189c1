"""The options of oslo.db that are read, in section [database]."""

import copy
import typing

from oslo_config import cfg
from oslo_db import options

GROUP = 'database'
READ = frozenset(
    {
        'connection',
        'connection_debug',
        'connection_parameters',
        'connection_recycle_time',
        'connection_trace',
        'max_overflow',
        'max_pool_size',
        'max_retries',
        'mysql_sql_mode',
        'mysql_wsrep_sync_wait',
        'pool_timeout',
        'retry_interval',
    }
)
"""For the others see `conf.ignored`."""

OPTS = [option for option in options.database_opts if option.name in READ]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, GROUP)


def engine_options(section: cfg.ConfigOpts.GroupAttr) -> dict[str, typing.Any]:
    """Return the arguments of an engine."""
    return {
        'pool_size': section.max_pool_size,
        'max_overflow': section.max_overflow,
        'pool_timeout': section.pool_timeout,
        'recycle': section.connection_recycle_time,
        'sql_mode': section.mysql_sql_mode,
        'wsrep_sync_wait': section.mysql_wsrep_sync_wait,
        'debug': section.connection_debug,
        'trace': section.connection_trace,
        'parameters': section.connection_parameters,
    }


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample file generator."""
    return [(GROUP, copy.deepcopy(OPTS))]
