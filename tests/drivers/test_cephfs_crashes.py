"""Operations on CephFS that are killed at any call of the cluster, or late."""

from collections.abc import Callable
import contextlib
import dataclasses

import pytest

from manila_lite import exception
from manila_lite.context import FencingToken, fenced
from manila_lite.share.drivers.cephfs.cluster import GATEWAYS
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers.ceph_harness import CephHarness, CephNfsHarness
from tests.drivers.contract import delete
from tests.drivers.crashes import interrupted_at, killed_at_steps
from tests.drivers.driver_harness import CTX
from tests.support import ceph as ceph_support, sampling
from tests.support.processes import wait_until

pytestmark = ceph_support.limited


def calls_ceph(event: str, args: tuple) -> bool:
    return event == 'manila_lite.ceph'


def changes_ceph(event: str, args: tuple) -> bool:
    """Leave out how often a call looks whether gateways have done something."""
    return calls_ceph(event, args) and f'/{GATEWAYS}/' not in args[0]


class Scene:
    """A share with a snapshot and a user, and items that are not managed."""

    def __init__(self, cluster, gateways=None):
        options = gateways.options if gateways else cluster.options()
        configuration = Configuration.from_values(options)
        kind = CephNfsHarness if gateways else CephHarness
        self.harness = kind('cephfs', lambda: configuration)
        self.harness.gateways = gateways
        self.driver = self.harness.start()
        self.share = self.harness.share(size=3)
        self.driver.create_share(CTX, self.share)
        self.snapshot = self.harness.snapshot(self.share)
        self.driver.create_snapshot(CTX, self.snapshot)
        self.new_share = self.harness.share(size=3)
        self.new_snapshot = self.harness.snapshot(self.share)
        self.path = self.path_of(self.share)
        self.old, self.new = (
            self.harness.rule(self.share, name) for name in ('10.0.0.1', '10.0.0.2')
        )
        self.driver.apply_access(CTX, self.share, [self.old], [self.old])

    def create_unmanaged(self):
        other = self.harness.share(size=4)
        self.driver.create_share(CTX, other)
        self.unmanaged = self.harness.at(self.path_of(other))
        self.driver.unmanage(other)

    def path_of(self, share) -> str:
        return self.driver.backend.get_share(share)['path']

    def restart(self):
        self.driver = self.harness.start()

    def status(self, share) -> str:
        try:
            return self.driver.get_share_status(share)['status']
        except exception.ShareResourceNotFound:
            return 'gone'

    def snapshot_status(self, snapshot) -> str:
        try:
            return self.driver.get_snapshot_status(snapshot)['status']
        except exception.SnapshotResourceNotFound:
            return 'gone'

    def size(self, share) -> int:
        return self.driver.get_share_status(share)['size']

    def users(self) -> set[str]:
        return {to for _, to, _ in self.harness.clients(self.driver, self.share)}

    def subvolumes(self) -> set[str]:
        found = self.driver.backend.ask('subvolume ls')
        return {one['name'] for one in found}

    def snapshots(self) -> set[str]:
        found = self.driver.backend.ask(
            'subvolume snapshot ls', sub_name=self.share.name
        )
        return {one['name'] for one in found}

    def keys(self) -> set[str]:
        """Return the names in the records."""
        keys = self.driver.backend.records.get_all('')
        return {name for key in keys for name in key.split(':')[-1].split('@')}

    def gateway_users(self) -> set[str]:
        """Return the Ceph users by which gateways use the share."""
        found = self.driver.backend.cluster.mon('auth ls')['auth_dump']
        return {one['entity'] for one in found if self.share.name in one['entity']}

    def clone(self):
        """Create the new share, until its clone is complete."""
        reply = self.driver.create_share_from_snapshot(
            CTX, self.new_share, self.snapshot
        )
        while isinstance(reply, dict) and reply['status'] != 'available':
            reply = self.driver.get_share_status(self.new_share)

    def unmanage_and_manage(self):
        path = self.path_of(self.share)
        self.driver.unmanage(self.share)
        again = self.harness.at(path)
        return self.driver.manage_existing(again, {})

    def clean_up(self):
        for share in (*self.harness.shares, self.share):
            with contextlib.suppress(exception.DriverError):
                self.driver.delete_share(CTX, share)


@dataclasses.dataclass
class Operation:
    """An operation, what a kill may leave, and the final state."""

    act: Callable[[Scene], object]
    may_leave: Callable[[Scene], bool]
    ended: Callable[[Scene], bool]
    prepare: Callable[[Scene], object] = lambda scene: None


def _is_new_share_whole(scene) -> bool:
    return (
        scene.status(scene.new_share) == 'available'
        and scene.size(scene.new_share) == 3
    )


