"""A crash at any point leaves no snapshot of a replicated share stuck.

As in `test_snapshot_crashes`, for shares that have replicas: after the next
replica update everything is idle, every invariant holds, and a snapshot has
the same status on all replicas. The exception is error: the state of a
snapshot that was being restored is unknown.
"""

import functools

import pytest
import sqlalchemy as sa

from manila_lite.db.models import snapshots
from tests.simulation import crash_images
from tests.simulation import crashing
from tests.simulation import pausing
from tests.support import cloud_snapshots
from tests.support import sampling
from tests.support.replicated import ReplicatedCloud

INSTANCE = snapshots.SnapshotInstance.__table__
KWARGS = {'backends': ('alpha', 'beta')}


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
    cloud_snapshots.create(
        cloud, found['shrunk'][0], metadata={'key': 'value'}
    )
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
        cloud,
        cloud_snapshots.create(cloud, found['extended'][0]),
        'force_delete',
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
        row
        for row in cloud.replicas(share_id)
        if row.replica_state != 'active'
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


@pytest.fixture(scope='module')
def prepared(tmp_path_factory):
    """Resized shares, each with a replica and a snapshot."""
    cloud = CrashableReplicatedCloud(
        tmp_path_factory.mktemp('snapshots'), seed=10_000, **KWARGS
    )
    found = {}
    for change, (action, size) in CHANGES.items():
        share_id = cloud.create_share_on('alpha', size=3)
        cloud.replicate(share_id, 'beta')
        found[change] = share_id, cloud_snapshots.create(cloud, share_id)
        run_all(cloud)
        cloud.api.act(share_id, action, {'new_size': size})
        cloud.settle()
    cloud.check_invariants()
    cloud.db.dispose()
    return cloud.folder, crash_images.capture(cloud), found


def begin(prepared, seed, image=None, **kwargs):
    folder, initial, _ = prepared
    return crash_images.start_on(
        image or initial,
        folder,
        seed,
        CrashableReplicatedCloud,
        **KWARGS,
        **kwargs,
    )


def check(cloud):
    try:
        run_all(cloud)
        cloud.check_invariants()
    finally:
        cloud.db.dispose()


@sampling.enumeration
@pytest.mark.parametrize('name', VERBS)
def test_a_crash_anywhere_breaks_no_invariant(prepared, name):
    cloud = begin(prepared, 1)
    points = crash_images.images_at_crash_points(
        cloud, lambda: VERBS[name](cloud, prepared[2])
    )
    check(cloud)
    crashing.recover_from_each(
        points,
        lambda number, image: check(begin(prepared, 100 + number, image)),
        name,
        least=6,
    )


@sampling.enumeration
@pytest.mark.parametrize('seed', sampling.seeds(50, 4))
def test_two_crashes_and_bad_messages_break_no_invariant(prepared, seed):
    start = functools.partial(begin, prepared)
    verbs = {
        name: functools.partial(verb, found=prepared[2])
        for name, verb in VERBS.items()
    }
    image = crashing.image_of_two_crashes(start, verbs, seed)
    check(start(2000 + seed, image))


@sampling.combinations('fencing', 'name')
@pausing.FENCING
@pytest.mark.parametrize('name', VERBS)
def test_a_pause_in_any_driver_call_breaks_no_invariant(
    prepared, name, fencing, shared_database
):
    def start():
        cloud = begin(prepared, 1, backend_conf=fencing)
        return (
            cloud,
            lambda: VERBS[name](cloud, prepared[2]),
            lambda: check(cloud),
        )

    pausing.pause_everywhere(start, name, shared_database)
