"""A process that dies while replicas are updated leaves none behind.

Whatever a death leaves on the disk, at every place of every way to look at
them, is gone on with once. When they have been looked at once more all is
as it would be had nobody died: what is well is available and in sync, with
all snapshots, and users were told of a failure once.
"""

import shutil

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import services
from manila_lite.db.transitions import fire
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_replica import SHARE_REPLICA
from tests.simulation import crash_images as death
from tests.simulation.crashing import crash_at_point
from tests.support import cloud_snapshots as album
from tests.support.replicated import ReplicatedCloud
from tests.support.seeds import seeds

MESSAGE = services.Message.__table__
SEEDS = seeds(4)

HEALTHY = {'alpha': ('available', 'active'), 'beta': ('available', 'in_sync')}


class Mortal(death.CrashableCloud, ReplicatedCloud):
    """One that says so when it comes to a place where it may die."""

    def check(self):
        """All is well when the replicas have been looked at once more."""
        self.settle()
        self.update()
        self.check_invariants()
        for share_id in self.shares():
            assert self.states(share_id) == HEALTHY
            alpha, beta = (
                self.snapshots_on(row.id) for row in self.replicas(share_id)
            )
            assert alpha == beta
            assert set(beta.values()) <= {'available'}
        told = [row.resource_id for row in self.rows(sa.select(MESSAGE))]
        assert len(told) == len(set(told))

    def shares(self):
        return [row['id'] for row in self.api.get('/shares')['shares']]

    def put(self, replica_id, status, state):
        """Have a replica be so, by decree."""
        for machine, word in (
            (SHARE_INSTANCE, status),
            (SHARE_REPLICA, state),
        ):
            if word is not None:
                self.db.write(
                    fire, machine, replica_id, machine.reset_event(word)
                )


def resync(cloud, found):
    cloud.ask('resync', found['behind'])
    cloud.settle()


def resync_in_vain(cloud, found):
    cloud.driver('beta').faults.fail_next('update_replica_state')
    resync(cloud, found)


def resync_with_a_new_snapshot(cloud, found):
    cloud.ask('resync', found['coming'])
    cloud.settle()


def update(cloud, found):
    """Replicas that were in error, were behind, and have snapshots to
    come and to go."""
    cloud.update()


def update_in_vain(cloud, found):
    cloud.driver('beta').faults.fail_next(
        'update_replica_state', 2, exception.ShareBackendException(msg='')
    )
    cloud.update()


VERBS = {
    'resync': resync,
    'resync in vain': resync_in_vain,
    'resync with a new snapshot': resync_with_a_new_snapshot,
    'update': update,
    'update in vain': update_in_vain,
}


def prepare(cloud):
    """Replicas that have something to be told of, each of another kind."""
    found = {}
    for kind in ('behind', 'coming', 'going', 'broken'):
        share_id = cloud.create_share_on('alpha')
        cloud.allow(share_id)
        found[kind] = cloud.replicate(share_id, 'beta')
        if kind in ('coming', 'going'):
            snapshot_id = album.create(cloud, share_id)
            cloud.settle()
        if kind == 'going':
            cloud.update()
            album.delete(cloud, snapshot_id)
            cloud.settle()
        if kind == 'broken':
            active = cloud.active(share_id).id
            cloud.db.write(fire, SHARE_INSTANCE, active, 'replica_failed')
            cloud.put(found[kind], 'error', 'error')
    album.create(cloud, cloud.replica(found['coming']).share_id)
    cloud.settle()
    cloud.put(found['behind'], None, 'out_of_sync')
    return found


@pytest.fixture(scope='module')
def begin(tmp_path_factory):
    """`begin(remains=None, seed=0)` starts a process on what was left."""
    cloud = Mortal(
        tmp_path_factory.mktemp('updates'), backends=('alpha', 'beta')
    )
    found = prepare(cloud)
    cloud.db.dispose()
    at_first = death.capture(cloud)

    def begin(image=at_first, seed=0):
        cloud.db.dispose()
        shutil.rmtree(cloud.folder)
        for name, content in image.files:
            path = cloud.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        cloud.rng.seed(seed)
        cloud.clock.now = image.now
        cloud.loss_rate = cloud.duplicate_rate = 0.0
        cloud.restart()
        return cloud, found

    yield begin
    cloud.db.dispose()


@pytest.mark.parametrize('name', VERBS)
def test_a_death_anywhere_is_made_good_by_the_next_look(begin, name):
    cloud, found = begin()
    left = {
        image.files: (place, image)
        for place, image in death.images_at_crash_points(
            cloud, lambda: VERBS[name](cloud, found)
        )
    }
    cloud.check()
    assert len(left) > 3
    for place, image in left.values():
        begin(image)
        try:
            cloud.check()
        except AssertionError as error:
            pytest.fail(f'{name} {place}: {error}')
    print(f'{name}: {len(left)} remains')


def test_two_deaths_and_bad_messages_are_made_good(begin):
    died = 0
    for seed in SEEDS:
        cloud, found = begin(seed=seed)
        name = cloud.rng.choice(list(VERBS))
        cloud.loss_rate, cloud.duplicate_rate = 0.3, 0.3
        died += crash_at_point(
            cloud, cloud.rng.randrange(60), VERBS[name], cloud, found
        )
        cloud.restart()
        died += crash_at_point(cloud, cloud.rng.randrange(40), cloud.update)
        cloud.restart()
        try:
            cloud.check()
        except AssertionError as error:
            pytest.fail(f'{name}, seed {seed}: {error}')
    assert died >= len(SEEDS)
