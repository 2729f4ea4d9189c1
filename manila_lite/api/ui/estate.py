"""Capacity, quotas, services and migrations."""

from collections.abc import Collection
import math
import typing

import orjson

from manila_lite.api.ui.visit import CAPACITY_POLICY
from manila_lite.api.ui.visit import MIGRATIONS_POLICY
from manila_lite.api.ui.visit import SHARE_MIGRATIONS_POLICY
from manila_lite.api.ui.visit import Answer
from manila_lite.api.ui.visit import Visit
from manila_lite.db import rows
from manila_lite.db.queries.admin import pools as pool_rows
from manila_lite.db.queries.admin import releases
from manila_lite.db.queries.admin import services as service_rows
from manila_lite.db.queries.servers import migrations as migration_rows
from manila_lite.db.queries.shares import migrations as share_migrations
from manila_lite.quota import recount
from manila_lite.states.access_rule import RulesStatus
from manila_lite.states.share_task import SHARE_TASK
from manila_lite.states.share_task import ShareTask

POOLS = 100
MIGRATIONS = 50
_RECOUNT = 'quota_set:update'


class Bar(typing.NamedTuple):
    """A part of a whole; without a whole there is only the number."""

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
    """Show the pools in parts, each with its bars."""
    visit.authorize(CAPACITY_POLICY)
    first = visit.number('first')
    read = visit.services.db.read
    allocations = read(pool_rows.list_allocations)
    shown = allocations[first : first + POOLS]
    reports = {
        row.host: row
        for row in read(pool_rows.list_reports, [row.host for row in shown])
    }
    return visit.page(
        'capacity.html',
        pools=[
            (row, _bars_of_pool(row, reports[row.host]))
            for row in shown
            if row.host in reports
        ],
        number=len(allocations),
        first=first,
        following=(
            first + POOLS if len(allocations) > first + POOLS else None
        ),
    )


def _bars_of_pool(
    allocation: rows.PoolAllocationRow, report: rows.PoolReportRow
) -> list[Bar]:
    total, free = report.total_gb, report.free_gb
    found = orjson.loads(report.capabilities)
    limit = total
    if total is not None and found.get('thin_provisioning'):
        limit = total * float(found.get('max_over_subscription_ratio') or 1)
    bars = [
        Bar('Allocated', allocation.allocated_gb, total),
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
        releases=numbers,
    )


def migrations(visit: Visit) -> Answer:
    """Show what migrates, and what blocks it.

    Of share servers also the migrations that ended last; the last one of a
    share is on the page of the share.
    """
    visit.authorize(MIGRATIONS_POLICY)
    visit.authorize(SHARE_MIGRATIONS_POLICY)
    read = visit.services.db.read
    found = visit.api.find('/services') or {'services': []}
    down = {one['host'] for one in found['services'] if one['state'] != 'up'}
    return visit.page(
        'migrations.html',
        most=MIGRATIONS,
        shares=[
            (row, _blockers(row, down), _migration_actions(row))
            for row in read(share_migrations.list_running, most=MIGRATIONS)
        ],
        migrations=visit.services.db.read(
            migration_rows.list_migrations, most=MIGRATIONS
        ),
    )


def _blockers(
    row: rows.RunningShareMigrationRow, down: Collection[str]
) -> list[str]:
    """Return what the migration of a share waits for."""
    found = []
    if row.task_state == ShareTask.PHASE1_DONE:
        found.append('An administrator has to complete or cancel it.')
    for title, host in (
        ('source', row.source_host),
        ('destination', row.destination_host),
    ):
        if host.partition('#')[0] in down:
            found.append(f'The service of the {title} is not up.')
    if row.casts_rules and row.rules_status != RulesStatus.ACTIVE:
        found.append('The access rules of the source are being applied.')
    if row.work_state == 'queued':
        found.append('Its work waits for a worker.')
    elif row.work_owner:
        found.append(f'Its work is held by {row.work_owner}.')
    elif row.task_state in SHARE_TASK.in_flight and row.work_state is None:
        found.append('It has no work; recovery handles it.')
    if row.work_error:
        found.append(f'The last attempt failed: {row.work_error}')
    return found


def _migration_actions(
    row: rows.RunningShareMigrationRow,
) -> dict[str, str | None]:
    """Return the actions, with the reasons of those not possible."""
    found: dict[str, str | None] = {}
    for event in ('complete', 'cancel'):
        sources = SHARE_TASK[event].sources
        found[event] = None
        if row.task_state not in sources:
            wanted = ' or '.join(sorted(sources)).replace('_', ' ')
            found[event] = f'Its state must be {wanted}.'
    return found
