"""After a crash at any point exactly the permitted clients have access.

As in `test_crashes`, including crashes half-way through a driver call.
"""

import contextlib

import pytest

from tests.simulation import crash_images
from tests.simulation import pausing
from tests.simulation.crashing import crash_at_point
from tests.simulation.crashing import recover_from_each
from tests.support import sampling
from tests.support.access import ShareRules
from tests.support.cloud import Crash
from tests.support.rewind import rewindable

FIRST, SECOND = '10.0.0.1', '10.0.0.2'
THIRD, FOURTH = '10.0.0.3', '10.0.0.4'


def allow(cloud, rules, ids):
    rules.allow(THIRD)
    cloud.settle()


def deny(cloud, rules, ids):
    rules.deny(ids[SECOND])
    cloud.settle()


def change(cloud, rules, ids):
    rules.change(ids[SECOND], 'ro')
    cloud.settle()


def all_at_once(cloud, rules, ids):
    rules.allow(THIRD)
    rules.deny(ids[SECOND])
    rules.change(ids[FIRST], 'ro')
    cloud.settle()


def deny_while_applying(cloud, rules, ids):
    new = rules.allow(THIRD)
    cloud.pause_at('before apply_access', lambda: rules.deny(new))
    cloud.settle()


def allow_after_apply(cloud, rules, ids):
    rules.allow(THIRD)
    cloud.pause_at('after apply_access', lambda: rules.allow(FOURTH, 'ro'))
    cloud.settle()


def fail(cloud, rules, ids):
    rules.driver.half_fail_next('update_access')
    rules.deny(ids[SECOND])
    rules.allow(THIRD)
    cloud.settle()


def delete(cloud, rules, ids):
    cloud.api.delete(rules.share_id)
    cloud.settle()


def deny_and_delete(cloud, rules, ids):
    rules.deny(ids[SECOND])
    cloud.api.act(rules.share_id, 'force_delete')
    cloud.settle()


VERBS = [allow, deny, change, all_at_once, deny_while_applying, fail, delete]
MORE = [*VERBS, allow_after_apply, deny_and_delete]


def prepare(cloud):
    """Create a share that two clients may use."""
    rules = ShareRules(cloud, cloud.create_share())
    ids = {to: rules.allow(to) for to in (FIRST, SECOND)}
    cloud.settle()
    return rules.share_id, ids


@pytest.fixture(scope='module')
def begin(tmp_path_factory):
    """Return a cloud, the rules of its share and their ids, as prepared."""
    with rewindable(
        tmp_path_factory.mktemp('rules'),
        prepare,
        kind=crash_images.CrashableCloud,
    ) as begin:

        def make(seed=0, image=None, backend_conf=''):
            cloud, (share_id, ids) = begin(seed, backend_conf, image=image)
            return cloud, ShareRules(cloud, share_id), ids

        yield make


@sampling.enumeration
@pytest.mark.parametrize('verb', VERBS, ids=lambda verb: verb.__name__)
def test_crash_anywhere_leaves_only_permitted_access(begin, verb):
    cloud, rules, ids = begin()
    images = crash_images.images_at_crash_points(
        cloud, lambda: verb(cloud, rules, ids)
    )
    points = [place for place, _ in images]
    cloud.check_invariants()
    assert {'after apply_access', 'half-way'} <= set(points)

    def recover(point, image):
        cloud, rules, _ = begin(1000 + point, image)
        cloud.check_invariants()
        check_accepted_requests(cloud, rules, verb, points[:point])

    recover_from_each(images, recover, verb.__name__)


def check_accepted_requests(cloud, rules, verb, points_before):
    """Assert that requests accepted before the crash were carried out."""
    if verb is deny and 'committed' in points_before:
        assert SECOND not in rules.clients
        assert SECOND not in rules.states
    if verb is allow and 'committed' in points_before:
        assert rules.states[THIRD] == 'active'
    if verb is change and 'committed' in points_before:
        assert rules.clients[SECOND] == 'ro'


@sampling.enumeration
@pytest.mark.parametrize('seed', sampling.seeds(300, 8))
def test_two_crashes_and_bad_messages_leave_only_permitted_access(begin, seed):
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
    cloud.check_invariants()


@sampling.combinations('fencing', 'verb')
@pausing.FENCING
@pytest.mark.parametrize('verb', MORE, ids=lambda verb: verb.__name__)
def test_a_pause_in_any_driver_call_leaves_only_permitted_access(
    begin, verb, fencing, shared_database
):
    def start():
        cloud, rules, ids = begin(backend_conf=fencing)
        return cloud, lambda: verb(cloud, rules, ids), cloud.check_invariants

    pausing.pause_everywhere(start, verb.__name__, shared_database)