OPERATIONS = {
    'create': Operation(
        act=lambda s: s.driver.create_share(CTX, s.new_share),
        may_leave=lambda s: (
            s.status(s.new_share) in ('gone', 'error') or _is_new_share_whole(s)
        ),
        ended=_is_new_share_whole,
    ),
    'create_from_snapshot': Operation(
        act=lambda s: s.clone(),
        may_leave=lambda s: (
            s.status(s.new_share) in ('gone', 'error', 'creating_from_snapshot')
            or _is_new_share_whole(s)
        ),
        ended=_is_new_share_whole,
    ),
    'delete': Operation(
        prepare=lambda s: s.driver.delete_snapshot(CTX, s.snapshot),
        act=lambda s: delete(s.driver, s.share),
        may_leave=lambda s: s.status(s.share) in ('gone', 'error', 'available'),
        ended=lambda s: (
            s.status(s.share) == 'gone'
            and s.share.name not in s.subvolumes() | s.keys()
        ),
    ),
    'extend': Operation(
        act=lambda s: s.driver.extend_share(s.share, 9),
        may_leave=lambda s: s.size(s.share) in (3, 9),
        ended=lambda s: (
            s.size(s.share) == 9 and s.driver.backend.get_share(s.share)['size'] == 9
        ),
    ),
    'shrink': Operation(
        act=lambda s: s.driver.shrink_share(s.share, 2),
        may_leave=lambda s: s.size(s.share) in (3, 2),
        ended=lambda s: (
            s.size(s.share) == 2 and s.driver.backend.get_share(s.share)['size'] == 2
        ),
    ),
    'snapshot': Operation(
        act=lambda s: s.driver.create_snapshot(CTX, s.new_snapshot),
        may_leave=lambda s: (
            s.snapshot_status(s.new_snapshot) in ('gone', 'error', 'available')
        ),
        ended=lambda s: s.snapshot_status(s.new_snapshot) == 'available',
    ),
    'revert': Operation(
        prepare=lambda s: s.driver.extend_share(s.share, 9),
        act=lambda s: s.driver.revert_to_snapshot(CTX, s.snapshot, [], []),
        may_leave=lambda s: s.status(s.share) in ('available', 'error'),
        ended=lambda s: s.status(s.share) == 'available' and s.size(s.share) == 3,
    ),
    'delete_snapshot': Operation(
        act=lambda s: s.driver.delete_snapshot(CTX, s.snapshot),
        may_leave=lambda s: s.status(s.share) == 'available',
        ended=lambda s: s.snapshot.name not in s.snapshots() | s.keys(),
    ),
    'access': Operation(
        act=lambda s: s.driver.apply_access(CTX, s.share, [s.new], [s.new], [s.old]),
        may_leave=lambda s: s.users() <= {s.old['access_to'], s.new['access_to']},
        ended=lambda s: s.users() == {s.new['access_to']},
    ),
    'sync': Operation(
        act=lambda s: s.driver.apply_access(CTX, s.share, [s.new]),
        may_leave=lambda s: s.users() <= {s.old['access_to'], s.new['access_to']},
        ended=lambda s: s.users() == {s.new['access_to']},
    ),
    'manage': Operation(
        prepare=lambda s: s.create_unmanaged(),
        act=lambda s: s.driver.manage_existing(s.unmanaged, {'size': '5'}),
        may_leave=lambda s: s.status(s.unmanaged) in ('gone', 'available'),
        ended=lambda s: s.size(s.unmanaged) == 5,
    ),
    'unmanage': Operation(
        act=lambda s: s.driver.unmanage(s.share),
        may_leave=lambda s: s.status(s.share) in ('gone', 'available'),
        ended=lambda s: (
            s.status(s.share) == 'gone'
            and s.driver.manage_existing(s.harness.at(s.path), {})['size'] == 3
        ),
    ),
    'unmanage_snapshot': Operation(
        act=lambda s: s.driver.unmanage_snapshot(s.snapshot),
        may_leave=lambda s: s.snapshot_status(s.snapshot) in ('gone', 'available'),
        ended=lambda s: (
            s.driver.manage_existing_snapshot(
                s.harness.snapshot(s.share, provider_location=s.snapshot.name), {}
            )['size']
            == 3
        ),
    ),
}


@sampling.enumeration
@pytest.mark.parametrize('name', sampling.sample(OPERATIONS, 2))
def test_operation_killed_at_every_call_can_be_repeated(name, ceph):
    operation = OPERATIONS[name]

    def build(_):
        scene = Scene(ceph)
        operation.prepare(scene)
        return scene

    for scene in killed_at_steps(build, operation.act, calls_ceph, most=1, least=3):
        scene.restart()
        assert operation.may_leave(scene)
        operation.act(scene)
        assert operation.ended(scene)
        scene.clean_up()


def _may_have_users(scene, *users) -> bool:
    """Tell whether the gateways come to let in no others, all the same."""

    def is_so():
        with contextlib.suppress(AssertionError):
            return scene.users() <= {rule['access_to'] for rule in users}
        return False

    return wait_until(is_so, 'gateways let in no others', 10)


