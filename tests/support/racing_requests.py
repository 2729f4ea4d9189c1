"""Requests about a share and its snapshots, whatever the answer.

All take the same arguments, so that tests can have any two of them race.
"""

from tests.support import cloud_snapshots


def take(cloud, share_id, snapshot_id=None):
    """Take another snapshot."""
    return cloud.api.request('POST', '/snapshots', {'snapshot': {'share_id': share_id}})


def delete(cloud, share_id, snapshot_id):
    """Delete the snapshot."""
    return cloud_snapshots.delete(cloud, snapshot_id, None)


def revert(cloud, share_id, snapshot_id):
    return cloud_snapshots.revert(cloud, share_id, snapshot_id, None)


def extend(cloud, share_id, snapshot_id=None):
    return cloud.api.act(
        share_id, 'extend', {'new_size': cloud.api.show(share_id)['size'] + 1}, None
    )
