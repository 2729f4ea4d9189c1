"""Share servers, what is on them, and their migration."""

import functools

from manila_lite.api.ui import actions, listing
from manila_lite.api.ui.actions import Action, Actions, Form, Request
from manila_lite.api.ui.api_client import Refused
from manila_lite.api.ui.listing import Collection, Column, Find
from manila_lite.api.ui.visit import SERVERS_POLICY, Answer, Handler, Visit
from manila_lite.api.v2.servers import WIRE_NAMES, task_state_from_wire
from manila_lite.db.queries.servers import migrations, views as server_views
from manila_lite.db.queries.shares import views
from manila_lite.states.share_server import (
    SHARE_SERVER,
    SHARE_SERVER_TASK,
    ServerStatus,
    TaskState,
)

_COLLECTION = 'share-servers'
_BINARY = 'manila-share'
_CHECK = 'check-migration'
DEMANDS = (
    ('writable', 'Keep the shares writable meanwhile'),
    ('nondisruptive', 'Disturb no client'),
    ('preserve_snapshots', 'Preserve snapshots'),
)


def _with_options(action: str) -> actions.Requested:
    def request(server: dict, form: Form) -> Request:
        body: dict[str, object] = {
            'host': form.get('host', ''),
            **{name: name in form for name, _ in DEMANDS},
            'new_share_network_id': form.get('new_share_network_id') or None,
        }
        path = f'/{_COLLECTION}/{server["id"]}/action'
        return 'POST', path, {action: body}

    return request


def _reset(server: dict, form: Form) -> Request:
    body = {'task_state': form.get('task_state') or None}
    path = f'/{_COLLECTION}/{server["id"]}/action'
    return 'POST', path, {'reset_task_state': body}


_POLICY = 'share_server:share_server_migration_'
_MIGRATION_ACTIONS = Actions(
    'state of the migration',
    SHARE_SERVER_TASK,
    {
        _CHECK: Action(f'{_POLICY}check', _with_options('migration_check')),
        'migrate': Action(f'{_POLICY}start', _with_options('migration_start'), 'start'),
        'complete-migration': Action(
            f'{_POLICY}complete',
            actions.on(_COLLECTION, 'migration_complete'),
            'complete',
            True,
        ),
        'cancel-migration': Action(
            f'{_POLICY}cancel',
            actions.on(_COLLECTION, 'migration_cancel'),
            'cancel',
            True,
        ),
        'reset-migration': Action(
            'share_server:share_server_reset_task_state', _reset, is_dangerous=True
        ),
    },
)
_SERVER_ACTIONS = Actions(
    'share server',
    SHARE_SERVER,
    actions.usual(_COLLECTION, 'share_server', has_name=False),
)


COLLECTION = Collection(
    '/ui/servers',
    'share servers',
    (
        Column('Id', is_wide=False),
        Column('Status', is_wide=False),
        Column('Host'),
        Column('Migration'),
        Column('Network'),
        Column('Created'),
    ),
    (
        Find('host', 'Host'),
        Find('status', 'Status', sorted(SHARE_SERVER.statuses)),
        Find(listing.ID, 'Id'),
        Find('share_network_id', 'Id of the share network'),
    ),
    ('delete', 'reset-status'),
    sorted(SHARE_SERVER.resets),
)


def index(visit: Visit) -> Answer:
    """Show a page of the share servers."""
    return listing.found_by_id(visit, COLLECTION) or _list(visit)


def _list(visit: Visit, refused: Refused | None = None) -> Answer:
    visit.authorize(SERVERS_POLICY)
    wanted = COLLECTION.wanted(visit)
    page = listing.page(visit)
    found = visit.services.db.read(
        server_views.list_page, server_views.ShareServerFilter(exact=dict(wanted)), page
    )
    return visit.page(
        'servers.html',
        refused,
        list=listing.Listing(
            COLLECTION,
            found,
            listing.following(page, found, wanted),
            wanted,
            **listing.as_sent(visit),
        ),
        many=_SERVER_ACTIONS.allowed(visit, COLLECTION.many),
        may_create=False,
    )


act_on_selected: Handler = _SERVER_ACTIONS.on_selected(
    COLLECTION, f'/{_COLLECTION}', 'share_server', _list
)
"""Act on the selected rows of the list."""


def _act(name: str, visit: Visit) -> Answer:
    path = f'/ui/servers/{visit.names["server_id"]}'
    server = _get(visit)
    known = _SERVER_ACTIONS if name in _SERVER_ACTIONS else _MIGRATION_ACTIONS
    try:
        answer = known.carry_out(visit, server, name)
    except Refused as error:
        return show(visit, error)
    if name == _CHECK:
        return show(visit, checked=answer)
    if name == 'delete':
        return visit.see('/ui/servers', done='delete-server')
    return visit.see(path, done=name)


ACTIONS: dict[str, Handler] = {
    name: functools.partial(_act, name)
    for name in (*_MIGRATION_ACTIONS, *_SERVER_ACTIONS)
}


def _get(visit: Visit) -> dict:
    """Return the server with the state of its migration as stored."""
    found = visit.api.get(f'/{_COLLECTION}/{visit.names["server_id"]}')
    server = found['share_server']
    state = task_state_from_wire(server['task_state'])
    return server | {'task_state': SHARE_SERVER_TASK.to_column(state)}


def show(
    visit: Visit, refused: Refused | None = None, checked: dict | None = None
) -> Answer:
    """Show a share server, what is on it, and its migration."""
    server = _get(visit)
    id, path = server['id'], f'/ui/servers/{server["id"]}'
    read = visit.services.db.read
    shares = read(views.list_on_server, id, most=listing.PARTS)
    services = visit.api.find('/services') or {'services': []}
    may_migrate = server['status'] == ServerStatus.ACTIVE
    reason = f'The share server is {server["status"]}; it must be active.'
    in_use = 'There are shares on it.' if shares else None
    return visit.page(
        'server.html',
        refused,
        server=server,
        shares=shares,
        most=listing.PARTS,
        migration=read(migrations.find_latest, id),
        demands=DEMANDS,
        hosts=[
            one['host']
            for one in services['services']
            if one['binary'] == _BINARY
            and one['state'] == 'up'
            and one['host'] != server['host']
        ],
        states=sorted(name for name in WIRE_NAMES if name != TaskState.NONE),
        statuses=sorted(SHARE_SERVER.resets),
        on=_SERVER_ACTIONS.forms(visit, server, path, {'delete': in_use}, refused),
        of_migration=_MIGRATION_ACTIONS.forms(
            visit, server, path, {} if may_migrate else {'migrate': reason}, refused
        ),
        checked=checked,
    )
