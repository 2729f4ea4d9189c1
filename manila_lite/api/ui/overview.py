"""The first page: what is healthy, worked on, stuck or failed; and recovery."""

import datetime
import typing

from manila_lite import exception
from manila_lite.api.ui import failures
from manila_lite.api.ui.visit import Answer, Visit
from manila_lite.db.queries.recovery import overview
from manila_lite.db.queries.work import events
from manila_lite.db.rows import NamedRow, UsageTotalRow
from manila_lite.share.operations import recovery

ROWS = 100
"""Rows of a page."""

HOUR = datetime.timedelta(hours=1)
TOTALS_AGE = datetime.timedelta(minutes=1)


class Kind(typing.NamedTuple):
    """What users call a kind; `usage` is its name in quotas, if it has one."""

    title: str
    usage: str | None = None
    is_main: bool = True


KINDS = {
    'share_instance': Kind('Shares', 'shares'),
    'snapshot_instance': Kind('Snapshots', 'snapshots'),
    'share_replica': Kind('Replicas', 'share_replicas'),
    'access_rule': Kind('Access rules of shares'),
    'snapshot_access_rule': Kind('Access rules of snapshots'),
    'share_group': Kind('Share groups', 'share_groups'),
    'share_group_snapshot': Kind('Snapshots of groups', 'share_group_snapshots'),
    'share_backup': Kind('Backups', 'backups'),
    'share_network': Kind('Share networks', 'share_networks'),
    'share_server': Kind('Share servers'),
    'share_instance_access': Kind('Sets of access rules', is_main=False),
    'share_task': Kind('Migrations of shares', is_main=False),
    'share_server_task': Kind('Migrations of share servers', is_main=False),
    'share_transfer': Kind('Transfers', is_main=False),
}
"""The kinds in the order of the overview; those that are not main come below."""


def show(visit: Visit) -> Answer:
    """Show the numbers of resources by condition, services and failures."""
    counts: dict[str, dict[str, int]] = {}
    for row in visit.services.db.read(overview.count, visit.project_id):
        numbers = counts.setdefault(row.resource, {})
        found = numbers.get(row.condition, 0) + row.number
        numbers[row.condition] = min(found, overview.MOST)
    totals = {row.resource: row.number for row in _read_totals(visit)}
    messages = failures.read_newest(visit)
    named = failures.read_names(visit, messages)
    found = visit.api.find('/services')
    services = found and found['services']
    return visit.page(
        'overview.html',
        counts=counts,
        kinds=[
            [(name, kind) for name, kind in KINDS.items() if kind.is_main is is_main]
            for is_main in (True, False)
        ],
        totals=totals,
        conditions=overview.CONDITIONS,
        most=overview.MOST,
        failures=failures.by_reason(messages, named),
        services=services,
        missing=[one for one in services or () if not _serves(one)],
        problems=_problems(visit, counts, services or (), messages, named),
    )


def _read_totals(visit: Visit) -> typing.Sequence[UsageTotalRow]:
    """Return the usage; that of all projects is up to a minute old.

    Summing it up takes a second with ten thousand projects.
    """
    read = visit.services.db.read
    if visit.project_id is not None:
        return read(overview.list_totals, visit.project_id)
    known = visit.totals
    if known.rows is None or visit.now - known.read_at >= TOTALS_AGE:
        known.rows, known.read_at = read(overview.list_totals, None), visit.now
    return known.rows


def _serves(service: dict) -> bool:
    return service['state'] == 'up' and service['status'] == 'enabled'


def _problems(
    visit: Visit,
    counts: dict[str, dict[str, int]],
    services: typing.Sequence[dict],
    messages: list[dict],
    named: dict[str, list[NamedRow]],
) -> list[str]:
    """Return the parts of a sentence about what is wrong now; empty if nothing is."""
    found = []
    down = [one for one in services if one['state'] != 'up']
    if down:
        names = ', '.join(
            f'{one["binary"]} on {one["host"]}{_since(one["updated_at"])}'
            for one in down[:3]
        )
        more = f' and {len(down) - 3} more' if len(down) > 3 else ''
        found.append(f'{_count(len(down), "service")} down: {names}{more}')
    since = (visit.now - HOUR).isoformat()
    recent = [one for one in messages if one['created_at'] >= since]
    if recent:
        number = (
            f'{len(recent)} or more'
            if len(recent) == failures.MESSAGES
            else len(recent)
        )
        text = f'{number} requests failed in the last hour'
        if len(recent) == 1:
            text = '1 request failed in the last hour'
        hosts = {one['host'] for one in down}
        if recent and all(_is_on(hosts, one, named) for one in recent):
            text += ', all of them there' if len(recent) > 1 else ', there'
        found.append(text)
    stuck = sum(one.get(overview.STUCK, 0) for one in counts.values())
    if stuck:
        found.append(f'{_count(stuck, "resource")} stuck')
    return found


def _since(heard_at: str | None) -> str:
    return f' since {heard_at[11:16]} UTC' if heard_at else ''


def _count(number: int, noun: str) -> str:
    return f'{number} {noun} is' if number == 1 else f'{number} {noun}s are'


def _is_on(hosts: set[str], message: dict, named: dict[str, list[NamedRow]]) -> bool:
    """Return whether a message is about a share on one of these back ends."""
    return any(
        (row.host or '').partition('#')[0] in hosts
        for row in named.get(message['resource_id'], ())
    )


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
        title=KINDS[resource].title,
        condition=condition,
        rows=rows[:ROWS],
        after=rows[ROWS - 1].id if len(rows) > ROWS else None,
    )


def _resources(visit: Visit) -> tuple[str, ...]:
    return overview.RESOURCES if visit.is_admin else overview.OF_PROJECTS


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


def recovery_log(visit: Visit) -> Answer:
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


def run_recovery(visit: Visit) -> Answer:
    """Request a pass of all services, or the rescue of one resource."""
    named = {
        name: visit.form[name]
        for name in ('resource_type', 'resource_id')
        if visit.form.get(name)
    }
    visit.api.send('POST', '/recovery/run', {'run': named})
    return visit.see('/ui/in-flight', done='rescue' if named else 'pass')
