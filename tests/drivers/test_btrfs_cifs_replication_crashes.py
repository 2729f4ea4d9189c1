"""Replication of CIFS shares of the btrfs driver killed at any step."""

import random

import pytest

from tests.drivers import test_replication_crashes
from tests.drivers.cifs_replication_sites import CifsSites
from tests.drivers.crashes import changes, killed_at, killed_at_steps
from tests.drivers.replication_backends import CIFS_BACKENDS
from tests.drivers.test_replication_crashes import OPERATIONS
from tests.support import sampling

pytestmark = [
    pytest.mark.usefixtures('no_power_failures'),
    sampling.suite('kills of the replication of CIFS shares', 1),
    pytest.mark.timeout(1800),
]

CASES = [
    (operation, backends)
    for operation, found in OPERATIONS.items()
    for backends in CIFS_BACKENDS
    if backends.style in found.styles
]


class Scene(test_replication_crashes.Scene, CifsSites):
    """A CIFS share with a snapshot and an outdated replica."""


@pytest.fixture
def new_scene(folder_for, values_for):
    """Provide what creates the scene of an operation in a folder."""

    def create(name, operation, backends):
        scene = Scene(
            folder_for('btrfs', 'CIFS') / name,
            has_replica=operation.has_replica,
            **values_for(backends),
        )
        if operation is OPERATIONS['promote_alone']:
            scene.here.make_unreachable()
        return scene

    return create


@pytest.mark.parametrize(
    'name, backends', CASES, ids=lambda value: getattr(value, 'id', value)
)
def test_operation_killed_at_every_step_can_be_repeated(name, backends, new_scene):
    operation = OPERATIONS[name]
    for scene in killed_at_steps(
        lambda folder: new_scene(folder, operation, backends),
        operation.act,
        changes,
        most=1,
        limit=4,
    ):
        test_replication_crashes._finish(scene, operation)
        scene.clean_up()


@pytest.mark.parametrize('seed', range(8))
def test_operation_killed_again_and_again_can_be_repeated(seed, new_scene):
    rng = random.Random(seed)
    name, backends = rng.choice(CASES)
    operation = OPERATIONS[name]
    scene = new_scene('scene', operation, backends)
    for _ in range(rng.randint(2, 5)):
        killed_at(rng.randint(1, 40), lambda: operation.act(scene), changes)
    test_replication_crashes._finish(scene, operation)
    scene.clean_up()
