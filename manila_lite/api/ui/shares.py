"""The list of shares, one share, and the actions on it."""

import datetime
import functools
import typing

from manila_lite.api.ui import actions, html, listing, mounting, share_actions, timeline
from manila_lite.api.ui.api_client import Refused
from manila_lite.api.ui.listing import Collection, Column, Find
from manila_lite.api.ui.visit import SHARE_MIGRATIONS_POLICY, Answer, Handler, Visit
from manila_lite.db.queries import messages as message_rows
from manila_lite.db.queries.recovery import overview
from manila_lite.db.queries.shares import history
from manila_lite.messages import ERROR
from manila_lite.states.share_instance import SHARE_INSTANCE

PARTS = listing.PARTS

FAILURES = 3
"""Newest failures that are shown above the facts of a share."""


COLLECTION = Collection(
    '/ui/shares',
    'shares',
    (
        Column('Name', 'name', is_wide=False),
        Column('Status', 'status', is_wide=False),
        Column('Rules'),
        Column('Size', 'size', is_wide=False),
        Column('Protocol', 'share_proto'),
        Column('Type', 'share_type_id'),
        Column('Project', 'project_id'),
        Column('Created', 'created_at'),
    ),
    (
        Find('name~', 'Name contains'),
        Find('status', 'Status', sorted(SHARE_INSTANCE.statuses)),
        Find(listing.ID, 'Id'),
        Find('export_location_path', 'Export path'),
        Find('metadata', 'Metadata, as key=value'),
    ),
    ('delete', 'force-delete', 'reset-status'),
    sorted(SHARE_INSTANCE.resets),
)


def index(visit: Visit) -> Answer:
    """Show a page of the shares, filtered as the browser asks."""
    return listing.found_by_id(visit, COLLECTION) or _list(visit)


def create(visit: Visit) -> Answer:
    """Request a new share."""
    try:
        share = share_actions.create(visit)
    except Refused as error:
        return _list(visit, error)
    return visit.see(f'/ui/shares/{share["id"]}', done='create')


def _list(visit: Visit, refused: Refused | None = None) -> Answer:
    found = listing.read(
        visit,
        COLLECTION,
        '/shares/detail',
        'shares',
        all_projects=visit.ctx.can('share:list_all_projects'),
        convert={'metadata': lambda text: repr(dict([actions.pair(text)]))},
    )
    networks = visit.api.find('/share-networks', limit=PARTS)
    groups = visit.api.find('/share-groups', limit=PARTS)
    protocols = map(str.upper, visit.services.conf.enabled_share_protocols)
    return visit.page(
        'shares.html',
        refused,
        list=found,
        many=share_actions.ACTIONS.allowed(visit, COLLECTION.many),
        types=actions.types(visit),
        networks=actions.choices(networks, 'share_networks'),
        groups=actions.choices(groups, 'share_groups'),
        zones=actions.zones(visit),
        protocols=[(one, one) for one in protocols],
        wrong=actions.wrong_field(refused, share_actions.FIELDS),
        may_create=visit.ctx.can('share:create'),
    )


act_on_selected: Handler = share_actions.ACTIONS.on_selected(
    COLLECTION, '/shares', 'share', _list
)
"""Act on the selected rows of the list."""


def _act(name: str, visit: Visit) -> Answer:
    """Carry out an action; a refusal is shown on the page of the share."""
    share_id = visit.names['share_id']
    share = visit.api.get(f'/shares/{share_id}')['share']
    try:
        answer = share_actions.ACTIONS.carry_out(visit, share, name)
    except Refused as error:
        return show(visit, error)
    if name == 'copy-snapshot':
        return visit.see(f'/ui/shares/{answer["share"]["id"]}', done=name)
    if name in ('delete', 'force-delete'):
        return visit.see('/ui/shares', done=name)
    return visit.see(f'/ui/shares/{share_id}', done=name)


