"""Replication operations killed at any step can be repeated."""

from collections.abc import Callable
import contextlib
import dataclasses
import random
import uuid

import pytest

from manila_lite import exception
from manila_lite.share.drivers.cephfs.records import TOKEN
from manila_lite.share.drivers.cephfs.snapshots import list_snapshots
from tests.drivers.ceph_replication_sites import CephSites
from tests.drivers.crashes import (
    changes,
    killed_at,
    killed_at_steps,
    nfs_servers_killed,
)
from tests.drivers.driver_harness import CTX
from tests.drivers.replication_backends import BACKENDS
from tests.drivers.replication_sites import Sites
from tests.support import sampling
from tests.support.ceph import limited

pytestmark = [
    pytest.mark.usefixtures('no_power_failures'),
    sampling.suite('kills of replicating back ends', 8),
]


class Scene(Sites):
    """A share with a snapshot and an outdated replica."""

    def __init__(self, folder, driver, style, has_replica=True, **values):
        folder.mkdir()
        super().__init__(folder, driver, style, names=('here', 'there'), **values)
        self.folder = folder
        self.write('then')
        self.saved = self.snapshot()
        if has_replica:
            self.create_in_sync()
            self.snapshots[self.saved][0]['there'] = 'available'
            self.new = self.accepted_snapshot()
            self.copied = self.snapshot()
        self.write('now')

    def accepted_snapshot(self):
        """Return a snapshot that was accepted but not created yet."""
        id = str(uuid.uuid4())
        self.snapshots[id] = ({'here': 'creating', 'there': 'creating'}, 1)
        return id

    def start(self):
        for site in self.sites:
            if not site.is_unreachable:
                site.restart()

    def taken(self, id, site):
        try:
            return site.driver.get_snapshot_status(self.instance(id, site))['status']
        except exception.SnapshotResourceNotFound:
            return 'gone'

    def leftovers(self, *items):
        """Return what is left of deleted things, except partial files."""
        words = [word for item in items for word in (item.id, item.name)]
        return [
            path
            for path in self.folder.rglob('*')
            if path.name.partition('.')[2] in ('', 'json')
            and any(word in path.name for word in words)
        ]

    def writers(self):
        """Return how many replicas let clients write."""
        return sum('rw' in self.levels(site) for site in self.sites if site.state)

    def caught_up(self, site):
        """Update a replica and compare its content to the active one's."""
        if site.state != 'active':
            self.update(site)
        return site.state in ('active', 'in_sync') and self.read(site) == self.read(
            self.active
        )


class CephScene(Scene, CephSites):
    """The same on back ends of Ceph."""

    def leftovers(self, *items):
        words = {word for item in items for word in (item.id, item.name)}
        return [
            name
            for site in self.sites
            if not site.is_unreachable
            for name in self._names_at(site.driver.backend)
            if any(word in name for word in words)
        ]

    def _names_at(self, backend):
        """Yield what the records and Ceph know; tokens are kept."""
        yield from (
            key for key in backend.records.get_all('') if not key.startswith(TOKEN)
        )
        for one in backend.ask('subvolume ls'):
            yield one['name']
            yield from list_snapshots(backend, one['name'])


@dataclasses.dataclass
class Operation:
    """An operation and its final state."""

    act: Callable[[Scene], object]
    ended: Callable[[Scene], bool]
    has_replica: bool = True
    styles: tuple[str, ...] = ('writable', 'readable', 'dr')
    expected_content: str = 'now'


def _create(s):
    s.there.state = 'out_of_sync'
    s.create()


def _drop(s):
    with contextlib.suppress(exception.SnapshotResourceNotFound):
        s.delete_snapshot(s.copied)
        s.update_snapshot(s.copied)


def _lose_and_promote(s):
    if not s.here.is_unreachable:
        s.here.make_unreachable()
    s.promote()


def _promoted(s):
    s.write('on')
    return (
        s.writers() == 1
        and s.levels() == {'rw'}
        and s.caught_up(s.here)
        and s.read(s.here) == 'on'
    )


def _promoted_alone(s):
    assert s.read() == 'then'
    s.here.make_reachable()
    return _promoted(s)


