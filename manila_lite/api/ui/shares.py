"""The list of shares, one share, and the actions on it."""

from collections.abc import Mapping
import datetime
import functools
import typing

from manila_lite.api.ui import actions, listing, share_actions, timeline
from manila_lite.api.ui.api_client import Refused
from manila_lite.api.ui.visit import SHARE_MIGRATIONS_POLICY, Answer, Handler, Visit
from manila_lite.db.queries.shares import history

PARTS = listing.PARTS

_PROTOCOLS = ('NFS', 'CIFS', 'CEPHFS', 'GLUSTERFS', 'HDFS', 'MAPRFS')


def index(visit: Visit) -> Answer:
    """Show a page of the shares, by name or status if wanted."""
    return _list(visit)


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
        '/shares/detail',
        'shares',
        filters=('name~', 'status'),
        all_projects=visit.ctx.can('share:list_all_projects'),
    )
    types = visit.api.find('/types') or {'share_types': []}
    networks = visit.api.find('/share-networks', limit=PARTS)
    groups = visit.api.find('/share-groups', limit=PARTS)
    return visit.page(
        'shares.html',
        refused.code if refused else 200,
        shares=found.rows,
        following=found.following,
        name=visit.query.get('name~', ''),
        status=visit.query.get('status', ''),
        types=types['share_types'],
        networks=(networks or {}).get('share_networks', []),
        groups=(groups or {}).get('share_groups', []),
        protocols=_PROTOCOLS,
        may_create=visit.ctx.can('share:create'),
        refused=refused and refused.public_message,
        form=visit.form,
    )


def show(visit: Visit) -> Answer:
    """Show one share with its history."""
    return _show(visit, visit.names['share_id'])


def _act(name: str, visit: Visit) -> Answer:
    """Carry out an action; a refusal is shown on the page of the share."""
    share_id = visit.names['share_id']
    share = visit.api.get(f'/shares/{share_id}')['share']
    try:
        share_actions.ACTIONS.carry_out(visit, share, name)
    except Refused as error:
        return _show(visit, share_id, error)
    if name in ('delete', 'force-delete'):
        return visit.see('/ui/shares', done=name)
    return visit.see(f'/ui/shares/{share_id}', done=name)


ACTIONS: dict[str, Handler] = {
    name: functools.partial(_act, name) for name in share_actions.ACTIONS
}
"""The handlers of the actions on a share, by the last part of the path."""


def _show(visit: Visit, share_id: str, refused: Refused | None = None) -> Answer:
    api = visit.api
    share = api.get(f'/shares/{share_id}')['share']
    instances = api.find(f'/shares/{share_id}/instances')
    locations = api.find(f'/shares/{share_id}/export_locations')
    snapshots = api.find(
        '/snapshots/detail', share_id=share_id, limit=PARTS, all_tenants=1
    )
    replicas = None
    if share['replication_type']:
        replicas = api.find('/share-replicas/detail', share_id=share_id, limit=PARTS)
    rules = api.find('/share-access-rules', share_id=share_id)
    messages = api.find('/messages', resource_id=share_id, limit=PARTS)
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
        refused.code if refused else 200,
        share=share,
        title=actions.title(share),
        instances=(instances or {}).get('share_instances'),
        locations=[
            (one, mount_command(share, one['path']))
            for one in (locations or {}).get('export_locations', [])
        ],
        snapshots=by_newest,
        replicas=replicas and replicas['share_replicas'],
        synced=synced,
        rules=_rules(found.rules, (rules or {}).get('access_list', [])),
        timeline=timeline.of_share(
            found, (messages or {}).get('messages', []), is_admin=visit.is_admin
        ),
        on=share_actions.ACTIONS.forms(visit, share, f'/ui/shares/{share_id}'),
        sees_migration=visit.ctx.can(SHARE_MIGRATIONS_POLICY),
        refused=refused and refused.public_message,
    )


def _rules(
    states: typing.Sequence[typing.Any], rules: list[dict]
) -> list[tuple[dict, list]]:
    """Return the rules that the API shows, with their states by instance."""
    by_rule: dict[str, list] = {}
    for row in states:
        by_rule.setdefault(row.access_id, []).append(row)
    return [(rule, by_rule.get(rule['id'], [])) for rule in rules]


def mount_command(share: Mapping[str, str], path: str) -> str | None:
    """Return the command that mounts an export location, if one is known."""
    folder = f'/mnt/{share["id"]}'
    if share['share_proto'] == 'NFS':
        return f"mount -t nfs '{path}' {folder}" if _is_plain(path) else None
    if share['share_proto'] == 'CIFS':
        path = path.replace('\\', '/')
        return f"mount -t cifs '{path}' {folder}" if _is_plain(path) else None
    return None


def _is_plain(path: str) -> bool:
    """Whether the path is safe between single quotes and names a server."""
    return "'" not in path and path.isprintable() and not path.startswith('/ ')
