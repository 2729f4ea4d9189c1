"""Capacity, quotas and services."""

import math
import typing

import orjson

from manila_lite.api.ui import charts
from manila_lite.api.ui.visit import CAPACITY_POLICY, Answer, Visit
from manila_lite.db import rows
from manila_lite.db.queries.services import (
    incarnations,
    pools as pool_rows,
    releases,
    services as service_rows,
)
from manila_lite.quota import recount

POOLS = 100
_RECOUNT = 'quota_set:update'


class Bar(typing.NamedTuple):
    """A part of a total; without a total only its number is shown."""

    title: str
    value: float
    whole: float | None
    unit: str = 'GiB'

    @property
    def percent(self) -> int | None:
        if not self.whole or self.whole < 0:
            return None
        return min(100, math.floor(100 * self.value / self.whole))


def capacity(visit: Visit) -> Answer:
    """Show the sum of all pools, then each with its parts, the fullest first."""
    visit.authorize(CAPACITY_POLICY)
    first = visit.number('first')
    read = visit.services.db.read
    sizes = sorted(read(pool_rows.list_sizes), key=_fullness, reverse=True)
    shown = sizes[first : first + POOLS]
    reports = {
        row.host: row
        for row in read(pool_rows.list_reports, [row.host for row in shown])
    }
    return visit.page(
        'capacity.html',
        together=_bars_together(sizes),
        trends=read(charts.read_trends, [row.host for row in shown]),
        pools=[
            (row, _bars_of_pool(row, reports[row.host]))
            for row in shown
            if row.host in reports
        ],
        number=len(sizes),
        first=first,
        following=(first + POOLS if len(sizes) > first + POOLS else None),
    )


def _fullness(size: rows.PoolSizeRow) -> float:
    """Return the part of a pool that is used; unknown ones come last."""
    if not size.total_gb or size.free_gb is None:
        return -1.0
    return 1 - size.free_gb / size.total_gb


def _bars_together(sizes: typing.Sequence[rows.PoolSizeRow]) -> list[Bar]:
    """Return bars of all pools that report their size."""
    known = [one for one in sizes if one.total_gb is not None]
    total = sum(one.total_gb or 0 for one in known)
    used = sum(
        (one.total_gb or 0) - one.free_gb for one in known if one.free_gb is not None
    )
    allocated = sum(one.allocated_gb for one in known)
    return [Bar('Used', used, total), Bar('Allocated to shares', allocated, total)]


def _bars_of_pool(size: rows.PoolSizeRow, report: rows.PoolReportRow) -> list[Bar]:
    total, free = report.total_gb, report.free_gb
    found = orjson.loads(report.capabilities)
    limit = total
    if total is not None and found.get('thin_provisioning'):
        limit = total * float(found.get('max_over_subscription_ratio') or 1)
    bars = [
        Bar('Allocated', size.allocated_gb, total),
        Bar('Provisioned', found.get('provisioned_capacity_gb') or 0, limit),
    ]
    if total is not None and free is not None:
        bars.insert(0, Bar('Used', total - free, total))
    return bars


def quotas(visit: Visit) -> Answer:
    """Show the quota of a project with its use, and a recount if asked."""
    project = visit.query.get('project') or str(visit.ctx.project_id)
    may_recount = visit.ctx.can(_RECOUNT)
    # A slash or a dot would lead to another path.
    found = visit.api.get(f'/quota-sets/{_as_segment(project)}/detail')
    quota = found['quota_set']
    bars = [
        (
            Bar(
                name,
                usage['in_use'] + usage['reserved'],
                usage['limit'],
                'GiB' if 'gigabytes' in name else '',
            ),
            usage,
        )
        for name, usage in quota.items()
        if isinstance(usage, dict)
    ]
    differences = None
    if may_recount and 'recount' in visit.query:
        differences = visit.services.db.read(recount.differences, project)
    return visit.page(
        'quotas.html',
        project=project,
        bars=bars,
        may_recount=may_recount,
        differences=differences,
    )


def _as_segment(text: str) -> str:
    return text if text.replace('-', '').replace('_', '').isalnum() else '-'


def services(visit: Visit) -> Answer:
    """Show the services, and why one is not up."""
    found = visit.api.get('/services')['services']
    found_rows = visit.services.db.read(service_rows.list_all)
    numbers = visit.services.db.read(releases.numbers_by_service)
    return visit.page(
        'services.html',
        services=found,
        reasons={row.id: row.health for row in found_rows if row.health},
        warnings=visit.services.db.read(
            incarnations.warnings_by_service, visit.services.conf.service_down_time
        ),
        releases=numbers,
    )
