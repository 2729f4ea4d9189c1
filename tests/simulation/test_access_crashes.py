"""A process that dies at any place lets in exactly who may come in.

As in `test_crashes`: what is left by a death at any place of a verb, also
half-way through a call of the driver, is recovered.
"""

import contextlib

import pytest

from tests.simulation import crash_images as death
from tests.support.access import ShareRules
from tests.support.cloud import Crash
from tests.support.rewind import rewindable
from tests.support.seeds import seeds

KEPT, OTHER = '10.0.0.1', '10.0.0.2'
NEW, LATER = '10.0.0.3', '10.0.0.4'


def allow(cloud, rules, ids):
    rules.allow(NEW)
    cloud.settle()


def deny(cloud, rules, ids):
    rules.deny(ids[OTHER])
    cloud.settle()


def change(cloud, rules, ids):
    rules.change(ids[OTHER], 'ro')
    cloud.settle()


def all_at_once(cloud, rules, ids):
    rules.allow(NEW)
    rules.deny(ids[OTHER])
    rules.change(ids[KEPT], 'ro')
    cloud.settle()


def deny_on_the_way(cloud, rules, ids):
    new = rules.allow(NEW)
    cloud.pause_at('before apply_access', lambda: rules.deny(new))
    cloud.settle()


def allow_while_told(cloud, rules, ids):
    rules.allow(NEW)
    cloud.pause_at('after apply_access', lambda: rules.allow(LATER, 'ro'))
    cloud.settle()


def fail(cloud, rules, ids):
    rules.driver.half_fail_next('update_access')
    rules.deny(ids[OTHER])
    rules.allow(NEW)
    cloud.settle()


def delete(cloud, rules, ids):
    cloud.api.delete(rules.share_id)
    cloud.settle()


def deny_and_delete(cloud, rules, ids):
    rules.deny(ids[OTHER])
    cloud.api.act(rules.share_id, 'force_delete')
    cloud.settle()


VERBS = [allow, deny, change, all_at_once, deny_on_the_way, fail, delete]
MORE = [*VERBS, allow_while_told, deny_and_delete]


def prepare(cloud):
    """A share that two clients may use."""
    rules = ShareRules(cloud, cloud.create_share())
    ids = {to: rules.allow(to) for to in (KEPT, OTHER)}
    cloud.settle()
    return rules.share_id, ids


@pytest.fixture(scope='module')
def begin(tmp_path_factory):
    """Gives a cloud, its share's rules and their ids, as prepared."""
    with rewindable(
        tmp_path_factory.mktemp('rules'), prepare, kind=death.CrashableCloud
    ) as begin:

        def make(seed=0, image=None):
            cloud, (share_id, ids) = begin(seed, image=image)
            return cloud, ShareRules(cloud, share_id), ids

        yield make


def die(cloud, rules, ids, verb, point):
    """Whether the process died at the point, while it did the verb."""
    cloud.crash_at(point)
    try:
        verb(cloud, rules, ids)
    except Crash:
        return True
    return False


@pytest.mark.parametrize('verb', VERBS, ids=lambda verb: verb.__name__)
def test_a_crash_anywhere_lets_in_who_may(begin, verb):
    cloud, rules, ids = begin()
    found = death.images_at_crash_points(
        cloud, lambda: verb(cloud, rules, ids)
    )
    places = [place for place, _ in found]
    cloud.check_invariants()
    assert {'after apply_access', 'half-way'} <= set(places)
    left = death.distinct_images(found)
    for point, where, image in left:
        cloud, rules, ids = begin(1000 + point, image)
        try:
            cloud.check_invariants()
            keep_promises(cloud, rules, verb, places[:point])
        except AssertionError as error:
            pytest.fail(f'{verb.__name__} at {point} ({where}): {error}')
    print(f'{verb.__name__}: {len(places)} points, {len(left)} of them differ')


def keep_promises(cloud, rules, verb, passed):
    """What was accepted before the end has come about."""
    if verb is deny and 'committed' in passed:
        assert OTHER not in rules.clients
        assert OTHER not in rules.states
    if verb is allow and 'committed' in passed:
        assert rules.states[NEW] == 'active'
    if verb is change and 'committed' in passed:
        assert rules.clients[OTHER] == 'ro'


@pytest.mark.parametrize('seed', seeds(15))
def test_two_crashes_and_bad_messages_let_in_who_may(begin, seed):
    cloud, rules, ids = begin(seed)
    verb = cloud.rng.choice(MORE)
    cloud.loss_rate, cloud.duplicate_rate = 0.3, 0.3
    die(cloud, rules, ids, verb, cloud.rng.randrange(70))
    cloud.restart()
    cloud.crash_at(cloud.rng.randrange(60))
    with contextlib.suppress(Crash):
        cloud.settle()
    cloud.restart()
    cloud.settle()
    cloud.check_invariants()
