"""Actions on a share, as requests to the API."""

from collections.abc import Callable
import typing

from manila_lite.api.ui import actions
from manila_lite.api.ui.actions import Action, Actions, Form, Request, Requested
from manila_lite.api.ui.visit import Visit
from manila_lite.states.share_instance import SHARE_INSTANCE


def _on_share(name: str, **fields: Callable[[str], typing.Any]) -> Requested:
    return actions.on('shares', name, **fields)


def _snapshot(share: dict, form: Form) -> Request:
    body = {'share_id': share['id'], 'name': form.get('name') or None}
    return 'POST', '/snapshots', {'snapshot': body}


def _delete_snapshot(share: dict, form: Form) -> Request:
    id = actions.id_of(form, 'snapshot_id')
    return 'DELETE', f'/snapshots/{id}', None


def _copy_snapshot(share: dict, form: Form) -> Request:
    body = {
        'snapshot_id': actions.id_of(form, 'snapshot_id'),
        'name': form.get('name') or None,
        'size': actions.number(form.get('size', '')),
        'share_proto': share['share_proto'],
    }
    return 'POST', '/shares', {'share': body}


def _replicate(share: dict, form: Form) -> Request:
    body: dict[str, object] = {'share_id': share['id']}
    if form.get('availability_zone'):
        body['availability_zone'] = form['availability_zone']
    return 'POST', '/share-replicas', {'share_replica': body}


def _on_replica(name: str) -> Requested:
    def request(share: dict, form: Form) -> Request:
        id = actions.id_of(form, 'replica_id')
        return 'POST', f'/share-replicas/{id}/action', {name: None}

    return request


def _delete_replica(share: dict, form: Form) -> Request:
    id = actions.id_of(form, 'replica_id')
    return 'DELETE', f'/share-replicas/{id}', None


def _delete(share: dict, form: Form) -> Request:
    group = share['share_group_id']
    query = {'share_group_id': group} if group else {}
    return 'DELETE', f'/shares/{share["id"]}', None, query


ACTIONS = Actions(
    'share',
    SHARE_INSTANCE,
    {
        'extend': Action(
            'share:extend', _on_share('extend', new_size=actions.number), 'extend'
        ),
        'shrink': Action(
            'share:shrink', _on_share('shrink', new_size=actions.number), 'shrink', True
        ),
        'allow': Action(
            'share:allow_access',
            _on_share('allow_access', access_type=str, access_to=str, access_level=str),
        ),
        'deny': Action('share:deny_access', _on_share('deny_access', access_id=str)),
        'snapshot': Action('share:create_snapshot', _snapshot, 'snapshot'),
        'delete-snapshot': Action(
            'share:delete_snapshot', _delete_snapshot, is_dangerous=True
        ),
        'copy-snapshot': Action('share:create', _copy_snapshot),
        'revert': Action(
            'share:revert_to_snapshot',
            _on_share('revert', snapshot_id=str),
            'revert',
            True,
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
        'delete': Action('share:delete', _delete, 'delete', True),
        'force-delete': Action(
            'share:force_delete', _on_share('force_delete'), is_dangerous=True
        ),
    },
)


FIELDS = (
    'name',
    'size',
    'share_proto',
    'share_type',
    'share_network_id',
    'share_group_id',
    'availability_zone',
    'metadata',
)
"""The fields of a new share."""


def _metadata(text: str) -> dict[str, str]:
    """Return the metadata of lines `key=value`; raises Refused."""
    return dict(map(actions.pair, filter(None, map(str.strip, text.splitlines()))))


def create(visit: Visit) -> dict:
    """Request a new share; raises Refused."""
    form = visit.form
    body: dict[str, object] = {
        'name': form.get('name') or None,
        'size': actions.number(form.get('size', '')),
        'share_proto': form.get('share_proto', ''),
    }
    for name in (
        'share_type',
        'share_network_id',
        'share_group_id',
        'availability_zone',
    ):
        if form.get(name):
            body[name] = form[name]
    if form.get('metadata'):
        body['metadata'] = _metadata(form['metadata'])
    return visit.api.send('POST', '/shares', {'share': body})['share']
