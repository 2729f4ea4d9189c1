"""Resources in flight, what recovery would do, and what it did."""

from manila_lite.api.ui.visit import Answer, Visit
from manila_lite.db.queries.work import events
from manila_lite.share.operations import recovery

ROWS = 100


def in_flight(visit: Visit) -> Answer:
    """Show resources in flight, with their holders and next steps."""
    kind = visit.query.get('kind', '')
    wanted = {'resource_type': kind} if kind else {}
    found = visit.api.get('/recovery/in-flight', limit=ROWS, **wanted)
    rows = found['in_flight']
    ids: dict[str, list[str]] = {}
    for row in rows:
        ids.setdefault(row['resource_type'], []).append(row['resource_id'])
    return visit.page(
        'in_flight.html',
        rows=rows,
        most=ROWS,
        last=visit.services.db.read(events.list_last_moves, ids),
        kind=kind,
        kinds=recovery.RESOURCES,
        free=(recovery.NOBODY, recovery.ABANDONED),
        may_run=visit.ctx.can('recovery:run'),
    )


def log(visit: Visit) -> Answer:
    """Show a page of the decisions of recovery, newest first."""
    offset = visit.number('offset')
    wanted = {}
    if visit.query.get('resource_id'):
        wanted['resource_id'] = visit.query['resource_id']
    found = visit.api.get('/recovery/log', limit=ROWS, offset=offset, **wanted)
    rows = found['log']
    return visit.page(
        'recovery_log.html',
        rows=rows,
        resource_id=wanted.get('resource_id', ''),
        next_offset=offset + ROWS if len(rows) == ROWS else None,
    )


def run(visit: Visit) -> Answer:
    """Request a pass of all services, or the rescue of one resource."""
    named = {
        name: visit.form[name]
        for name in ('resource_type', 'resource_id')
        if visit.form.get(name)
    }
    visit.api.send('POST', '/recovery/run', {'run': named})
    return visit.see('/ui/in-flight', done='rescue' if named else 'pass')
