"""A process that dies at every place there is, one after the other."""

import pytest

from tests.simulation import crash_images as death
from tests.support.cloud import Crash


def die(cloud, point, verb, *args):
    """Whether the process died at the point-th place of `verb(*args)`."""
    cloud.crash_at(point)
    try:
        verb(*args)
    except Crash:
        return True
    return False


def die_everywhere(begin, verb, name, **how):
    """Die once at every place of `verb(cloud, found)`, and recover.

    `begin(**how)` gives both, always in the same state, of a `Mortal`.
    What two deaths leave that leave the same is recovered once. Fails
    when an invariant is broken after any of the deaths.
    """
    cloud, found = begin(**how)
    places = death.remains_of(cloud, lambda: verb(cloud, found))
    cloud.check_invariants()
    assert len(places) > 20
    left = death.different(places)
    for point, place, remains in left:
        cloud, _ = begin(seed=1000 + point, remains=remains, **how)
        try:
            cloud.check_invariants()
        except AssertionError as error:
            pytest.fail(f'{name} at {point} ({place}): {error}')
    print(
        f'{name}: {len(places)} points, {len(left)} of them differ, no '
        'invariant broken'
    )


def die_twice(begin, seed, verbs):
    """Die in one of the verbs, then while that is made good again.

    A third of the messages is lost, and a third is delivered twice.
    """
    cloud, found = begin(seed=seed)
    name = cloud.chance.choice(list(verbs))
    cloud.lose, cloud.double = 0.3, 0.3
    first = cloud.chance.randrange(60)
    died = [die(cloud, first, verbs[name], cloud, found)]
    cloud.restart()
    died.append(die(cloud, cloud.chance.randrange(40), cloud.settle))
    cloud.restart()
    cloud.settle()
    try:
        cloud.check_invariants()
    except AssertionError as error:
        pytest.fail(f'{name}, seed {seed}, at {first}: {error}')
    return sum(died)
