"""Actions on a share, as requests to the API, and why one is not possible."""

from collections.abc import Callable, Mapping
import typing

from manila_lite.api.ui.api_client import Refused
from manila_lite.api.ui.visit import Visit
from manila_lite.states.share_instance import SHARE_INSTANCE

Form = Mapping[str, str]
Request = tuple[str, str, typing.Any]
"""Method, path and body."""


class Action(typing.NamedTuple):
    """An action: its policy, the move it begins with, and its request.

    A dangerous one is confirmed by typing the name of the share.
    """

    policy: str
    request: Callable[[dict, Form], Request]
    event: str | None = None
    is_dangerous: bool = False


def _on_share(name: str, **fields: Callable[[str], typing.Any]) -> Callable:
    """Return the request of an action with these fields of a form."""

    def request(share: dict, form: Form) -> Request:
        given = {
            field: convert(form[field])
            for field, convert in fields.items()
            if form.get(field)
        }
        body = {name: given or None}
        return 'POST', f'/shares/{share["id"]}/action', body

    return request


def _number(text: str) -> int | str:
    """Return a number; the API says what is wrong with anything else."""
    is_number = text.isascii() and text.isdecimal() and len(text) < 19
    return int(text) if is_number else text


def _snapshot(share: dict, form: Form) -> Request:
    body = {'share_id': share['id'], 'name': form.get('name') or None}
    return 'POST', '/snapshots', {'snapshot': body}


def _delete_snapshot(share: dict, form: Form) -> Request:
    return 'DELETE', f'/snapshots/{_id(form, "snapshot_id")}', None


def _replicate(share: dict, form: Form) -> Request:
    body: dict[str, object] = {'share_id': share['id']}
    if form.get('availability_zone'):
        body['availability_zone'] = form['availability_zone']
    return 'POST', '/share-replicas', {'share_replica': body}


def _on_replica(name: str) -> Callable[[dict, Form], Request]:
    def request(share: dict, form: Form) -> Request:
        path = f'/share-replicas/{_id(form, "replica_id")}/action'
        return 'POST', path, {name: None}

    return request


def _delete_replica(share: dict, form: Form) -> Request:
    return 'DELETE', f'/share-replicas/{_id(form, "replica_id")}', None


def _id(form: Form, name: str) -> str:
    found = form.get(name, '')
    if not found.replace('-', '').isalnum() or not found.isascii():
        raise Refused(400, f'{name} is not an id.')
    return found


ACTIONS = {
    'extend': Action(
        'share:extend', _on_share('extend', new_size=_number), 'extend'
    ),
    'shrink': Action(
        'share:shrink', _on_share('shrink', new_size=_number), 'shrink', True
    ),
    'allow': Action(
        'share:allow_access',
        _on_share(
            'allow_access', access_type=str, access_to=str, access_level=str
        ),
    ),
    'deny': Action(
        'share:deny_access', _on_share('deny_access', access_id=str)
    ),
    'snapshot': Action('share:create_snapshot', _snapshot, 'snapshot'),
    'delete-snapshot': Action(
        'share:delete_snapshot', _delete_snapshot, is_dangerous=True
    ),
    'revert': Action(
        'share:revert_to_snapshot',
        _on_share('revert', snapshot_id=str),
        'revert',
        True,
    ),
    'complete-migration': Action(
        'share:migration_complete',
        _on_share('migration_complete'),
        is_dangerous=True,
    ),
    'cancel-migration': Action(
        'share:migration_cancel',
        _on_share('migration_cancel'),
        is_dangerous=True,
    ),
    'replicate': Action('share_replica:create', _replicate),
    'promote': Action(
        'share_replica:promote', _on_replica('promote'), is_dangerous=True
    ),
    'resync': Action('share_replica:resync', _on_replica('resync')),
    'delete-replica': Action(
        'share_replica:delete', _delete_replica, is_dangerous=True
    ),
    'reset-status': Action(
        'share:reset_status',
        _on_share('reset_status', status=str),
        is_dangerous=True,
    ),
    'delete': Action(
        'share:delete',
        lambda share, form: ('DELETE', f'/shares/{share["id"]}', None),
        'delete',
        True,
    ),
    'force-delete': Action(
        'share:force_delete', _on_share('force_delete'), is_dangerous=True
    ),
}

_NOT_ALLOWED = 'Policies do not allow you this.'


def possible(visit: Visit, share: dict) -> dict[str, str | None]:
    """Return the actions with the reasons of those that are not possible.

    The API decides; this spares the user the attempt.
    """
    return {
        name: _reason(visit, share, action) for name, action in ACTIONS.items()
    }


def _reason(visit: Visit, share: dict, action: Action) -> str | None:
    if not visit.ctx.can(action.policy, share):
        return _NOT_ALLOWED
    if action.event:
        sources = SHARE_INSTANCE[action.event].sources
        if share['status'] not in sources:
            wanted = ' or '.join(sorted(sources)).replace('_', ' ')
            now = (share['status'] or 'without a status').replace('_', ' ')
            return f'The share is {now}; it must be {wanted}.'
    return None


def carry_out(visit: Visit, share: dict, name: str) -> None:
    """Send the request of an action; raises Refused."""
    action = ACTIONS[name]
    title = share['name'] or share['id']
    if action.is_dangerous and visit.form.get('confirm') != title:
        raise Refused(
            400, f'Nothing was done: to confirm, type the name {title}.'
        )
    visit.api.send(*action.request(share, visit.form))


def create(visit: Visit) -> dict:
    """Request a new share; raises Refused."""
    form = visit.form
    body = {
        'name': form.get('name') or None,
        'size': _number(form.get('size', '')),
        'share_proto': form.get('share_proto', ''),
    }
    if form.get('share_type'):
        body['share_type'] = form['share_type']
    return visit.api.send('POST', '/shares', {'share': body})['share']
