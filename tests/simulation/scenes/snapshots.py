"""Snapshots of shares that were resized since."""

import functools

from tests.simulation.crashing import Scene
from tests.support import cloud_snapshots


def create(cloud, found):
    cloud_snapshots.create(cloud, found['shrunk'][0], metadata={'key': 'value'})
    cloud.settle()


def delete(cloud, found):
    cloud_snapshots.delete(cloud, found['shrunk'][1])
    cloud.settle()


def revert(cloud, found, which='extended'):
    cloud_snapshots.revert(cloud, *found[which])
    cloud.settle()


def fail_to_revert(cloud, found):
    cloud.driver().half_fail_next('revert_to_snapshot')
    revert(cloud, found, 'shrunk')


def force_delete_during_create(cloud, found):
    cloud_snapshots.act(
        cloud, cloud_snapshots.create(cloud, found['extended'][0]), 'force_delete'
    )
    cloud.settle()


def force_delete_during_revert(cloud, found, which='extended'):
    cloud_snapshots.revert(cloud, *found[which])
    cloud_snapshots.act(cloud, found[which][1], 'force_delete')
    cloud.settle()


VERBS = {
    'create': create,
    'delete': delete,
    'revert extended share': revert,
    'revert shrunk share': functools.partial(revert, which='shrunk'),
    'revert fails': fail_to_revert,
    'force-delete during create': force_delete_during_create,
    'force-delete during revert': force_delete_during_revert,
    'force-delete during revert of shrunk share': functools.partial(
        force_delete_during_revert, which='shrunk'
    ),
}


def delete_both(cloud, found):
    """Delete a snapshot, and its share with it."""
    share_id, snapshot_id = found['shrunk']
    cloud_snapshots.delete(cloud, snapshot_id)
    cloud.api.delete(share_id)
    cloud.settle()


def fail_to_delete(cloud, found):
    for method in ('delete_snapshot', 'delete_share'):
        cloud.driver().half_fail_next(method)
    delete_both(cloud, found)
    retry(cloud, found)


def force_delete_share(cloud, found):
    share_id, snapshot_id = found['shrunk']
    cloud.driver().half_fail_next('delete_snapshot')
    cloud_snapshots.delete(cloud, snapshot_id)
    cloud.settle()
    cloud.api.act(share_id, 'force_delete')
    cloud.settle()


def retry(cloud, found):
    cloud.share.backends[0].deferred_deletion.retry()
    cloud.settle()


# How shares of 3 GiB were resized after their snapshots.
CHANGES = {'extended': ('extend', 5), 'shrunk': ('shrink', 1)}


def prepare(cloud):
    """Create resized shares, each with a snapshot."""
    cloud_snapshots.enable_snapshot_features(cloud)
    found = {}
    for change, (action, size) in CHANGES.items():
        share_id = cloud.create_share(size=3)
        found[change] = (share_id, cloud_snapshots.create_available(cloud, share_id))
        cloud.api.act(share_id, action, {'new_size': size})
        cloud.settle()
    return found


SCENES = [
    Scene(
        name='snapshots', prepare=prepare, verbs=VERBS, options={'backends': ['alpha']}
    ),
    Scene(
        name='deferred deletions',
        prepare=prepare,
        verbs=Scene.named(delete, delete_both, fail_to_delete, force_delete_share),
        options={'backends': ['alpha']},
        conf={'extra_conf': 'is_deferred_deletion_enabled = true'},
    ),
]
