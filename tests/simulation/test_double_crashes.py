"""A process that dies anywhere, and anywhere again while it recovers.

The first death is at every place of a verb. The second is at every place
of what follows: the start, the rescue, the work that is done after all.
Whatever is left is then brought to rest, and every invariant holds.

A first death in `SAMPLE` is followed, and a second one in as many; all of
them where MANILA_LITE_TEST_ALL_CRASHES is set.
"""

import os
import random

import pytest

from tests.simulation import crash_images as death
from tests.support import cloud_snapshots as album
from tests.support.access import ShareRules
from tests.support.cloud import Cloud

SAMPLE = 1 if os.environ.get('MANILA_LITE_TEST_ALL_CRASHES') else 4
KEPT, NEW = '10.0.0.1', '10.0.0.2'


def create(cloud, found):
    cloud.api.create(name='new', size=3, metadata={'key': 'value'})


def delete(cloud, found):
    cloud.api.delete(found['bare'])


def extend(cloud, found):
    cloud.api.act(found['share'], 'extend', {'new_size': 5})


def take_snapshot(cloud, found):
    album.create(cloud, found['share'])


def revert(cloud, found):
    album.revert(cloud, found['grown'], found['snapshot'])


def allow(cloud, found):
    ShareRules(cloud, found['share']).allow(NEW)


def deny(cloud, found):
    ShareRules(cloud, found['share']).deny(found['rule'])


VERBS = [create, delete, extend, take_snapshot, revert, allow, deny]


@pytest.fixture(scope='module')
def prepared(tmp_path_factory):
    """What is there before: shares, one of them grown since its snapshot."""
    cloud = Cloud(tmp_path_factory.mktemp('double'), backends=['alpha'])
    album.enable_snapshot_features(cloud)
    found = {
        name: cloud.create_share(size=2) for name in ('share', 'bare', 'grown')
    }
    found['rule'] = ShareRules(cloud, found['share']).allow(KEPT)
    found['snapshot'] = album.create_available(cloud, found['grown'])
    cloud.api.act(found['grown'], 'extend', {'new_size': 3})
    cloud.settle()
    cloud.db.dispose()
    return death.capture(cloud), found, cloud.folder


class Walk:
    """Goes every way from what is left; the same files have the same path."""

    def __init__(self, folder):
        self.folder = folder
        self.rng = random.Random(4711)
        self.seed = 1000

    def from_(self, image):
        self.seed += 1
        return death.boot(image, self.folder, self.seed, backends=['alpha'])

    def recover(self, image, *, watched=True):
        """Come to rest again; where one may die meanwhile."""
        cloud = self.from_(image)

        def run():
            cloud.restart()
            cloud.settle()

        try:
            places = (
                death.images_at_crash_points(cloud, run) if watched else run()
            )
            cloud.check_invariants()
        finally:
            cloud.db.dispose()
        return places

    def some(self, places):
        """Remains that differ, each with a place, or a sample of them."""
        found = list(
            {image.files: (place, image) for place, image in places}.values()
        )
        return (
            found
            if SAMPLE == 1
            else self.rng.sample(found, -(-len(found) // SAMPLE))
        )


@pytest.mark.parametrize('verb', VERBS, ids=lambda verb: verb.__name__)
def test_two_crashes_anywhere_break_no_invariant(prepared, verb):
    start, found, folder = prepared
    walk = Walk(folder)
    cloud = walk.from_(start)
    cloud.restart()

    def run():
        verb(cloud, found)
        cloud.settle()

    first = death.images_at_crash_points(cloud, run)
    cloud.check_invariants()
    cloud.db.dispose()
    pairs = followed = 0
    for place, image in walk.some(first):
        second = attempt(f'{verb.__name__}, {place}', walk.recover, image)
        pairs += len(second) * sum(
            one.files == image.files for _, one in first
        )
        for again, left in walk.some(second):
            attempt(
                f'{verb.__name__}, {place}, then {again}',
                walk.recover,
                left,
                watched=False,
            )
            followed += 1
    print(
        f'{verb.__name__}: {len(first)} places of the first death, '
        f'{pairs} pairs with a second, {followed} different remains'
    )
    assert len(first) > 20
    assert followed >= 4


def attempt(where, call, *args, **kwargs):
    try:
        return call(*args, **kwargs)
    except AssertionError as error:
        pytest.fail(f'{where}: {error}')
