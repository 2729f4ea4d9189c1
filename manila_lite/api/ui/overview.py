"""The first page: what is healthy, worked on, stuck or failed."""

import dataclasses
import datetime
import typing
import urllib.parse

from manila_lite import exception
from manila_lite.api.ui import conditions, share_actions, shares
from manila_lite.api.ui.listing import Column, Listing
from manila_lite.api.ui.visit import Answer, Visit
from manila_lite.db.queries.recovery import overview
from manila_lite.db.rows import NamedShareRow, UsageTotalRow

ROWS = 100
"""Rows of a page."""

FAILURES = 10
"""Reasons of failures on the overview."""

MESSAGES = 200
"""The newest failures, which are grouped by their reason."""

REASON = ('resource_type', 'action_id', 'detail_id')
"""What failures have in common that are for one reason."""

FAILED_SHARES = dataclasses.replace(
    shares.COLLECTION,
    columns=(
        Column('Name', is_wide=False),
        Column('Status', is_wide=False),
        Column('Last', is_wide=False),
        Column('Request'),
    ),
)

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


class Failure(typing.NamedTuple):
    """Failures for one reason: the newest message, and the shares."""

    newest: dict
    number: int
    shares: dict[str, str]

    @property
    def query(self) -> str:
        """The query of the page with all shares that failed for this reason."""
        return urllib.parse.urlencode({name: self.newest[name] for name in REASON})


class FailedShare(typing.NamedTuple):
    """A share that a request has failed for, with the newest message.

    It is `selected` for actions if it is still in a status that failed.
    """

    id: str
    name: str
    statuses: list[str]
    newest: dict
    selected: bool


def show(visit: Visit) -> Answer:
    """Show the numbers of resources by condition, services and failures."""
    counts: dict[str, dict[str, int]] = {}
    for row in visit.services.db.read(overview.count, visit.project_id):
        numbers = counts.setdefault(row.resource, {})
        found = numbers.get(row.condition, 0) + row.number
        numbers[row.condition] = min(found, overview.MOST)
    totals = {row.resource: row.number for row in _read_totals(visit)}
    messages = _newest_failures(visit)
    named = _shares_of(visit, messages)
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
        failures=_by_reason(messages, named),
        services=services,
        missing=[one for one in services or () if not _serves(one)],
        problems=_problems(visit, counts, services or (), messages, named),
    )


def _read_totals(visit: Visit) -> typing.Sequence[UsageTotalRow]:
    """Return what there is; those of all projects are up to a minute old.

    To sum them up takes a second with ten thousand projects.
    """
    read = visit.services.db.read
    if visit.project_id is not None:
        return read(overview.list_totals, visit.project_id)
    known = visit.totals
    if known.rows is None or visit.now - known.read_at >= TOTALS_AGE:
        known.rows, known.read_at = read(overview.list_totals, None), visit.now
    return known.rows


def _newest_failures(visit: Visit) -> list[dict]:
    answer = visit.api.find('/messages', message_level='ERROR', limit=MESSAGES)
    return (answer or {}).get('messages', [])


def _serves(service: dict) -> bool:
    return service['state'] == 'up' and service['status'] == 'enabled'


def _shares_of(visit: Visit, messages: list[dict]) -> dict[str, list[NamedShareRow]]:
    """Return the shares that messages are about, with all their hosts."""
    ids = {one['resource_id'] for one in messages if one['resource_type'] == 'SHARE'}
    found: dict[str, list[NamedShareRow]] = {}
    if ids:
        for row in visit.services.db.read(overview.list_names, ids, visit.project_id):
            found.setdefault(row.id, []).append(row)
    return found


def _by_reason(
    messages: list[dict], named: dict[str, list[NamedShareRow]]
) -> list[Failure]:
    """Return the newest failures, one for each action and reason."""
    found: dict[tuple, Failure] = {}
    for one in messages:
        # The words of administrators differ in times and names.
        reason = tuple(one[name] for name in REASON)
        failure = found.setdefault(reason, Failure(one, 0, {}))
        if one['resource_id'] in named and len(failure.shares) < FAILURES:
            share = named[one['resource_id']][0]
            failure.shares[share.id] = share.name or share.id
        found[reason] = failure._replace(number=failure.number + 1)
    return list(found.values())[:FAILURES]


def _problems(
    visit: Visit,
    counts: dict[str, dict[str, int]],
    services: typing.Sequence[dict],
    messages: list[dict],
    named: dict[str, list[NamedShareRow]],
) -> list[str]:
    """Return what is wrong now, in the words of a sentence; empty if nothing."""
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
        number = f'{len(recent)} or more' if len(recent) == MESSAGES else len(recent)
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


def _is_on(
    hosts: set[str], message: dict, named: dict[str, list[NamedShareRow]]
) -> bool:
    """Tell whether a message is about a share on one of these back ends."""
    return any(
        (row.host or '').partition('#')[0] in hosts
        for row in named.get(message['resource_id'], ())
    )


def list_failures(visit: Visit) -> Answer:
    """Show the shares of the newest failures for one reason, to act on many."""
    reason = {name: visit.query.get(name, '') for name in REASON}
    if not all(reason.values()):
        raise exception.NotFound('There is no such reason.')
    messages = [
        one
        for one in _newest_failures(visit)
        if all(one[name] == value for name, value in reason.items())
    ]
    named = _shares_of(visit, messages)
    newest: dict[str, dict] = {}
    for one in messages:
        newest.setdefault(one['resource_id'], one)
    return visit.page(
        'failures.html',
        number=len(messages),
        messages=messages[:1],
        list=Listing(
            FAILED_SHARES,
            [_failed_share(named[id], newest[id]) for id in newest if id in named],
            None,
            {},
        ),
        many=share_actions.ACTIONS.allowed(visit, FAILED_SHARES.many),
    )


def _failed_share(rows: list[NamedShareRow], newest: dict) -> FailedShare:
    statuses = sorted({row.status for row in rows if row.status})
    has_failed = any(conditions.of_status(one) == overview.FAILED for one in statuses)
    share = rows[0]
    return FailedShare(share.id, share.name or share.id, statuses, newest, has_failed)


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
