"""Crashes of a process at every crash point, one after the other."""

import pytest

from tests.simulation import crash_images
from tests.support.cloud import Crash


def crash_at_point(cloud, point, verb, *args):
    """Run `verb(*args)`; return whether it crashed at the given point."""
    cloud.crash_at(point)
    try:
        verb(*args)
    except Crash:
        return True
    return False


def crash_everywhere(begin, verb, name, **kwargs):
    """Crash once at every point of `verb(cloud, prepared)`, and recover.

    `begin(**kwargs)` returns a `CrashableCloud` and what was prepared on it,
    always in the same state. Crashes that leave the same image are recovered
    once. Fail if any crash leads to a broken invariant.
    """
    cloud, prepared = begin(**kwargs)
    images = crash_images.images_at_crash_points(
        cloud, lambda: verb(cloud, prepared)
    )
    cloud.check_invariants()
    assert len(images) > 20

    def recover(number, image):
        cloud, _ = begin(seed=1000 + number, image=image, **kwargs)
        cloud.check_invariants()

    recover_from_each(images, recover, name)


def recover_from_each(images, recover, name, *, least=2, most=4):
    """Call `recover(number, image)` for each image that this run tries.

    Fail with the crash point where it fails. At least so many images must
    differ.
    """
    distinct = crash_images.distinct_images(images)
    assert len(distinct) >= least
    for number, point, image in crash_images.to_try(distinct, most):
        try:
            recover(number, image)
        except AssertionError as error:
            pytest.fail(f'{name} at {number} ({point}): {error}')
    print(f'{name}: {len(images)} points, {len(distinct)} of them differ')


def image_of_two_crashes(begin, verbs, seed):
    """Crash in one of the verbs and again during recovery; return the image.

    `begin(seed, image)` starts a process. A third of the messages is lost,
    and a third is delivered twice.
    """
    cloud = begin(seed)
    name = cloud.rng.choice(sorted(verbs))
    cloud.loss_rate, cloud.duplicate_rate = 0.3, 0.3
    points = crash_images.images_at_crash_points(
        cloud, lambda: verbs[name](cloud)
    )
    _, image = cloud.rng.choice(points)
    cloud.db.dispose()
    cloud = begin(1000 + seed, image)
    points = crash_images.images_at_crash_points(cloud, cloud.settle)
    if points:
        _, image = cloud.rng.choice(points)
    cloud.db.dispose()
    return image


def crash_twice(begin, seeds, verbs):
    """With each seed, crash in one of the verbs and again during recovery.

    A third of the messages is lost, and a third is delivered twice.
    """
    crashes = [_crash_twice(begin, seed, verbs) for seed in seeds]
    # Of all seeds there is more than a crash per seed; a sample may have less.
    assert 2 * sum(crashes) >= len(seeds)
    print(f'{len(seeds)} seeds, {sum(crashes)} crashes, no invariant broken')


def _crash_twice(begin, seed, verbs):
    cloud, prepared = begin(seed=seed)
    name = cloud.rng.choice(list(verbs))
    cloud.loss_rate, cloud.duplicate_rate = 0.3, 0.3
    first = cloud.rng.randrange(60)
    crashes = [crash_at_point(cloud, first, verbs[name], cloud, prepared)]
    cloud.restart()
    crashes.append(
        crash_at_point(cloud, cloud.rng.randrange(40), cloud.settle)
    )
    cloud.restart()
    cloud.settle()
    try:
        cloud.check_invariants()
    except AssertionError as error:
        pytest.fail(f'{name}, seed {seed}, at {first}: {error}')
    return sum(crashes)