OPERATIONS = {
    'create': Operation(
        act=_create,
        has_replica=False,
        ended=lambda s: (
            s.caught_up(s.there)
            and s.read() == 'now'
            and s.taken(s.saved, s.there) == 'available'
        ),
    ),
    'delete': Operation(
        act=lambda s: s.delete(),
        ended=lambda s: (
            not s.levels()
            and not s.leftovers(
                s.share_for(s.there), *(s.instance(id, s.there) for id in s.snapshots)
            )
        ),
    ),
    'update': Operation(
        act=lambda s: s.update(),
        styles=('readable', 'dr'),
        ended=lambda s: s.there.state != 'in_sync' or s.read() == 'now',
    ),
    'promote': Operation(
        act=lambda s: s.promote(), styles=('readable', 'dr'), ended=_promoted
    ),
    'promote_alone': Operation(
        act=_lose_and_promote, styles=('readable', 'dr'), ended=_promoted_alone
    ),
    'snapshot': Operation(
        act=lambda s: s.take_snapshot(s.new),
        ended=lambda s: (
            s.taken(s.new, s.here) == 'available'
            and (
                s.snapshots[s.new][0]['there'] == 'available'
                or s.update_snapshot(s.new)[0]['status'] == 'available'
            )
            and s.taken(s.new, s.there) == 'available'
        ),
    ),
    'poll': Operation(
        act=lambda s: s.update_snapshot(s.copied),
        styles=('readable', 'dr'),
        ended=lambda s: s.taken(s.copied, s.there) == 'available',
    ),
    'drop': Operation(
        act=_drop,
        ended=lambda s: (
            {s.taken(s.copied, site) for site in s.sites} == {'gone'}
            and not s.leftovers(*(s.instance(s.copied, site) for site in s.sites))
        ),
    ),
    'extend': Operation(
        act=lambda s: s.here.driver.extend_share(s.share_for(s.here), 3),
        ended=lambda s: (
            s.status(s.here)['size'] == 3
            and s.caught_up(s.there)
            and s.status()['size'] == 3
        ),
    ),
    'revert': Operation(
        act=lambda s: s.revert(s.copied),
        expected_content='',
        ended=lambda s: s.read(s.here) == 'then' and s.caught_up(s.there),
    ),
}
_MOST_ON_CEPH = 8
"""Operations there take a hundred steps, and each scene some seconds."""

ON_CEPH = [limited, sampling.suite('kills of replicas on cephfs', 1)]

CASES = [
    (operation, backends)
    for backends in BACKENDS
    if not backends.servers or backends.driver == 'btrfs'
    for operation in OPERATIONS
    if backends.style in OPERATIONS[operation].styles
]


def _finish(scene: Scene, operation: Operation) -> None:
    """Repeat the operation in new processes and check the result."""
    scene.start()
    if operation.expected_content and not scene.here.is_unreachable:
        assert scene.read(scene.here) == operation.expected_content
    if scene.style != 'writable':
        assert scene.writers() <= 1
    operation.act(scene)
    assert operation.ended(scene)
    assert not list(scene.folder.glob('*/work/*'))


def _scene(folder, case, values_for) -> Scene:
    name, backends = case
    operation = OPERATIONS[name]
    kind = CephScene if backends.driver == 'cephfs' else Scene
    scene = kind(folder, has_replica=operation.has_replica, **values_for(backends))
    if operation is OPERATIONS['promote_alone']:
        scene.here.make_unreachable()
    return scene


@sampling.enumeration
@pytest.mark.parametrize(
    'case',
    [
        pytest.param(case, marks=ON_CEPH if case[1].driver == 'cephfs' else [])
        for case in CASES
    ],
    ids=lambda case: f'{case[0]}-{case[1].id}',
)
def test_operation_killed_at_every_step_can_be_repeated(case, folder_for, values_for):
    operation = OPERATIONS[case[0]]
    top = folder_for(case[1].driver)
    for scene in killed_at_steps(
        lambda folder: _scene(top / folder, case, values_for),
        operation.act,
        changes,
        most=1,
        limit=_MOST_ON_CEPH if case[1].driver == 'cephfs' else None,
    ):
        _finish(scene, operation)
        scene.clean_up()


@sampling.enumeration
@pytest.mark.parametrize(
    'name',
    [
        pytest.param(name, marks=ON_CEPH if name == 'cephfs' else [])
        for name in sorted({case[1].driver for case in CASES})
    ],
)
@pytest.mark.parametrize('seed', sampling.seeds(150, 2))
def test_operation_killed_again_and_again_can_be_repeated(
    name, seed, folder_for, values_for
):
    rng = random.Random(seed)
    case = rng.choice([case for case in CASES if case[1].driver == name])
    operation = OPERATIONS[case[0]]
    scene = _scene(folder_for(name) / 'scene', case, values_for)
    for _ in range(rng.randint(2, 5)):
        killed_at(rng.randint(1, 40), lambda: operation.act(scene), changes)
    _finish(scene, operation)


@sampling.enumeration
@pytest.mark.parametrize(
    'operation',
    sampling.sample(
        [case[0] for case in CASES if case[1:] == ('btrfs', 'readable', '')], 2
    ),
)
def test_operation_succeeds_while_the_nfs_servers_are_killed(
    operation, folder_for, options_for
):
    case = (operation, 'btrfs', 'readable', '')
    scene = _scene(folder_for('btrfs') / 'scene', case, options_for)
    with nfs_servers_killed(scene.folder):
        OPERATIONS[operation].act(scene)
    assert OPERATIONS[operation].ended(scene)


@sampling.enumeration
def test_share_with_a_half_created_replica_can_be_deleted(tmp_path):
    for scene in killed_at_steps(
        lambda folder: Scene(tmp_path / folder, 'dummy', 'dr', False), _create, changes
    ):
        scene.start()
        scene.there.state = 'error'
        scene.delete()
        scene.there.state = None
        scene.here.driver.delete_snapshot(CTX, scene.instance(scene.saved, scene.here))
        scene.here.driver.delete_share(CTX, scene.share_for(scene.here))
        assert not scene.leftovers(
            scene.share_for(scene.here), scene.share_for(scene.there)
        )
        assert not list(scene.folder.rglob(f'{scene.share_id}.json'))