NFS_OPERATIONS = {
    'access': dataclasses.replace(
        OPERATIONS['access'], may_leave=lambda s: _may_have_users(s, s.old, s.new)
    ),
    'sync': dataclasses.replace(
        OPERATIONS['sync'], may_leave=lambda s: _may_have_users(s, s.old, s.new)
    ),
    'deny all': Operation(
        act=lambda s: s.driver.apply_access(CTX, s.share, [], [], [s.old]),
        may_leave=lambda s: _may_have_users(s, s.old),
        ended=lambda s: s.users() == set() and not s.gateway_users(),
    ),
    'delete': Operation(
        prepare=lambda s: s.driver.delete_snapshot(CTX, s.snapshot),
        act=lambda s: delete(s.driver, s.share),
        may_leave=lambda s: _may_have_users(s, s.old),
        ended=lambda s: (
            s.status(s.share) == 'gone'
            and s.share.name not in s.subvolumes() | s.keys()
            and not s.gateway_users()
        ),
    ),
}


@sampling.enumeration
@pytest.mark.parametrize('name', sampling.sample(NFS_OPERATIONS, 1))
def test_change_of_exports_killed_at_every_call_can_be_repeated(name, ceph, gateways):
    operation = NFS_OPERATIONS[name]

    def build(_):
        scene = Scene(ceph, gateways)
        operation.prepare(scene)
        return scene

    for scene in killed_at_steps(build, operation.act, changes_ceph, most=1, least=3):
        scene.restart()
        assert operation.may_leave(scene)
        operation.act(scene)
        assert operation.ended(scene)
        scene.clean_up()


@dataclasses.dataclass
class Late:
    """What a worker does late, what its successor has done, and the end."""

    act: Callable[[Scene], object]
    successor: Callable[[Scene], object]
    ended: Callable[[Scene], bool]


def _create_and_give_away(create):
    """Create the new share and let it be managed by another name."""

    def act(scene):
        create(scene)
        path = scene.path_of(scene.new_share)
        scene.driver.unmanage(scene.new_share)
        scene.driver.manage_existing(scene.harness.at(path), {})

    return act


def _create_and_delete(create):
    def act(scene):
        create(scene)
        scene.driver.delete_share(CTX, scene.new_share)

    return act


def _snapshot(scene):
    scene.driver.create_snapshot(CTX, scene.new_snapshot)


def _snapshot_and_delete(scene):
    _snapshot(scene)
    scene.driver.delete_snapshot(CTX, scene.new_snapshot)


def _snapshot_and_give_away(scene):
    _snapshot(scene)
    scene.driver.unmanage_snapshot(scene.new_snapshot)
    scene.driver.manage_existing_snapshot(
        scene.harness.snapshot(scene.share, provider_location=scene.new_snapshot.name),
        {},
    )


def _create(scene):
    scene.driver.create_share(CTX, scene.new_share)


def _is_new_share_gone(scene) -> bool:
    return (
        scene.status(scene.new_share) == 'gone'
        and scene.new_share.name not in scene.subvolumes() | scene.keys()
    )


def _is_new_share_kept(scene) -> bool:
    """Tell whether its subvolume is that of the other share, unharmed."""
    owner = scene.driver.backend.records.get(f'owner:{scene.new_share.name}')
    return (
        scene.status(scene.new_share) == 'gone'
        and owner is not None
        and scene.new_share.name in scene.subvolumes()
    )


LATE = {
    'create, deleted': Late(_create, _create_and_delete(_create), _is_new_share_gone),
    'create, given away': Late(
        _create, _create_and_give_away(_create), _is_new_share_kept
    ),
    'clone, deleted': Late(
        Scene.clone, _create_and_delete(Scene.clone), _is_new_share_gone
    ),
    'clone, given away': Late(
        Scene.clone, _create_and_give_away(Scene.clone), _is_new_share_kept
    ),
    'snapshot, deleted': Late(
        _snapshot,
        _snapshot_and_delete,
        lambda s: s.new_snapshot.name not in s.snapshots() | s.keys(),
    ),
    'snapshot, given away': Late(
        _snapshot,
        _snapshot_and_give_away,
        lambda s: s.new_snapshot.name in s.snapshots(),
    ),
    'delete, done': Late(
        lambda s: delete(s.driver, s.share),
        lambda s: delete(s.driver, s.share),
        lambda s: s.status(s.share) == 'gone',
    ),
    'unmanage, managed again': Late(
        lambda s: s.driver.unmanage(s.share),
        Scene.unmanage_and_manage,
        lambda s: s.status(s.share) == 'gone',
    ),
}


@sampling.enumeration
@pytest.mark.parametrize('name', sampling.sample(LATE, 1))
def test_late_worker_spoils_nothing_wherever_it_was_paused(name, ceph):
    """Its successor ended the work, and then somebody used the result."""
    late = LATE[name]
    step = 0
    steps = sampling.sample(range(1, 12), 2)
    for step in steps:
        scene = Scene(ceph)

        def act(scene=scene):
            with (
                fenced(FencingToken('resource', 1)),
                contextlib.suppress(exception.DriverError),
            ):
                late.act(scene)

        def interrupt(scene=scene):
            with fenced(FencingToken('resource', 2)):
                late.successor(scene)

        was_paused = interrupted_at(step, act, interrupt, calls_ceph)
        scene.restart()
        assert not was_paused or late.ended(scene), f'paused at call {step}'
        scene.clean_up()
