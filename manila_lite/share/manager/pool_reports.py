"""Convert the statistics of a driver into the pools schedulers read."""

import datetime
import math
import typing

from manila_lite.db.queries.services.pools import PoolReport

DEFAULT_POOL = 'pool'
"""The name of the one pool of a back end that does not report pools."""


def pool_reports(
    stats: dict[str, typing.Any], service_host: str, now: datetime.datetime
) -> list[PoolReport]:
    """Return one report per pool; values of the back end apply to each.

    Capacities that are not numbers (`infinite`, `unknown`) become None.
    """
    common = {key: value for key, value in stats.items() if key != 'pools'}
    pools = stats.get('pools') or [{'pool_name': DEFAULT_POOL}]
    return [_report(common | pool, service_host, now) for pool in pools]


def _report(
    facts: dict[str, typing.Any], service_host: str, now: datetime.datetime
) -> PoolReport:
    facts['timestamp'] = now.isoformat(timespec='microseconds')
    return PoolReport(
        host=f'{service_host}#{facts["pool_name"]}',
        capabilities=facts,
        total_gb=_number(facts.get('total_capacity_gb')),
        free_gb=_number(facts.get('free_capacity_gb')),
    )


def _number(value: typing.Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
