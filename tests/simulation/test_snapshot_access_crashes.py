"""After a crash at any point exactly the permitted clients can mount.

As in `test_access_crashes`, for the access rules of snapshots.
"""

import contextlib

import pytest

from tests.simulation import crash_images
from tests.simulation import pausing
from tests.simulation.crashing import crash_at_point
from tests.simulation.crashing import recover_from_each
from tests.support import sampling
from tests.support.cloud import Crash
from tests.support.rewind import rewindable
from tests.support.snapshot_access import SnapshotRules
from tests.support.snapshot_access import create_mountable_snapshot
from tests.support.snapshot_access import enable_snapshot_mounts

METHOD = 'snapshot_update_access'
SEEDS = sampling.seeds(100, 8)
FIRST, SECOND, THIRD, FOURTH = (f'10.0.0.{number}' for number in range(1, 5))


def allow(cloud, rules, ids):
    rules.allow(THIRD)
    cloud.settle()


def deny(cloud, rules, ids):
    rules.deny(ids[SECOND])
    cloud.settle()


def deny_while_applying(cloud, rules, ids):
    new = rules.allow(THIRD)['id']
    cloud.pause_at(f'before {METHOD}', lambda: rules.deny(new))
    cloud.settle()


def allow_after_apply(cloud, rules, ids):
    rules.deny(ids[SECOND])
    cloud.pause_at(f'after {METHOD}', lambda: rules.allow(FOURTH))
    cloud.settle()


def fail(cloud, rules, ids):
    rules.driver.half_fail_next(METHOD)
    rules.deny(ids[SECOND])
    rules.allow(THIRD)
    cloud.settle()


def delete(cloud, rules, ids):
    rules.deny(ids[SECOND])
    cloud.api.request('DELETE', rules.path, expect=202)
    cloud.settle()


def fail_to_delete(cloud, rules, ids):
    rules.driver.half_fail_next('delete_snapshot')
    cloud.api.request('DELETE', rules.path, expect=202)
    cloud.settle()


VERBS = [allow, deny, deny_while_applying, fail, delete]
MORE = [*VERBS, allow_after_apply, fail_to_delete]


def prepare(cloud):
    """Create a snapshot that two clients may mount."""
    enable_snapshot_mounts(cloud)
    rules = create_mountable_snapshot(cloud)
    ids = {to: rules.allow(to)['id'] for to in (FIRST, SECOND)}
    cloud.settle()
    return rules.snapshot_id, ids


@pytest.fixture(scope='module')
def begin(tmp_path_factory):
    """Return a cloud, its snapshot and the rule ids, as prepared."""
    with rewindable(
        tmp_path_factory.mktemp('mountable'),
        prepare,
        kind=crash_images.CrashableCloud,
        backends=('alpha',),
    ) as begin:

        def make(seed=0, image=None, backend_conf=''):
            cloud, (snapshot_id, ids) = begin(seed, backend_conf, image=image)
            return cloud, SnapshotRules(cloud, snapshot_id), ids

        yield make


@sampling.enumeration
@pytest.mark.parametrize('verb', VERBS, ids=lambda verb: verb.__name__)
def test_crash_anywhere_leaves_only_permitted_mounts(begin, verb):
    cloud, rules, ids = begin()
    images = crash_images.images_at_crash_points(
        cloud, lambda: verb(cloud, rules, ids)
    )
    points = [place for place, _ in images]
    cloud.check_invariants()
    assert {f'after {METHOD}', 'half-way'} <= set(points)

    def recover(point, image):
        cloud, rules, _ = begin(1000 + point, image)
        cloud.check_invariants()
        check_accepted_requests(rules, verb, points[:point])

    recover_from_each(images, recover, verb.__name__)


def check_accepted_requests(rules, verb, points_before):
    """Assert that requests accepted before the crash were carried out."""
    if 'committed' not in points_before:
        return
    if verb is deny:
        assert rules.states == {FIRST: 'active'}
    if verb is allow:
        assert rules.states[THIRD] == 'active'
    if verb is deny_while_applying and f'after {METHOD}' in points_before:
        assert THIRD not in rules.states


@sampling.enumeration
def test_two_crashes_and_bad_messages_leave_only_permitted_mounts(begin):
    for seed in SEEDS:
        cloud, rules, ids = begin(seed)
        verb = cloud.rng.choice(MORE)
        cloud.loss_rate, cloud.duplicate_rate = 0.3, 0.3
        crash_at_point(cloud, cloud.rng.randrange(70), verb, cloud, rules, ids)
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


@sampling.combinations('fencing', 'verb')
@pausing.FENCING
@pytest.mark.parametrize('verb', MORE, ids=lambda verb: verb.__name__)
def test_a_pause_in_any_driver_call_leaves_only_permitted_mounts(
    begin, verb, fencing, shared_database
):
    def start():
        cloud, rules, ids = begin(backend_conf=fencing)
        return cloud, lambda: verb(cloud, rules, ids), cloud.check_invariants

    pausing.pause_everywhere(start, verb.__name__, shared_database)
