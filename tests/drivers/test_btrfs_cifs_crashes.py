"""Operations on CIFS shares of the btrfs driver killed at any step."""

from collections.abc import Callable
import json
import os
import pathlib
import random
import signal
import threading

import pytest

from tests.drivers import test_crashes
from tests.drivers.cifs_harness import CifsHarness, ServedCifsHarness
from tests.drivers.conftest import BTRFS
from tests.drivers.crashes import killed_at, killed_at_steps
from tests.support import sampling

pytestmark = [
    pytest.mark.usefixtures('no_power_failures'),
    sampling.suite('kills of CIFS operations', 2),
    pytest.mark.timeout(1800),  # with all of its steps, one takes minutes
]

NewScene = Callable[[pathlib.Path], test_crashes.Scene]


class MachineScene(test_crashes.Scene):
    """CIFS shares of the machine."""

    new_harness = CifsHarness


class ServedScene(test_crashes.Scene):
    """CIFS shares on a share server."""

    def clean_up(self) -> None:
        self.harness.clean_up()


@pytest.fixture(params=['machine', 'server'])
def new_scene(request) -> NewScene:
    """Provide what creates a scene in a folder."""
    if request.param == 'machine':
        options = request.getfixturevalue('btrfs_cifs_options')
        return lambda folder: MachineScene(BTRFS, folder, **options)
    site = request.getfixturevalue('btrfs_cifs_servers')

    class Scene(ServedScene):
        @staticmethod
        def new_harness(name, configure):
            return ServedCifsHarness(name, configure, client=site.client)

    return lambda folder: Scene(BTRFS, folder, **site.options)


@pytest.mark.parametrize('name', test_crashes.OPERATIONS)
def test_operation_killed_at_every_step_can_be_repeated(name, new_scene, tmp_path):
    operation = test_crashes.OPERATIONS[name]
    for scene in killed_at_steps(
        lambda folder: new_scene(tmp_path / folder),
        operation.act,
        most=1,
        least=5,
        limit=2,
    ):
        test_crashes._finish(scene, operation)
        scene.clean_up()


@pytest.mark.parametrize('seed', range(8))
def test_operation_killed_again_and_again_can_be_repeated(seed, new_scene, tmp_path):
    rng = random.Random(seed)
    operation = test_crashes.OPERATIONS[rng.choice(sorted(test_crashes.OPERATIONS))]
    scene = new_scene(tmp_path)
    for _ in range(rng.randint(2, 5)):
        killed_at(rng.randint(1, 120), lambda: operation.act(scene))
    test_crashes._finish(scene, operation)
    scene.clean_up()


@pytest.mark.parametrize('name', test_crashes.OPERATIONS)
def test_operation_succeeds_while_smbd_is_killed(name, new_scene, tmp_path):
    operation = test_crashes.OPERATIONS[name]
    scene = new_scene(tmp_path)
    killing = threading.Timer(
        random.uniform(0, 0.2), os.kill, (_smbd(scene), signal.SIGKILL)
    )
    killing.start()
    operation.act(scene)
    killing.join()
    scene.driver.check_health()
    assert operation.ended(scene)
    scene.clean_up()


def _smbd(scene: test_crashes.Scene) -> int:
    """Return the pid of the smbd that shares what a scene has."""
    backend = scene.driver.backend
    folder = backend.root
    if backend.has_servers:
        folder = folder / 'servers' / scene.harness.served_by.id
    return json.loads((folder / 'nfs' / 'smbd.json').read_text())['pid']
