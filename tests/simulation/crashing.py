"""A process that dies at every place there is, one after the other."""

import pytest

from tests.simulation import crash_images as death
from tests.support.cloud import Crash


def crash_at_point(cloud, point, verb, *args):
    """Whether the process died at the point-th place of `verb(*args)`."""
    cloud.crash_at(point)
    try:
        verb(*args)
    except Crash:
        return True
    return False


def crash_everywhere(begin, verb, name, **how):
    """Die once at every place of `verb(cloud, found)`, and recover.

    `begin(**how)` gives both, always in the same state, of a `Mortal`.
    What two deaths leave that leave the same is recovered once. Fails
    when an invariant is broken after any of the deaths.
    """
    cloud, found = begin(**how)
    places = death.images_at_crash_points(cloud, lambda: verb(cloud, found))
    cloud.check_invariants()
    assert len(places) > 20
    left = death.distinct_images(places)
    for point, place, image in left:
        cloud, _ = begin(seed=1000 + point, image=image, **how)
        try:
            cloud.check_invariants()
        except AssertionError as error:
            pytest.fail(f'{name} at {point} ({place}): {error}')
    print(
        f'{name}: {len(places)} points, {len(left)} of them differ, no '
        'invariant broken'
    )


def crash_twice(begin, seed, verbs):
    """Die in one of the verbs, then while that is made good again.

    A third of the messages is lost, and a third is delivered twice.
    """
    cloud, found = begin(seed=seed)
    name = cloud.rng.choice(list(verbs))
    cloud.loss_rate, cloud.duplicate_rate = 0.3, 0.3
    first = cloud.rng.randrange(60)
    died = [crash_at_point(cloud, first, verbs[name], cloud, found)]
    cloud.restart()
    died.append(crash_at_point(cloud, cloud.rng.randrange(40), cloud.settle))
    cloud.restart()
    cloud.settle()
    try:
        cloud.check_invariants()
    except AssertionError as error:
        pytest.fail(f'{name}, seed {seed}, at {first}: {error}')
    return sum(died)
