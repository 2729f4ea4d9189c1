"""A process that dies at any place has exactly those mount who may.

As in `test_access_crashes`, of the rules of snapshots.
"""

import contextlib

import pytest

from tests.simulation import crash_images as death
from tests.support.cloud import Crash
from tests.support.rewind import rewindable
from tests.support.seeds import seeds
from tests.support.snapshot_access import SnapshotRules
from tests.support.snapshot_access import create_mountable_snapshot
from tests.support.snapshot_access import enable_snapshot_mounts

METHOD = 'snapshot_update_access'
SEEDS = seeds(15)
KEPT, OTHER, NEW, LATER = (f'10.0.0.{number}' for number in range(1, 5))


def allow(cloud, mount, ids):
    mount.allow(NEW)
    cloud.settle()


def deny(cloud, mount, ids):
    mount.deny(ids[OTHER])
    cloud.settle()


def deny_on_the_way(cloud, mount, ids):
    new = mount.allow(NEW)['id']
    cloud.pause_at(f'before {METHOD}', lambda: mount.deny(new))
    cloud.settle()


def allow_while_told(cloud, mount, ids):
    mount.deny(ids[OTHER])
    cloud.pause_at(f'after {METHOD}', lambda: mount.allow(LATER))
    cloud.settle()


def fail(cloud, mount, ids):
    mount.driver.half_fail_next(METHOD)
    mount.deny(ids[OTHER])
    mount.allow(NEW)
    cloud.settle()


def delete(cloud, mount, ids):
    mount.deny(ids[OTHER])
    cloud.api.request('DELETE', mount.path, expect=202)
    cloud.settle()


def fail_to_delete(cloud, mount, ids):
    mount.driver.half_fail_next('delete_snapshot')
    cloud.api.request('DELETE', mount.path, expect=202)
    cloud.settle()


VERBS = [allow, deny, deny_on_the_way, fail, delete]
MORE = [*VERBS, allow_while_told, fail_to_delete]


def prepare(cloud):
    """A snapshot that two clients may mount."""
    enable_snapshot_mounts(cloud)
    mount = create_mountable_snapshot(cloud)
    ids = {to: mount.allow(to)['id'] for to in (KEPT, OTHER)}
    cloud.settle()
    return mount.snapshot_id, ids


@pytest.fixture(scope='module')
def begin(tmp_path_factory):
    """Gives a cloud, its snapshot and the rules, always as prepared."""
    with rewindable(
        tmp_path_factory.mktemp('mountable'),
        prepare,
        kind=death.CrashableCloud,
        backends=('alpha',),
    ) as begin:

        def make(seed=0, image=None):
            cloud, (snapshot_id, ids) = begin(seed, image=image)
            return cloud, SnapshotRules(cloud, snapshot_id), ids

        yield make


def die(cloud, mount, ids, verb, point):
    """Whether the process died at the point, while it did the verb."""
    cloud.crash_at(point)
    try:
        verb(cloud, mount, ids)
    except Crash:
        return True
    return False


@pytest.mark.parametrize('verb', VERBS, ids=lambda verb: verb.__name__)
def test_a_crash_anywhere_has_those_mount_who_may(begin, verb):
    cloud, mount, ids = begin()
    found = death.images_at_crash_points(
        cloud, lambda: verb(cloud, mount, ids)
    )
    places = [place for place, _ in found]
    cloud.check_invariants()
    assert {f'after {METHOD}', 'half-way'} <= set(places)
    for point, where, image in death.distinct_images(found):
        cloud, mount, ids = begin(1000 + point, image)
        try:
            cloud.check_invariants()
            keep_promises(mount, verb, places[:point])
        except AssertionError as error:
            pytest.fail(f'{verb.__name__} at {point} ({where}): {error}')
    print(f'{verb.__name__}: {len(places)} points, no invariant broken')


def keep_promises(mount, verb, passed):
    """What was accepted before the end has come about."""
    if 'committed' not in passed:
        return
    if verb is deny:
        assert mount.states == {KEPT: 'active'}
    if verb is allow:
        assert mount.states[NEW] == 'active'
    if verb is deny_on_the_way and f'after {METHOD}' in passed:
        assert NEW not in mount.states


def test_two_crashes_and_bad_messages_have_those_mount_who_may(begin):
    for seed in SEEDS:
        cloud, mount, ids = begin(seed)
        verb = cloud.rng.choice(MORE)
        cloud.loss_rate, cloud.duplicate_rate = 0.3, 0.3
        die(cloud, mount, ids, verb, cloud.rng.randrange(70))
        cloud.restart()
        cloud.crash_at(cloud.rng.randrange(60))
        with contextlib.suppress(Crash):
            cloud.settle()
        cloud.restart()
        cloud.settle()
        try:
            cloud.check_invariants()
        except AssertionError as error:
            pytest.fail(f'{verb.__name__}, seed {seed}: {error}')
