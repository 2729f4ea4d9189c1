"""Snapshots of the shares of a `Cloud`: requests and lookups."""

from tests.support.cloud import TYPE_ID
from tests.support.cloud_images import prepared


@prepared
def enable_snapshot_features(cloud):
    """Enable revert, mount and create-from-snapshot for new shares."""
    cloud.api.request(
        'POST',
        f'/types/{TYPE_ID}/extra_specs',
        {
            'extra_specs': {
                'revert_to_snapshot_support': 'True',
                'create_share_from_snapshot_support': 'True',
                'mount_snapshot_support': 'True',
            }
        },
        expect=200,
    )


def create(cloud, share_id, expect=202, **body):
    """Request a snapshot; return its id, or None when refused."""
    answer = cloud.api.request(
        'POST',
        '/snapshots',
        {'snapshot': {'share_id': share_id, **body}},
        expect=expect,
    )
    return answer.json['snapshot']['id'] if answer.status_int == 202 else None


@prepared
def create_available(cloud, share_id):
    """Create a snapshot and wait until it is available."""
    snapshot_id = create(cloud, share_id)
    cloud.settle()
    assert show(cloud, snapshot_id)['status'] == 'available'
    return snapshot_id


def show(cloud, snapshot_id):
    return cloud.api.get(f'/snapshots/{snapshot_id}')['snapshot']


def check_gone(cloud, snapshot_id):
    """Assert that the snapshot does not exist."""
    cloud.api.request('GET', f'/snapshots/{snapshot_id}', expect=404)


def delete(cloud, snapshot_id, expect=202):
    return cloud.api.request('DELETE', f'/snapshots/{snapshot_id}', expect=expect)


def act(cloud, snapshot_id, action, args=None, expect=202):
    return cloud.api.request(
        'POST', f'/snapshots/{snapshot_id}/action', {action: args}, expect=expect
    )


def revert(cloud, share_id, snapshot_id, expect=202):
    return cloud.api.act(
        share_id, 'revert', {'snapshot_id': snapshot_id}, expect=expect
    )
