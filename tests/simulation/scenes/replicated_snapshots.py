"""Snapshots of replicated shares.

After the next replica update a snapshot has the same status on all replicas.
The exception is error: the state of a snapshot that was being restored is
unknown.
"""

import functools

import sqlalchemy as sa

from manila_lite.db.models import snapshots
from manila_lite.states.snapshot_instance import HIDDEN_FROM_TENANTS
from tests.simulation import crash_images
from tests.simulation.crashing import Scene
from tests.support import cloud_snapshots
from tests.support.replicated import ReplicatedCloud

INSTANCE = snapshots.SnapshotInstance.__table__


class CrashableReplicatedCloud(crash_images.CrashableCloud, ReplicatedCloud):
    """A replicated cloud with crash points."""

    def check_invariants(self):
        super().check_invariants()
        found = {}
        for row in self.rows(sa.select(INSTANCE)):
            found.setdefault(row.snapshot_id, set()).add(row.status)
        for snapshot_id, statuses in found.items():
            assert len(statuses - {'error'}) <= 1, (snapshot_id, statuses)


def run_all(cloud):
    cloud.settle()
    cloud.update()


def create(cloud, found):
    cloud_snapshots.create(cloud, found['shrunk'][0], metadata={'key': 'value'})
    run_all(cloud)


def fail_to_create(cloud, found):
    cloud.driver().half_fail_next('create_replicated_snapshot')
    create(cloud, found)


def delete(cloud, found):
    cloud_snapshots.delete(cloud, found['shrunk'][1])
    run_all(cloud)


def fail_to_delete(cloud, found):
    cloud.driver().half_fail_next('delete_replicated_snapshot')
    delete(cloud, found)


def force_delete(cloud, found):
    cloud_snapshots.act(cloud, found['shrunk'][1], 'force_delete')
    run_all(cloud)


def revert(cloud, found, which='shrunk'):
    cloud_snapshots.revert(cloud, *found[which])
    run_all(cloud)


def fail_to_revert(cloud, found):
    cloud.driver().half_fail_next('revert_to_replicated_snapshot')
    revert(cloud, found)


def force_delete_during_create(cloud, found):
    cloud_snapshots.act(
        cloud, cloud_snapshots.create(cloud, found['extended'][0]), 'force_delete'
    )
    run_all(cloud)


def force_delete_during_revert(cloud, found):
    cloud_snapshots.revert(cloud, *found['extended'])
    cloud_snapshots.act(cloud, found['extended'][1], 'force_delete')
    run_all(cloud)


def promote_during_delete(cloud, found):
    """Another replica becomes active before the deletion is carried out."""
    share_id, snapshot_id = found['shrunk']
    cloud_snapshots.delete(cloud, snapshot_id)
    passive = next(
        row for row in cloud.replicas(share_id) if row.replica_state != 'active'
    )
    cloud.ask('promote', passive.id)
    run_all(cloud)


VERBS = {
    'create': create,
    'create fails': fail_to_create,
    'delete': delete,
    'delete fails': fail_to_delete,
    'force-delete': force_delete,
    'revert shrunk share': revert,
    'revert extended share': functools.partial(revert, which='extended'),
    'revert fails': fail_to_revert,
    'force-delete during create': force_delete_during_create,
    'force-delete during revert': force_delete_during_revert,
    'promote during delete': promote_during_delete,
}

CHANGES = {'extended': ('extend', 5), 'shrunk': ('shrink', 1)}


def prepare(cloud):
    """Create resized shares, each with a replica and a snapshot."""
    found = {}
    for change, (action, size) in CHANGES.items():
        share_id = cloud.create_share_on('alpha', size=3)
        cloud.replicate(share_id, 'beta')
        found[change] = share_id, cloud_snapshots.create(cloud, share_id)
        run_all(cloud)
        cloud.api.act(share_id, action, {'new_size': size})
        cloud.settle()
    cloud.check_invariants()
    return found


def check(cloud):
    run_all(cloud)
    cloud.check_invariants()


def check_deferred(cloud):
    """Failed deletions succeed in the end, and nothing is charged twice."""
    run_all(cloud)
    for backend in cloud.share.backends:
        backend.deferred_deletion.retry()
    run_all(cloud)
    cloud.check_invariants()
    for row in cloud.rows(sa.select(INSTANCE)):
        assert row.status not in HIDDEN_FROM_TENANTS, row


SCENES = [
    Scene(
        name='snapshots of replicas',
        prepare=prepare,
        verbs=VERBS,
        kind=CrashableReplicatedCloud,
        options={'backends': ('alpha', 'beta')},
        check=check,
        seeds=(50, 1),
        least=6,
    ),
    Scene(
        name='deferred deletions of snapshots of replicas',
        prepare=prepare,
        verbs=Scene.named(delete, fail_to_delete, promote_during_delete),
        kind=CrashableReplicatedCloud,
        options={'backends': ('alpha', 'beta')},
        conf={'extra_conf': 'is_deferred_deletion_enabled = true'},
        check=check_deferred,
        seeds=(50, 1),
        least=6,
    ),
]
