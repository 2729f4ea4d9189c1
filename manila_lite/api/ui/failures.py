"""The newest failures, grouped by their reason, and actions on what failed."""

import dataclasses
import typing
import urllib.parse

from manila_lite import exception
from manila_lite.api.ui import actions, groups, html, share_actions, shares
from manila_lite.api.ui.actions import Action, Actions
from manila_lite.api.ui.api_client import Refused
from manila_lite.api.ui.listing import LISTED, Collection, Column, Listing
from manila_lite.api.ui.visit import Answer, Visit
from manila_lite.db.queries.recovery import overview
from manila_lite.db.rows import NamedRow
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE, SNAPSHOT_RESETS

REASONS = 10
"""Reasons of failures on the overview, with as many resources of each."""

MESSAGES = 200
"""The newest failures, which are grouped by their reason."""

REASON = ('resource_type', 'action_id', 'detail_id')
"""What failures have in common that are for one reason."""

_COLUMNS = (
    Column('Name', is_wide=False),
    Column('Status', is_wide=False),
    Column('Last', is_wide=False),
    Column('Request'),
)
_SELECTED = '/ui/failures/selected'


class FailedKind(typing.NamedTuple):
    """A kind of resource that messages are about: its list, actions and API."""

    collection: Collection
    actions: Actions
    api_path: str
    key: str


def _failed(collection: Collection) -> Collection:
    return dataclasses.replace(collection, columns=_COLUMNS, acts_at=_SELECTED)


def _of_shares(noun: str, statuses: typing.Iterable[str]) -> Collection:
    """Return the collection of a kind that is shown on the page of its share."""
    return Collection(
        shares.COLLECTION.path,
        noun,
        _COLUMNS,
        (),
        shares.COLLECTION.many,
        sorted(statuses),
        _SELECTED,
        'share_id',
    )


def _actions(noun: str, path: str, **policies: str) -> Actions:
    return Actions(
        noun,
        SHARE_INSTANCE,
        {
            'delete': Action(policies['delete'], actions.delete(path)),
            'force-delete': Action(
                policies['force_delete'], actions.on(path, 'force_delete')
            ),
            'reset-status': Action(
                policies['reset'], actions.on(path, 'reset_status', status=str)
            ),
        },
    )


KINDS = {
    'SHARE': FailedKind(
        _failed(shares.COLLECTION), share_actions.ACTIONS, '/shares', 'share'
    ),
    'SHARE_SNAPSHOT': FailedKind(
        _of_shares('snapshots', SNAPSHOT_RESETS & SNAPSHOT_INSTANCE.resets),
        _actions(
            'snapshot',
            'snapshots',
            delete='share:delete_snapshot',
            force_delete='share_snapshot:force_delete',
            reset='share_snapshot:reset_status',
        ),
        '/snapshots',
        'snapshot',
    ),
    'SHARE_REPLICA': FailedKind(
        _of_shares('replicas', SHARE_INSTANCE.resets),
        _actions(
            'replica',
            'share-replicas',
            delete='share_replica:delete',
            force_delete='share_replica:force_delete',
            reset='share_replica:reset_status',
        ),
        '/share-replicas',
        'share_replica',
    ),
    'SHARE_GROUP': FailedKind(
        _failed(groups.COLLECTION), groups.GROUP_ACTIONS, '/share-groups', 'share_group'
    ),
}
"""By the resource type of messages; those of other types name no resources."""


class Failure(typing.NamedTuple):
    """Failures for one reason: the newest message, and what it is about.

    `resources` are names by the paths of their pages.
    """

    newest: dict
    number: int
    resources: dict[str, str]

    @property
    def query(self) -> str:
        """The query of the page with all that failed for this reason."""
        return urllib.parse.urlencode({name: self.newest[name] for name in REASON})


class FailedResource(typing.NamedTuple):
    """A resource of a failed request, with the newest message.

    It is `selected` for actions if it is still in a status that failed.
    """

    id: str
    name: str
    path: str
    statuses: list[str]
    newest: dict
    selected: bool


Names = dict[str, list[NamedRow]]
"""The resources that messages are about, each with a row for each instance."""


def read_newest(visit: Visit) -> list[dict]:
    """Return the newest messages of failures."""
    answer = visit.api.find('/messages', message_level='ERROR', limit=MESSAGES)
    return (answer or {}).get('messages', [])


def read_names(visit: Visit, messages: list[dict]) -> Names:
    """Return the resources of messages that still exist and are visible."""
    ids: dict[str, set[str]] = {}
    for one in messages:
        if one['resource_type'] in KINDS and one['resource_id']:
            ids.setdefault(one['resource_type'], set()).add(one['resource_id'])
    found: Names = {}
    if ids:
        for row in visit.services.db.read(overview.list_names, ids, visit.project_id):
            found.setdefault(row.id, []).append(row)
    return found


def by_reason(messages: list[dict], named: Names) -> list[Failure]:
    """Return the newest failures, one for each action and reason."""
    found: dict[tuple, Failure] = {}
    for one in messages:
        # The texts for administrators differ in times and names.
        reason = tuple(one[name] for name in REASON)
        failure = found.setdefault(reason, Failure(one, 0, {}))
        if one['resource_id'] in named and len(failure.resources) < REASONS:
            row = named[one['resource_id']][0]
            path = _path(one['resource_type'], row)
            failure.resources.setdefault(path, row.name or row.id)
        found[reason] = failure._replace(number=failure.number + 1)
    return list(found.values())[:REASONS]


def _path(resource_type: str, row: NamedRow) -> str:
    return f'{KINDS[resource_type].collection.path}/{row.page_id}'


def show(visit: Visit, refused: Refused | None = None) -> Answer:
    """Show what failed most recently for one reason, to act on many."""
    reason = {name: visit.query.get(name, '') for name in REASON}
    kind = KINDS.get(reason['resource_type'])
    if kind is None or not all(reason.values()):
        raise exception.NotFound('There is no such reason.')
    messages = [
        one
        for one in read_newest(visit)
        if all(one[name] == value for name, value in reason.items())
    ]
    named = read_names(visit, messages)
    newest: dict[str, dict] = {}
    for one in messages:
        newest.setdefault(one['resource_id'], one)
    return visit.page(
        'failures.html',
        refused,
        number=len(messages),
        messages=messages[:1],
        list=Listing(
            kind.collection,
            [_resource(named[id], newest[id]) for id in newest if id in named],
            None,
            {},
            query=urllib.parse.urlencode(reason),
            kept=visit.form if refused else None,
        ),
        many=kind.actions.allowed(visit, kind.collection.many),
    )


def act_on_selected(visit: Visit) -> Answer:
    """Act on the selected resources that failed for one reason."""
    listed = dict(urllib.parse.parse_qsl(visit.form.get(LISTED, '')))
    kind = KINDS.get(listed.get('resource_type', ''))
    if kind is None:
        raise exception.NotFound('There is no such reason.')
    act = kind.actions.on_selected(kind.collection, kind.api_path, kind.key, show)
    return act(visit)


def _resource(rows: list[NamedRow], newest: dict) -> FailedResource:
    statuses = sorted({row.status for row in rows if row.status})
    has_failed = any(html.condition_of(one) == overview.FAILED for one in statuses)
    row = rows[0]
    path = _path(newest['resource_type'], row)
    return FailedResource(
        row.id, row.name or row.id, path, statuses, newest, has_failed
    )
