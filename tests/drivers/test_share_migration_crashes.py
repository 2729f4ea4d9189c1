"""Migrations of shares killed at any step can be repeated."""

from collections.abc import Callable
import dataclasses
import random

import pytest

from manila_lite import exception
from tests.drivers.crashes import (
    changes,
    killed_at,
    killed_at_steps,
    nfs_servers_killed,
)
from tests.drivers.share_migration_contract import KINDS, SharePair
from tests.support import sampling

pytestmark = [
    pytest.mark.usefixtures('no_power_failures'),
    sampling.suite('kills of share migrations', 2),
    # Each of a hundred steps needs two NFS servers of its own.
    pytest.mark.timeout(1200),
]


class Scene(SharePair):
    """A share in the phase of its migration that an operation is for."""

    def __init__(self, folder, kind, operation):
        super().__init__(folder, kind)
        self.before = self.clients()
        operation.prepare(self)

    def is_as_before(self):
        """Return whether the source serves its clients, and is alone."""
        return (
            self.has_share(self.source, self.share)
            and self.has_snapshot(self.source, self.snapshot)
            and self.clients() == self.before
            and not self.left_at_destination()
            and not self.traces()
        )

    def is_moved(self):
        return (
            self.has_share(self.target, self.moved)
            and self.read() == 'last'
            and self.has_snapshot(self.target, self.moved_snapshot)
            and not self.left_at_source()
            and not self.traces()
        )


def _copied(scene):
    scene.copy()
    scene.write('last')


@dataclasses.dataclass
class Operation:
    """An operation, what is done before it, and the final state."""

    act: Callable[[Scene], object]
    ended: Callable[[Scene], bool]
    prepare: Callable[[Scene], object] = lambda scene: scene.write('last')


def _migrated(scene):
    scene.copy()
    scene.complete()
    return scene.is_moved()


OPERATIONS = {
    'copy': Operation(act=SharePair.copy, ended=_migrated),
    'complete': Operation(
        prepare=_copied, act=SharePair.complete, ended=Scene.is_moved
    ),
    'cancel': Operation(
        prepare=_copied,
        act=lambda scene: scene.call('cancel'),
        ended=Scene.is_as_before,
    ),
}


def _finish(scene: Scene, operation: Operation) -> None:
    """Repeat the operation in new processes and check the result."""
    scene.restart()
    contents = {
        scene.users(*place).read()
        for place in ((scene.source, scene.share), (scene.target, scene.moved))
        if scene.has_share(*place)
    }
    # The driver dummy shows what it has begun to copy.
    assert contents - {''} == {'last'}
    operation.act(scene)
    assert operation.ended(scene)


@sampling.enumeration
@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('name', OPERATIONS)
def test_operation_killed_at_every_step_can_be_repeated(kind, name, folder_for):
    operation = OPERATIONS[name]
    top = folder_for(*KINDS[kind])
    for scene in killed_at_steps(
        lambda folder: Scene(top / folder, kind, operation),
        operation.act,
        changes,
        most=1,
    ):
        _finish(scene, operation)
        scene.clean_up()


@sampling.enumeration
@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('seed', sampling.seeds(60, 1))
def test_operation_killed_again_and_again_can_be_repeated(kind, seed, folder_for):
    rng = random.Random(seed)
    operation = OPERATIONS[rng.choice(sorted(OPERATIONS))]
    scene = Scene(folder_for(*KINDS[kind]) / 'scene', kind, operation)
    for _ in range(rng.randint(2, 5)):
        killed_at(rng.randint(1, 60), lambda: operation.act(scene), changes)
    _finish(scene, operation)
    scene.clean_up()


@sampling.enumeration
@pytest.mark.parametrize('kind', ['btrfs', 'btrfs-servers'])
@pytest.mark.parametrize('name', OPERATIONS)
def test_operation_succeeds_while_the_nfs_servers_are_killed(kind, name, folder_for):
    folder = folder_for(*KINDS[kind]) / 'scene'
    scene = Scene(folder, kind, OPERATIONS[name])
    with nfs_servers_killed(folder):
        OPERATIONS[name].act(scene)
    assert OPERATIONS[name].ended(scene)
    scene.clean_up()


@sampling.enumeration
@pytest.mark.parametrize('kind', ['btrfs', 'btrfs-cifs'])
def test_clients_of_the_source_are_back_when_the_second_phase_fails(kind, folder_for):
    top = folder_for(*KINDS[kind])
    for scene in killed_at_steps(
        lambda folder: Scene(top / folder, kind, OPERATIONS['complete']),
        SharePair.complete,
        changes,
        most=1,
    ):
        scene.restart()
        if not scene.has_share(scene.target, scene.moved):
            (pool,) = scene.target.backend.pools.values()
            pool.catalog.arriving.drop(scene.moved.name)
            with pytest.raises(exception.ShareBackendException):
                scene.complete()
            assert scene.clients() == scene.before
            scene.call('cancel')
            assert scene.is_as_before()
        scene.clean_up()
