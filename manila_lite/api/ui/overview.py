"""The first page: what is healthy, worked on, stuck or failed."""

from manila_lite import exception
from manila_lite.api.ui.visit import Answer, Visit
from manila_lite.db.queries.admin import overview

ROWS = 100
"""Rows of a page."""

FAILURES = 10
"""Failures on the overview."""


def show(visit: Visit) -> Answer:
    """Show the numbers of resources by condition, services and failures."""
    counts: dict[str, dict[str, int]] = {}
    for row in visit.services.db.read(overview.count, visit.project_id):
        numbers = counts.setdefault(row.resource, {})
        found = numbers.get(row.condition, 0) + row.number
        numbers[row.condition] = min(found, overview.MOST)
    failures = visit.api.find('/messages', message_level='ERROR', limit=FAILURES)
    found = visit.api.find('/services')
    services = found and found['services']
    return visit.page(
        'overview.html',
        counts=counts,
        resources=_resources(visit),
        conditions=overview.CONDITIONS,
        most=overview.MOST,
        failures=(failures or {}).get('messages', []),
        services=services,
        missing=[one for one in services or () if not _serves(one)],
    )


def _serves(service: dict) -> bool:
    return service['state'] == 'up' and service['status'] == 'enabled'


def list_rows(visit: Visit) -> Answer:
    """Show the rows of a kind that are in a condition."""
    resource = visit.query.get('kind', '')
    condition = visit.query.get('condition', '')
    if resource not in _resources(visit):
        raise exception.NotFound('There is no such kind.')
    if condition not in overview.CONDITIONS:
        raise exception.NotFound('There is no such condition.')
    rows = visit.services.db.read(
        overview.list_rows,
        resource,
        condition,
        visit.project_id,
        most=ROWS + 1,
        after=visit.query.get('after', '')[:36],
    )
    return visit.page(
        'rows.html',
        resource=resource,
        condition=condition,
        rows=rows[:ROWS],
        after=rows[ROWS - 1].id if len(rows) > ROWS else None,
    )


def _resources(visit: Visit) -> tuple[str, ...]:
    return overview.RESOURCES if visit.is_admin else overview.OF_PROJECTS
