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
    distinct = crash_images.distinct_images(images)
    for point, where, image in crash_images.to_try(distinct):
        cloud, _ = begin(seed=1000 + point, image=image, **kwargs)
        try:
            cloud.check_invariants()
        except AssertionError as error:
            pytest.fail(f'{name} at {point} ({where}): {error}')
    print(
        f'{name}: {len(images)} points, {len(distinct)} of them differ, no '
        'invariant broken'
    )


def crash_twice(begin, seed, verbs):
    """Crash in one of the verbs, and again during recovery.

    A third of the messages is lost, and a third is delivered twice.
    """
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
