"""Share groups with their shares and snapshots."""

import functools

from manila_lite.api.ui import actions, listing
from manila_lite.api.ui.actions import Action, Actions, Form, Request
from manila_lite.api.ui.api_client import Refused
from manila_lite.api.ui.listing import Collection, Column, Find
from manila_lite.api.ui.visit import Answer, Handler, Visit
from manila_lite.states.share_group import SHARE_GROUP, SHARE_GROUP_SNAPSHOT

_COLLECTION = 'share-groups'
_FIELDS = (
    'name',
    'share_group_type_id',
    'share_type',
    'share_network_id',
    'availability_zone',
)
_SNAPSHOTS = 'share-group-snapshots'


def _snapshot(group: dict, form: Form) -> Request:
    body = {'share_group_id': group['id'], 'name': form.get('name') or None}
    return 'POST', f'/{_SNAPSHOTS}', {'share_group_snapshot': body}


def _on_snapshot(name: str, *fields: str) -> actions.Requested:
    def request(group: dict, form: Form) -> Request:
        id = actions.id_of(form, 'group_snapshot_id')
        body = {field: form.get(field, '') for field in fields}
        return 'POST', f'/{_SNAPSHOTS}/{id}/action', {name: body or None}

    return request


def _delete_snapshot(group: dict, form: Form) -> Request:
    id = actions.id_of(form, 'group_snapshot_id')
    return 'DELETE', f'/{_SNAPSHOTS}/{id}', None


def _copy(group: dict, form: Form) -> Request:
    id = actions.id_of(form, 'group_snapshot_id')
    body = {'source_share_group_snapshot_id': id, 'name': form.get('name') or None}
    return 'POST', f'/{_COLLECTION}', {'share_group': body}


GROUP_ACTIONS = Actions(
    'share group',
    SHARE_GROUP,
    {
        'snapshot-group': Action('share_group_snapshot:create', _snapshot),
        'copy-group': Action('share_group:create', _copy),
        'delete-group-snapshot': Action(
            'share_group_snapshot:delete', _delete_snapshot, is_dangerous=True
        ),
        'reset-group-snapshot': Action(
            'share_group_snapshot:reset_status',
            _on_snapshot('reset_status', 'status'),
            is_dangerous=True,
        ),
        **actions.usual(_COLLECTION, 'share_group'),
        'force-delete': Action(
            'share_group:force_delete',
            actions.on(_COLLECTION, 'force_delete'),
            is_dangerous=True,
        ),
    },
)


COLLECTION = Collection(
    '/ui/groups',
    'share groups',
    (
        Column('Name', 'name', is_wide=False),
        Column('Status', 'status', is_wide=False),
        Column('Project', 'project_id'),
        Column('Zone', 'availability_zone_id'),
        Column('Created', 'created_at'),
    ),
    (
        Find('name~', 'Name contains'),
        Find('status', 'Status', sorted(SHARE_GROUP.statuses)),
        Find(listing.ID, 'Id'),
    ),
    ('delete', 'force-delete', 'reset-status'),
    sorted(SHARE_GROUP.resets),
)


def index(visit: Visit) -> Answer:
    """Show a page of the share groups."""
    return listing.found_by_id(visit, COLLECTION) or _list(visit)


def create(visit: Visit) -> Answer:
    """Request an empty share group."""
    names = ('name', 'share_group_type_id', 'share_network_id', 'availability_zone')
    body: dict[str, object] = {
        name: visit.form[name] for name in names if visit.form.get(name)
    }
    if visit.form.get('share_type'):
        body['share_types'] = [visit.form['share_type']]
    try:
        found = visit.api.send('POST', f'/{_COLLECTION}', {'share_group': body})
    except Refused as error:
        return _list(visit, error)
    id = found['share_group']['id']
    return visit.see(f'/ui/groups/{id}', done='create-group')


def _list(visit: Visit, refused: Refused | None = None) -> Answer:
    found = listing.read(
        visit, COLLECTION, f'/{_COLLECTION}/detail', 'share_groups', all_projects=True
    )
    group_types = visit.api.find('/share-group-types')
    networks = visit.api.find('/share-networks', limit=listing.PARTS)
    return visit.page(
        'groups.html',
        refused,
        list=found,
        many=GROUP_ACTIONS.allowed(visit, COLLECTION.many),
        types=actions.types(visit),
        group_types=actions.choices(group_types, 'share_group_types'),
        default_group_type=actions.default_of(
            (group_types or {}).get('share_group_types', ())
        ),
        networks=actions.choices(networks, 'share_networks'),
        zones=actions.zones(visit),
        wrong=actions.wrong_field(refused, _FIELDS),
        may_create=visit.ctx.can('share_group:create'),
    )


act_on_selected: Handler = GROUP_ACTIONS.on_selected(
    COLLECTION, f'/{_COLLECTION}', 'share_group', _list
)
"""Act on the selected rows of the list."""


def _act(name: str, visit: Visit) -> Answer:
    id = visit.names['group_id']
    group = visit.api.get(f'/{_COLLECTION}/{id}')['share_group']
    try:
        _check_part(visit, id)
        answer = GROUP_ACTIONS.carry_out(visit, group, name)
    except Refused as error:
        return show(visit, error)
    if name in ('delete', 'force-delete'):
        return visit.see('/ui/groups', done='delete-group')
    if name == 'copy-group':
        id = answer['share_group']['id']
    return visit.see(f'/ui/groups/{id}', done=name)


def _check_part(visit: Visit, group_id: str) -> None:
    """Raise Refused if the form names a snapshot of another group.

    The name that was typed to confirm is that of this one.
    """
    if 'group_snapshot_id' not in visit.form:
        return
    id = actions.id_of(visit.form, 'group_snapshot_id')
    found = visit.api.get(f'/{_SNAPSHOTS}/{id}')['share_group_snapshot']
    if found['share_group_id'] != group_id:
        raise Refused(404, f'The share group has no snapshot {id}.')


ACTIONS: dict[str, Handler] = {
    name: functools.partial(_act, name) for name in GROUP_ACTIONS
}


def show(visit: Visit, refused: Refused | None = None) -> Answer:
    """Show a share group with its shares and snapshots."""
    id, api = visit.names['group_id'], visit.api
    group = api.get(f'/{_COLLECTION}/{id}')['share_group']
    most = listing.PARTS
    shares = api.find('/shares/detail', share_group_id=id, limit=most, all_tenants=1)
    snapshots = api.find(
        f'/{_SNAPSHOTS}/detail', share_group_id=id, limit=most, all_tenants=1
    )
    types = api.find('/types') or {'share_types': []}
    return visit.page(
        'group.html',
        refused,
        group=group,
        title=actions.title(group),
        shares=(shares or {}).get('shares', []),
        snapshots=(snapshots or {}).get('share_group_snapshots', []),
        most=most,
        type_names={one['id']: one['name'] for one in types['share_types']},
        statuses=sorted(SHARE_GROUP.resets),
        snapshot_statuses=sorted(SHARE_GROUP_SNAPSHOT.resets),
        on=GROUP_ACTIONS.forms(visit, group, f'/ui/groups/{id}', refused=refused),
    )
