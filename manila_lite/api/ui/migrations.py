"""Migrations: what is being migrated, and the migration of one share."""

from collections.abc import Collection, Mapping
import functools

from manila_lite.api.ui import actions, listing
from manila_lite.api.ui.actions import Action, Actions, Form, Request
from manila_lite.api.ui.api_client import Refused
from manila_lite.api.ui.visit import (
    MIGRATIONS_POLICY,
    SHARE_MIGRATIONS_POLICY,
    Answer,
    Handler,
    Visit,
)
from manila_lite.db import rows
from manila_lite.db.queries.servers import migrations as server_migrations
from manila_lite.db.queries.services import pools as pool_rows
from manila_lite.db.queries.shares import migrations as share_migrations
from manila_lite.states.access_rule import RulesStatus
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_task import SHARE_TASK, WAITING

MOST = 50
"""Migrations of each kind in the list."""

DESTINATIONS = 500
"""Pools that are offered as destinations; any other can be typed."""

DEMANDS = (
    ('writable', 'Keep the share writable meanwhile'),
    ('nondisruptive', 'Disturb no client'),
    ('preserve_metadata', 'Preserve metadata of files'),
    ('preserve_snapshots', 'Preserve snapshots'),
)
_COPY = 'force_host_assisted_migration'


def _start(share: dict, form: Form) -> Request:
    body: dict[str, object] = {
        'host': form.get('host', ''),
        **{name: name in form for name, _ in DEMANDS},
    }
    if _COPY in form:
        body[_COPY] = True
    for name in ('new_share_type_id', 'new_share_network_id'):
        if form.get(name):
            body[name] = form[name]
    path = f'/shares/{share["id"]}/action'
    return 'POST', path, {'migration_start': body}


def _reset(share: dict, form: Form) -> Request:
    body = {'task_state': form.get('task_state') or None}
    path = f'/shares/{share["id"]}/action'
    return 'POST', path, {'reset_task_state': body}


_ACTIONS = Actions(
    'state of the migration',
    SHARE_TASK,
    {
        'migrate': Action('share:migration_start', _start, 'start'),
        'complete-migration': Action(
            'share:migration_complete',
            actions.on('shares', 'migration_complete'),
            'complete',
            True,
        ),
        'cancel-migration': Action(
            'share:migration_cancel',
            actions.on('shares', 'migration_cancel'),
            'cancel',
            True,
        ),
        'reset-migration': Action('share:reset_task_state', _reset, is_dangerous=True),
    },
)


# The list


def index(visit: Visit) -> Answer:
    """Show the running migrations and what they wait for.

    Of share servers, those that ended last are listed as well. The last
    migration of a share is on its own page.
    """
    visit.authorize(MIGRATIONS_POLICY)
    visit.authorize(SHARE_MIGRATIONS_POLICY)
    read = visit.services.db.read
    down = _services_down(visit)
    return visit.page(
        'migrations.html',
        most=MOST,
        shares=[
            (row, blockers(row, down), _forms(visit, row))
            for row in read(share_migrations.list_running, most=MOST)
        ],
        servers=read(server_migrations.list_migrations, most=MOST),
    )


def _forms(visit: Visit, row: rows.ShownShareMigrationRow) -> actions.ActionForms:
    share = {
        'id': row.share_id,
        'name': row.display_name,
        'project_id': row.project_id,
        'task_state': row.task_state,
    }
    return _ACTIONS.forms(visit, share, f'/ui/shares/{row.share_id}')


def _services_down(visit: Visit) -> set[str]:
    found = visit.api.find('/services') or {'services': []}
    return {one['host'] for one in found['services'] if one['state'] != 'up'}


def blockers(row: rows.ShownShareMigrationRow, down: Collection[str]) -> list[str]:
    """Return what the running migration of a share waits for."""
    found = []
    if row.task_state in WAITING:
        found.append('An administrator has to complete or cancel it.')
    for title, host in (
        ('source', row.source_host),
        ('destination', row.destination_host),
    ):
        if host.partition('#')[0] in down:
            found.append(f'The service of the {title} is not up.')
    if row.casts_rules and row.rules_status != RulesStatus.ACTIVE:
        found.append('The access rules of the source are being applied.')
    if row.blocker_kind:
        found.append(
            f'Its work waits for {row.blocker_kind}, held by {row.blocker_owner}.'
        )
    elif row.work_state == 'queued':
        found.append('Its work waits for a worker.')
    elif row.work_owner:
        found.append(f'Its work is held by {row.work_owner}.')
    elif row.task_state in SHARE_TASK.in_flight and row.work_state is None:
        found.append('It has no work; recovery handles it.')
    if row.work_error:
        found.append(f'The last attempt failed: {row.work_error}')
    return found


# One share


def _act(name: str, visit: Visit) -> Answer:
    share_id = visit.names['share_id']
    share = visit.api.get(f'/shares/{share_id}')['share']
    try:
        _ACTIONS.carry_out(visit, share, name)
    except Refused as error:
        if not visit.ctx.can(SHARE_MIGRATIONS_POLICY):
            raise
        return show(visit, error)
    return visit.see(f'/ui/shares/{share_id}/migration', done=name)


ACTIONS: dict[str, Handler] = {name: functools.partial(_act, name) for name in _ACTIONS}
"""The handlers of actions, by the last part of the path of a share."""


def show(visit: Visit, refused: Refused | None = None) -> Answer:
    """Show the latest migration of a share, and the form of another."""
    share_id = visit.names['share_id']
    share = visit.api.get(f'/shares/{share_id}')['share']
    visit.authorize(SHARE_MIGRATIONS_POLICY)
    down = _services_down(visit)
    read = visit.services.db.read
    row = read(share_migrations.find_shown, share_id)
    types = visit.api.find('/types') or {'share_types': []}
    networks = visit.api.find(
        '/share-networks',
        all_tenants=1,
        project_id=share['project_id'],
        limit=listing.PARTS,
    ) or {'share_networks': []}
    return visit.page(
        'share_migration.html',
        refused,
        share=share,
        title=actions.title(share),
        migration=row,
        waits_for=blockers(row, down) if row and row.open_for else [],
        demands=DEMANDS,
        copy=_COPY,
        hosts=[
            one.host
            for one in read(pool_rows.list_allocations)
            if one.service_host not in down
        ][:DESTINATIONS],
        types=types['share_types'],
        type_names={one['id']: one['name'] for one in types['share_types']},
        networks=networks['share_networks'],
        states=sorted(SHARE_TASK.resets - {SHARE_TASK.null}),
        on=_ACTIONS.forms(
            visit,
            share,
            f'/ui/shares/{share_id}',
            {'migrate': _obstacle(visit, share)},
            refused,
        ),
    )


def _obstacle(visit: Visit, share: Mapping) -> str | None:
    """Return why a share cannot be migrated, as far as its page shows it."""
    status = share['status']
    if status not in SHARE_INSTANCE['migrate'].sources:
        return f'The share is {status}; it must be available.'
    found = visit.api.find('/snapshots', share_id=share['id'], limit=1, all_tenants=1)
    for reason, applies in {
        'The share is in a share group.': share['share_group_id'],
        'The access rules of the share are changing or in error.': (
            share['access_rules_status'] != RulesStatus.ACTIVE
        ),
        'The share has snapshots, which are not migrated.': (
            found and found['snapshots']
        ),
        'The share can have replicas.': share['replication_type'],
    }.items():
        if applies:
            return reason
    return None
