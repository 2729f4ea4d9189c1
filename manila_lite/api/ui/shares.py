"""The list of shares, one share, and the actions on it."""

from collections.abc import Iterator, Mapping
import typing
import urllib.parse

from manila_lite.api.ui import share_actions
from manila_lite.api.ui.api_client import Refused
from manila_lite.api.ui.visit import Answer
from manila_lite.api.ui.visit import Visit
from manila_lite.db.queries.admin import journal
from manila_lite.db.queries.shares import history
from manila_lite.db.session import Session

ROWS = 50
LONGEST_HISTORY = 200
PARTS = 200
"""Rules, snapshots and replicas that are shown of one share."""

_PAGE_KEYS = ('offset', 'marker', 'after')
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
    wanted = {
        name: visit.query[name]
        for name in (*_PAGE_KEYS, 'name~', 'status')
        if visit.query.get(name)
    }
    if visit.ctx.can('share:list_all_projects'):
        wanted['all_tenants'] = '1'
    found = visit.api.get('/shares/detail', limit=ROWS, **wanted)
    following = None
    for link in found.get('shares_links', ()):
        query = urllib.parse.urlsplit(link['href']).query
        given = dict(urllib.parse.parse_qsl(query))
        kept = {k: v for k, v in given.items() if k in wanted | _NEXT}
        following = urllib.parse.urlencode(kept)
    types = visit.api.find('/types') or {'share_types': []}
    return visit.page(
        'shares.html',
        refused.code if refused else 200,
        shares=found['shares'],
        following=following,
        name=visit.query.get('name~', ''),
        status=visit.query.get('status', ''),
        types=types['share_types'],
        protocols=_PROTOCOLS,
        may_create=visit.ctx.can('share:create'),
        refused=refused and refused.public_message,
        form=visit.form,
    )


_NEXT = dict.fromkeys(_PAGE_KEYS)


def show(visit: Visit) -> Answer:
    """Show one share with its history."""
    return _show(visit, visit.names['share_id'])


def act(visit: Visit) -> Answer:
    """Carry out an action; a refusal is shown on the page of the share."""
    share_id, name = visit.names['share_id'], visit.names['action']
    share = visit.api.get(f'/shares/{share_id}')['share']
    try:
        share_actions.carry_out(visit, share, name)
    except Refused as error:
        return _show(visit, share_id, error)
    if name in ('delete', 'force-delete'):
        return visit.see('/ui/shares', done=name)
    return visit.see(f'/ui/shares/{share_id}', done=name)


def _show(
    visit: Visit, share_id: str, refused: Refused | None = None
) -> Answer:
    api = visit.api
    share = api.get(f'/shares/{share_id}')['share']
    instances = api.find(f'/shares/{share_id}/instances')
    locations = api.find(f'/shares/{share_id}/export_locations')
    snapshots = api.find(
        '/snapshots/detail', share_id=share_id, limit=PARTS, all_tenants=1
    )
    replicas = None
    if share['replication_type']:
        replicas = api.find(
            '/share-replicas/detail', share_id=share_id, limit=PARTS
        )
    rules = api.find('/share-access-rules', share_id=share_id)
    messages = api.find('/messages', resource_id=share_id, limit=PARTS)
    parts = _NOTHING
    if visit.project_id in (None, share['project_id']):
        parts = visit.services.db.read(_read, share_id)
    by_newest = sorted(
        (snapshots or {}).get('snapshots', []),
        key=lambda one: one['created_at'],
        reverse=True,
    )
    return visit.page(
        'share.html',
        refused.code if refused else 200,
        share=share,
        title=share['name'] or share_id,
        instances=(instances or {}).get('share_instances'),
        locations=[
            (one, mount_command(share, one['path']))
            for one in (locations or {}).get('export_locations', [])
        ],
        snapshots=by_newest,
        replicas=replicas and replicas['share_replicas'],
        rules=_rules(parts.rules, (rules or {}).get('access_list', [])),
        timeline=sorted(
            _timeline(
                parts, (messages or {}).get('messages', []), visit.is_admin
            ),
            key=lambda event: event.at,
            reverse=True,
        )[:LONGEST_HISTORY],
        actions=share_actions.possible(visit, share),
        refused=refused and refused.public_message,
    )


class _Parts(typing.NamedTuple):
    rules: typing.Sequence[typing.Any]
    moves: typing.Sequence[typing.Any]
    work: typing.Sequence[typing.Any]


_NOTHING = _Parts((), (), ())
"""What users see of the history of a public share of another project."""


def _read(session: Session, share_id: str) -> _Parts:
    rules = history.list_rules(session, share_id, most=PARTS)
    parts = history.list_parts(session, share_id, rules, most=PARTS)
    return _Parts(
        rules,
        journal.list_moves(session, parts, most=LONGEST_HISTORY),
        history.list_work(session, parts, most=LONGEST_HISTORY),
    )


def _rules(
    states: typing.Sequence[typing.Any], rules: list[dict]
) -> list[tuple[dict, list]]:
    """Return the rules that the API shows, with their states by instance."""
    by_rule: dict[str, list] = {}
    for row in states:
        by_rule.setdefault(row.access_id, []).append(row)
    return [(rule, by_rule.get(rule['id'], [])) for rule in rules]


class Event(typing.NamedTuple):
    """Something that happened to a share, or is about to."""

    at: str
    kind: str
    text: str
    detail: str
    request_id: str | None
    status: str | None = None


def _timeline(
    parts: _Parts, messages: list[dict], is_admin: bool
) -> Iterator[Event]:
    for move in parts.moves:
        yield Event(
            move.made_at.isoformat(),
            'move',
            f'{move.resource} {move.event}'.replace('_', ' '),
            f'by {move.made_by}' if is_admin and move.made_by else '',
            move.request_id,
            move.to_status,
        )
    for work in parts.work:
        detail = [f'attempt {work.attempt}'] if work.attempt else []
        if is_admin:
            detail += [text for text in (work.step, work.error) if text]
            detail += [f'held by {work.owner}'] if work.owner else []
        yield Event(
            work.created_at.isoformat(),
            f'work, {work.state}',
            work.kind.partition('.')[2].replace('_', ' '),
            '; '.join(detail),
            work.request_id,
        )
    for message in messages:
        yield Event(
            message['created_at'],
            'message',
            message['user_message'],
            '',
            message['request_id'],
        )


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
