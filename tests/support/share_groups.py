"""Share groups on a `Cloud`: requests, and what a test sees of them."""

from tests.support.cloud import TYPE_ID
from tests.support.cloud_images import prepared

TYPES = '/share-group-types'
GROUPS = '/share-groups'
SNAPSHOTS = '/share-group-snapshots'


@prepared
def create_type(api, name='group type', share_types=(TYPE_ID,), **specs):
    """Create a share group type with these group specs; return its id."""
    body = {'name': name, 'share_types': list(share_types), 'group_specs': specs}
    answer = api.request('POST', TYPES, {'share_group_type': body}, expect=200)
    return answer.json['share_group_type']['id']


def request(api, type_id, expect=202, **body):
    """Request a share group; return the response."""
    body.setdefault('share_types', [TYPE_ID])
    return api.request(
        'POST',
        GROUPS,
        {'share_group': {'share_group_type_id': type_id, **body}},
        expect=expect,
    )


def request_copy(api, snapshot, expect=202, **body):
    """Request a share group from a snapshot; return the response."""
    body = {'source_share_group_snapshot_id': snapshot, **body}
    return api.request('POST', GROUPS, {'share_group': body}, expect=expect)


@prepared
def create(cloud, type_id=None, **body):
    """Create a share group that is available; return its id."""
    type_id = type_id or create_type(cloud.api)
    id = request(cloud.api, type_id, **body).json['share_group']['id']
    cloud.settle()
    assert show(cloud.api, id)['status'] == 'available'
    return id


def show(api, id):
    return api.get(f'{GROUPS}/{id}')['share_group']


def delete(api, id, expect=202):
    return api.request('DELETE', f'{GROUPS}/{id}', expect=expect)


def act(api, id, action, args=None, expect=202):
    return api.request('POST', f'{GROUPS}/{id}/action', {action: args}, expect=expect)


def check_gone(api, id):
    api.request('GET', f'{GROUPS}/{id}', expect=404)


# Snapshots


def request_snapshot(api, group, expect=202, **body):
    """Request a snapshot of a group; return the response."""
    return api.request(
        'POST',
        SNAPSHOTS,
        {'share_group_snapshot': {'share_group_id': group, **body}},
        expect=expect,
    )


@prepared
def take_snapshot(cloud, group, **body):
    """Take a snapshot of a group that is available; return its id."""
    answer = request_snapshot(cloud.api, group, **body)
    id = answer.json['share_group_snapshot']['id']
    cloud.settle()
    assert show_snapshot(cloud.api, id)['status'] == 'available'
    return id


def show_snapshot(api, id):
    return api.get(f'{SNAPSHOTS}/{id}')['share_group_snapshot']


def delete_snapshot(api, id, expect=202):
    return api.request('DELETE', f'{SNAPSHOTS}/{id}', expect=expect)


def act_on_snapshot(api, id, action, args=None, expect=202):
    return api.request(
        'POST', f'{SNAPSHOTS}/{id}/action', {action: args}, expect=expect
    )


def check_snapshot_gone(api, id):
    api.request('GET', f'{SNAPSHOTS}/{id}', expect=404)