ACTIONS: dict[str, Handler] = {
    name: functools.partial(_act, name) for name in share_actions.ACTIONS
}
"""The handlers of the actions on a share, by the last part of the path."""


def show(visit: Visit, refused: Refused | None = None) -> Answer:
    """Show one share with its history."""
    share_id, api = visit.names['share_id'], visit.api
    share = api.get(f'/shares/{share_id}')['share']
    instances = api.find(f'/shares/{share_id}/instances')
    locations = api.find(f'/shares/{share_id}/export_locations')
    snapshots = api.find(
        '/snapshots/detail', share_id=share_id, limit=PARTS, all_tenants=1
    )
    locks = api.find(
        '/resource-locks', resource_id=share_id, limit=PARTS, all_projects=1
    )
    replicas = None
    if share['replication_type']:
        replicas = api.find('/share-replicas/detail', share_id=share_id, limit=PARTS)
    found_rules = api.find('/share-access-rules', share_id=share_id)
    rules = (found_rules or {}).get('access_list', [])
    messages = _messages(visit, [share_id])
    found = timeline.History()  # a public share of another project
    synced: dict[str, datetime.datetime] = {}
    if visit.project_id in (None, share['project_id']):
        if replicas:
            synced = visit.services.db.read(history.list_sync_times, share_id)
        found = visit.services.db.read(timeline.read, share_id, most_parts=PARTS)
    by_newest = sorted(
        (snapshots or {}).get('snapshots', []),
        key=lambda one: one['created_at'],
        reverse=True,
    )
    return visit.page(
        'share.html',
        refused,
        share=share,
        title=actions.title(share),
        instances=(instances or {}).get('share_instances'),
        locations=[
            (one, mounting.steps(share, one['path'], rules))
            for one in (locations or {}).get('export_locations', [])
        ],
        locks=(locks or {}).get('resource_locks', []),
        snapshots=by_newest,
        replicas=replicas and replicas['share_replicas'],
        synced=synced,
        rules=_rules(found.rules, rules),
        guide=mounting.guide(share['share_proto']),
        failures=[one for one in messages if one.level == ERROR][:FAILURES],
        next_step=html.NEXT_STEPS.get(share['status']),
        reasons=_reasons(visit, by_newest),
        timeline=timeline.of_share(found, messages, is_admin=visit.is_admin),
        on=share_actions.ACTIONS.forms(
            visit, share, f'/ui/shares/{share_id}', refused=refused
        ),
        sees_migration=visit.ctx.can(SHARE_MIGRATIONS_POLICY),
    )


def _reasons(visit: Visit, snapshots: list[dict]) -> dict[str, str]:
    """Return why snapshots have failed, by their ids; reads only if some have."""
    failed = {
        one['id']
        for one in snapshots
        if html.condition_of(one['status']) == overview.FAILED
    }
    if not failed:
        return {}
    reasons: dict[str, str] = {}
    for one in _messages(visit, failed):
        if one.level == ERROR and one.resource_id:
            reasons.setdefault(one.resource_id, one.text)
    return reasons


def _messages(
    visit: Visit, resource_ids: typing.Collection[str]
) -> list[timeline.Message]:
    """Return the newest messages about resources, the deleted ones as well.

    A deleted message was read; its reason remains on the page.
    """
    if not visit.ctx.can('message:get_all'):
        return []
    sees_all = bool(visit.ctx.is_admin)
    rows = visit.services.db.read(
        message_rows.list_about,
        resource_ids,
        None if sees_all else str(visit.ctx.project_id),
        most=PARTS,
    )
    return [timeline.Message.of(row, is_admin=sees_all) for row in rows]


def _rules(
    states: typing.Sequence[typing.Any], rules: list[dict]
) -> list[tuple[dict, list]]:
    """Return the rules that the API shows, with their states by instance."""
    by_rule: dict[str, list] = {}
    for row in states:
        by_rule.setdefault(row.access_id, []).append(row)
    return [(rule, by_rule.get(rule['id'], [])) for rule in rules]
