"""Crashes at any point, and a second crash at any point of the recovery.

The first crash is at every point of a verb, the second at every point of
the recovery: the start, the rescue, the work done after all. Then the rest
is recovered, and every invariant holds.

A sample of the first crashes is followed by a sample of second ones.
"""

import pytest

from tests.simulation import crash_images
from tests.support import cloud_snapshots, sampling
from tests.support.access import ShareRules
from tests.support.cloud import Cloud

FIRST, SECOND = '10.0.0.1', '10.0.0.2'


def create(cloud, found):
    cloud.api.create(name='new', size=3, metadata={'key': 'value'})


def delete(cloud, found):
    cloud.api.delete(found['empty'])


def extend(cloud, found):
    cloud.api.act(found['share'], 'extend', {'new_size': 5})


def create_snapshot(cloud, found):
    cloud_snapshots.create(cloud, found['share'])


def revert(cloud, found):
    cloud_snapshots.revert(cloud, found['extended'], found['snapshot'])


def allow(cloud, found):
    ShareRules(cloud, found['share']).allow(SECOND)


def deny(cloud, found):
    ShareRules(cloud, found['share']).deny(found['rule'])


VERBS = [create, delete, extend, create_snapshot, revert, allow, deny]


@pytest.fixture(scope='module')
def prepared(tmp_path_factory):
    """Three shares, one of them extended after its snapshot."""
    cloud = Cloud(tmp_path_factory.mktemp('double'), backends=['alpha'])
    cloud_snapshots.enable_snapshot_features(cloud)
    found = {
        name: cloud.create_share(size=2) for name in ('share', 'empty', 'extended')
    }
    found['rule'] = ShareRules(cloud, found['share']).allow(FIRST)
    found['snapshot'] = cloud_snapshots.create_available(cloud, found['extended'])
    cloud.api.act(found['extended'], 'extend', {'new_size': 3})
    cloud.settle()
    cloud.db.dispose()
    return crash_images.capture(cloud), found, cloud.folder


class Restarter:
    """Restarts processes on disk images, all in the same folder."""

    def __init__(self, folder):
        self.folder = folder
        self.seed = 1000

    def boot(self, image):
        self.seed += 1
        return crash_images.boot(image, self.folder, self.seed, backends=['alpha'])

    def recover(self, image, *, watched=True):
        """Recover from an image; return the crash points if watched."""
        cloud = self.boot(image)

        def run():
            cloud.restart()
            cloud.settle()

        try:
            points = (
                crash_images.images_at_crash_points(cloud, run) if watched else run()
            )
            cloud.check_invariants()
        finally:
            cloud.db.dispose()
        return points


def to_try(points):
    return crash_images.to_try(crash_images.distinct_images(points), 2)


@sampling.enumeration
@pytest.mark.parametrize('verb', VERBS, ids=lambda verb: verb.__name__)
def test_two_crashes_anywhere_break_no_invariant(prepared, verb):
    start, found, folder = prepared
    restarter = Restarter(folder)
    cloud = restarter.boot(start)
    cloud.restart()

    def run():
        verb(cloud, found)
        cloud.settle()

    first = crash_images.images_at_crash_points(cloud, run)
    cloud.check_invariants()
    cloud.db.dispose()
    pairs = followed = 0
    for _, point, image in to_try(first):
        second = run_or_fail(f'{verb.__name__}, {point}', restarter.recover, image)
        pairs += len(second) * sum(one.files == image.files for _, one in first)
        for _, second_point, second_image in to_try(second):
            run_or_fail(
                f'{verb.__name__}, {point}, then {second_point}',
                restarter.recover,
                second_image,
                watched=False,
            )
            followed += 1
    print(
        f'{verb.__name__}: {len(first)} points of the first crash, '
        f'{pairs} pairs with a second, {followed} distinct images'
    )
    assert len(first) > 20
    assert followed >= 2


def run_or_fail(where, call, *args, **kwargs):
    try:
        return call(*args, **kwargs)
    except AssertionError as error:
        pytest.fail(f'{where}: {error}')
