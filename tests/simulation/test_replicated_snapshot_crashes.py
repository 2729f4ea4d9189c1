"""A process that dies at any place leaves no snapshot of replicas stuck.

As in `test_snapshot_crashes`, of shares that have replicas: when these
have been looked at once more all is quiet, every invariant holds, and what
a snapshot is on one replica it is on the others, unless it is in error: of
one that was being restored nobody knows.
"""

import functools

import pytest
import sqlalchemy as sa

from manila_lite.db.models import snapshots
from tests.simulation import crash_images as death
from tests.support import cloud_snapshots as album
from tests.support.replicated import ReplicatedCloud

INSTANCE = snapshots.SnapshotInstance.__table__
HOW = {'backends': ('alpha', 'beta')}


class MortalAlbum(death.CrashableCloud, ReplicatedCloud):
    """A cloud that replicates, and says where it may die."""

    def check_invariants(self):
        super().check_invariants()
        found = {}
        for row in self.rows(sa.select(INSTANCE)):
            found.setdefault(row.snapshot_id, set()).add(row.status)
        for snapshot_id, statuses in found.items():
            assert len(statuses - {'error'}) <= 1, (snapshot_id, statuses)


def carry_out(cloud):
    cloud.settle()
    cloud.update()


def take(cloud, found):
    album.create(cloud, found['shrunk'][0], metadata={'key': 'value'})
    carry_out(cloud)


def take_in_vain(cloud, found):
    cloud.driver().half_fail_next('create_replicated_snapshot')
    take(cloud, found)


def delete(cloud, found):
    album.delete(cloud, found['shrunk'][1])
    carry_out(cloud)


def delete_in_vain(cloud, found):
    cloud.driver().half_fail_next('delete_replicated_snapshot')
    delete(cloud, found)


def force_delete(cloud, found):
    album.act(cloud, found['shrunk'][1], 'force_delete')
    carry_out(cloud)


def revert(cloud, found, which='shrunk'):
    album.revert(cloud, *found[which])
    carry_out(cloud)


def revert_in_vain(cloud, found):
    cloud.driver().half_fail_next('revert_to_replicated_snapshot')
    revert(cloud, found)


def force_delete_what_is_taken(cloud, found):
    album.act(cloud, album.create(cloud, found['grown'][0]), 'force_delete')
    carry_out(cloud)


def force_delete_what_is_restored(cloud, found):
    album.revert(cloud, *found['grown'])
    album.act(cloud, found['grown'][1], 'force_delete')
    carry_out(cloud)


def promote_what_is_deleted(cloud, found):
    """Another replica is active when the deletion is carried out."""
    share_id, snapshot_id = found['shrunk']
    album.delete(cloud, snapshot_id)
    passive = next(
        row
        for row in cloud.replicas(share_id)
        if row.replica_state != 'active'
    )
    cloud.ask('promote', passive.id)
    carry_out(cloud)


VERBS = {
    'take': take,
    'take in vain': take_in_vain,
    'delete': delete,
    'delete in vain': delete_in_vain,
    'force-delete': force_delete,
    'revert what was shrunk': revert,
    'revert what has grown': functools.partial(revert, which='grown'),
    'revert in vain': revert_in_vain,
    'force-delete what is taken': force_delete_what_is_taken,
    'force-delete what is restored': force_delete_what_is_restored,
    'promote what is deleted': promote_what_is_deleted,
}

CHANGES = {'grown': ('extend', 5), 'shrunk': ('shrink', 1)}


@pytest.fixture(scope='module')
def prepared(tmp_path_factory):
    """Shares that have changed, each with a replica and a snapshot."""
    cloud = MortalAlbum(tmp_path_factory.mktemp('album'), seed=10_000, **HOW)
    found = {}
    for change, (action, size) in CHANGES.items():
        share_id = cloud.create_share_on('alpha', size=3)
        cloud.replicate(share_id, 'beta')
        found[change] = share_id, album.create(cloud, share_id)
        carry_out(cloud)
        cloud.api.act(share_id, action, {'new_size': size})
        cloud.settle()
    cloud.check_invariants()
    cloud.db.dispose()
    return cloud.folder, death.capture(cloud), found


def begin(prepared, seed, image=None):
    folder, whole, _ = prepared
    cloud = death.boot(image or whole, folder, seed, MortalAlbum, **HOW)
    cloud.restart()
    return cloud


def different(places):
    """One of those remains that are the same, with the place."""
    return list(
        {image.files: (place, image) for place, image in places}.values()
    )


def check(cloud, *where):
    try:
        carry_out(cloud)
        cloud.check_invariants()
    except AssertionError as error:
        pytest.fail(f'{where}: {error}')
    finally:
        cloud.db.dispose()


@pytest.mark.parametrize('name', VERBS)
def test_a_crash_anywhere_breaks_no_invariant(prepared, name):
    cloud = begin(prepared, 1)
    places = death.images_at_crash_points(
        cloud, lambda: VERBS[name](cloud, prepared[2])
    )
    check(cloud, name, 'no death')
    left = different(places)
    assert len(left) > 5
    for number, (place, image) in enumerate(left):
        check(begin(prepared, 100 + number, image), name, number, place)
    print(f'{name}: {len(places)} places, {len(left)} of them differ')


@pytest.mark.parametrize('seed', range(8))
def test_two_crashes_and_bad_messages_break_no_invariant(prepared, seed):
    cloud = begin(prepared, seed)
    name = cloud.rng.choice(sorted(VERBS))
    cloud.loss_rate, cloud.duplicate_rate = 0.3, 0.3
    places = death.images_at_crash_points(
        cloud, lambda: VERBS[name](cloud, prepared[2])
    )
    image = cloud.rng.choice(different(places))[1]
    cloud.db.dispose()
    cloud = begin(prepared, 1000 + seed, image)
    again = different(death.images_at_crash_points(cloud, cloud.settle))
    if again:
        image = cloud.rng.choice(again)[1]
    cloud.db.dispose()
    check(begin(prepared, 2000 + seed, image), name, seed)
