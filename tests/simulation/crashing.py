"""A process that dies at every place there is, one after the other."""

import pytest

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

    `begin(**how)` gives both, always in the same state. Fails when an
    invariant is broken after any of the deaths.
    """
    cloud, found = begin(**how)
    assert not die(cloud, None, verb, cloud, found)
    places = list(cloud.points)
    cloud.check_invariants()
    assert len(places) > 20
    for point, place in enumerate(places):
        cloud, found = begin(**how)
        assert die(cloud, point, verb, cloud, found), (name, point)
        assert cloud.points[-1] == place
        cloud.restart()
        cloud.settle()
        try:
            cloud.check_invariants()
        except AssertionError as error:
            pytest.fail(f'{name} at {point} ({place}): {error}')
    print(f'{name}: {len(places)} points, no invariant broken')


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
