"""A crash at any point leaves nothing stuck and loses nothing.

Every verb of every scene is run once. At every crash point (before a
statement, before and after a commit, before, in and after a driver call) the
disk is captured. A new process starts on every distinct image; it becomes
idle and every invariant holds. Accepted requests are done or have visibly
failed.
"""

import pytest

from tests.simulation import pausing
from tests.simulation.scenes.table import SCENES
from tests.support import sampling

pytestmark = sampling.suite('crashes in one operation', 24)


def verbs(*, paused=False):
    """Return each scene with each of its verbs.

    A verb goes with the name of its scene: pytest puts tests with an equal
    parameter side by side, and these are the tests of one stage.
    """
    return pytest.mark.parametrize(
        'stage, verb',
        [
            pytest.param(scene, (scene.name, name), id=f'{scene.name}-{name}')
            for scene in SCENES
            for name in scene.verbs
            if not (paused and name in scene.without_driver)
        ],
        indirect=['stage'],
        scope='module',
    )


@sampling.enumeration
@verbs()
def test_a_crash_anywhere_breaks_no_invariant(stage, verb):
    stage.crash_everywhere(verb[1])


@sampling.enumeration
@pytest.mark.parametrize(
    'stage, seeds',
    [
        pytest.param(scene, (scene.name, *seeds), id=f'{scene.name}-{seeds[0]}')
        for scene in SCENES
        for seeds in scene.seeds_to_try()
    ],
    indirect=['stage'],
    scope='module',
)
def test_two_crashes_and_bad_messages_break_no_invariant(stage, seeds):
    stage.crash_twice(seeds[1:])


@sampling.combinations('fencing', 'verb')
@pausing.FENCING
@verbs(paused=True)
def test_a_pause_in_any_driver_call_breaks_no_invariant(
    stage, verb, fencing, shared_database
):
    stage.pause_everywhere(verb[1], fencing, shared_database)


@sampling.enumeration
@verbs()
def test_slow_commits_make_no_move_twice(stage, verb, shared_database):
    stage.commit_slowly(verb[1], shared_database)
