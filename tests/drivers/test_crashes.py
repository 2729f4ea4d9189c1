"""Operations killed at any step can be repeated."""

from collections.abc import Callable, Iterator
import contextlib
import dataclasses
import pathlib
import random
import signal
import threading
from typing import ClassVar

import pytest

from manila_lite import exception
from manila_lite.share.drivers.base import normalise_export_locations
from manila_lite.share.drivers.btrfs.daemons import processes
from manila_lite.share.drivers.btrfs.driver import BtrfsDriver
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers import content
from tests.drivers.conftest import BTRFS, own_options
from tests.drivers.contract import delete
from tests.drivers.crashes import killed_at, killed_at_steps
from tests.drivers.driver_harness import CTX, DriverHarness, directory_at, names_on
from tests.support import sampling

pytestmark = pytest.mark.usefixtures('no_power_failures')


class Scene:
    """A share with content, a snapshot of it, and later changes."""

    new_harness: ClassVar[Callable[..., DriverHarness]] = DriverHarness

    def __init__(self, name: str, root: pathlib.Path, **options):
        self.root = root
        configuration = Configuration.from_values(own_options(root) | options)
        self.harness = self.new_harness(name, lambda: configuration)
        self.driver = self.harness.start()
        self.share = self.harness.share(size=3)
        self.snapshot = self.harness.snapshot(self.share)
        self.new_share = self.harness.share(size=3)
        self.new_snapshot = self.harness.snapshot(self.share)
        self.driver.create_share(CTX, self.share)
        self._fill()
        self.snapshot_content = self.content(self.share)
        self.driver.create_snapshot(CTX, self.snapshot)
        self._change()
        self.driver.extend_share(self.share, 5)
        self.current_content = self.content(self.share)
        self.export_path = normalise_export_locations(
            self.driver.get_share_status(self.share)['export_locations']
        )[0]['path']
        self.rules = [
            self.harness.rule(self.share, f'10.0.0.{number}', access_level='ro')
            for number in range(3)
        ]
        for item in (self.share, self.snapshot):
            self.set_clients(item, self.rules[0])
        self.create_unmanaged()

    def _fill(self) -> None:
        if self.directory(self.share):
            content.sketch(self.directory(self.share))
        else:
            self.driver.write(self.share.id, 'then')

    def _change(self) -> None:
        if self.directory(self.share):
            content.redraw(self.directory(self.share))
        else:
            self.driver.write(self.share.id, 'now')

    def directory(self, share) -> pathlib.Path | None:
        path = normalise_export_locations(
            self.driver.get_share_status(share)['export_locations']
        )[0]['path']
        return directory_at(self.driver, path)

    def content(self, share):
        directory = self.directory(share)
        return content.describe(directory) if directory else self.driver.read(share.id)

    # Access and unmanaged items

    def set_clients(self, item, *rules) -> None:
        """Grant access to exactly these clients."""
        if item is self.snapshot:
            self.driver.snapshot_update_access(CTX, item, list(rules), [], [])
        else:
            self.driver.update_access(CTX, item, list(rules), [], [], [])

    def change_clients(self, item) -> None:
        """Allow two new clients and deny one."""
        old, *new = self.rules
        if item is self.snapshot:
            self.driver.snapshot_update_access(CTX, item, new, new, [old])
        else:
            self.driver.update_access(CTX, item, new, new, [old], [])

    def clients(self, item) -> set[str]:
        return {to for _, to, _ in self.harness.clients(self.driver, item)}

    def create_unmanaged(self) -> None:
        """Create an unmanaged share and an unmanaged snapshot."""
        other = self.harness.share(size=4)
        exports = normalise_export_locations(self.driver.create_share(CTX, other))
        self.driver.unmanage(other)
        self.unmanaged_share = self.harness.at(exports[0]['path'], size=0)
        taken = self.harness.snapshot(self.share)
        reply = self.driver.create_snapshot(CTX, taken)
        self.driver.unmanage_snapshot(taken)
        self.unmanaged_snapshot = self.harness.snapshot(
            self.share, provider_location=reply['provider_location']
        )

    def manage_again(self) -> Iterator[object]:
        """Manage the share that was just unmanaged; yield size and content."""
        again = self.harness.at(self.export_path)
        yield self.driver.manage_existing(again, {})['size']
        yield self.content(again)

    def snapshot_status(self, snapshot) -> str:
        try:
            return self.driver.get_snapshot_status(snapshot)['status']
        except exception.SnapshotResourceNotFound:
            return 'gone'

    def size(self, share):
        return self.driver.get_share_status(share)['size']

    def status(self, share) -> str:
        try:
            return self.driver.get_share_status(share)['status']
        except exception.ShareResourceNotFound:
            return 'gone'

    def names(self) -> set[str]:
        """Return the names on the back end, whether reported or not."""
        if isinstance(self.driver, BtrfsDriver):
            return names_on(self.driver)
        return {
            path.name.removesuffix('.json')
            for path in self.root.glob('*/*/*')
            if path.name.partition('.')[2] in ('', 'json')
        }

    def clean_up(self) -> None:
        """Remove what is on a back end that other scenes use as well."""
        if isinstance(self.driver, BtrfsDriver):
            with contextlib.suppress(exception.ManageInvalidShare):
                self.driver.manage_existing(self.unmanaged_share, {})
            self.harness.clean_up()


@dataclasses.dataclass
class Operation:
    """An operation, what a kill may leave, and the final state."""

    act: Callable[[Scene], object]
    may_leave: Callable[[Scene], bool]
    ended: Callable[[Scene], bool]


def _new_share_is_whole(scene) -> bool:
    return (
        scene.status(scene.new_share) == 'available'
        and scene.size(scene.new_share) == 3
    )


OPERATIONS = {
    'create': Operation(
        act=lambda s: s.driver.create_share(CTX, s.new_share),
        may_leave=lambda s: (
            s.status(s.new_share) in ('gone', 'error') or _new_share_is_whole(s)
        ),
        ended=_new_share_is_whole,
    ),
    'create_from_snapshot': Operation(
        act=lambda s: s.driver.create_share_from_snapshot(CTX, s.new_share, s.snapshot),
        may_leave=lambda s: (
            s.status(s.new_share) in ('gone', 'error')
            or s.content(s.new_share) == s.snapshot_content
        ),
        ended=lambda s: (
            _new_share_is_whole(s) and s.content(s.new_share) == s.snapshot_content
        ),
    ),
    'delete': Operation(
        act=lambda s: delete(s.driver, s.share),
        may_leave=lambda s: (
            s.status(s.share) in ('gone', 'error')
            or s.content(s.share) == s.current_content
        ),
        ended=lambda s: (
            s.status(s.share) == 'gone'
            and not s.clients(s.share)
            and not {s.share.name, s.share.id} & s.names()
        ),
    ),
    'extend': Operation(
        act=lambda s: s.driver.extend_share(s.share, 9),
        may_leave=lambda s: (
            s.size(s.share) in (5, 9) and s.content(s.share) == s.current_content
        ),
        ended=lambda s: s.size(s.share) == 9,
    ),
    'shrink': Operation(
        act=lambda s: s.driver.shrink_share(s.share, 2),
        may_leave=lambda s: (
            s.size(s.share) in (5, 2) and s.content(s.share) == s.current_content
        ),
        ended=lambda s: s.size(s.share) == 2,
    ),
    'snapshot': Operation(
        act=lambda s: s.driver.create_snapshot(CTX, s.new_snapshot),
        may_leave=lambda s: (
            s.content(s.share) == s.current_content and s.status(s.share) == 'available'
        ),
        ended=lambda s: (
            s.driver.revert_to_snapshot(CTX, s.new_snapshot, [], []) == 5
            and s.content(s.share) == s.current_content
        ),
    ),
    'delete_snapshot': Operation(
        act=lambda s: s.driver.delete_snapshot(CTX, s.snapshot),
        may_leave=lambda s: s.content(s.share) == s.current_content,
        ended=lambda s: (
            not {s.snapshot.name, s.snapshot.id} & s.names()
            and not s.clients(s.snapshot)
        ),
    ),
    'revert': Operation(
        act=lambda s: s.driver.revert_to_snapshot(CTX, s.snapshot, [], []),
        may_leave=lambda s: (
            s.status(s.share) == 'error'
            or s.content(s.share) in (s.snapshot_content, s.current_content)
        ),
        ended=lambda s: (
            s.status(s.share) == 'available'
            and s.size(s.share) == 3
            and s.content(s.share) == s.snapshot_content
            and s.clients(s.share) == {'10.0.0.0'}
        ),
    ),
    **{
        operation: Operation(
            act=lambda s, name=name: s.change_clients(getattr(s, name)),
            may_leave=lambda s, name=name: (
                s.clients(getattr(s, name)) <= {'10.0.0.0', '10.0.0.1', '10.0.0.2'}
            ),
            ended=lambda s, name=name: (
                s.clients(getattr(s, name)) == {'10.0.0.1', '10.0.0.2'}
            ),
        )
        for operation, name in (('access', 'share'), ('snapshot_access', 'snapshot'))
    },
    'sync': Operation(
        act=lambda s: s.set_clients(s.share, *s.rules[1:]),
        may_leave=lambda s: s.clients(s.share) <= {'10.0.0.0', '10.0.0.1', '10.0.0.2'},
        ended=lambda s: s.clients(s.share) == {'10.0.0.1', '10.0.0.2'},
    ),
    'manage': Operation(
        act=lambda s: s.driver.manage_existing(s.unmanaged_share, {}),
        may_leave=lambda s: s.status(s.unmanaged_share) in ('gone', 'available'),
        ended=lambda s: (
            s.size(s.unmanaged_share) == 4
            and s.status(s.unmanaged_share) == 'available'
            and s.driver.manage_existing(s.unmanaged_share, {})['size'] == 4
        ),
    ),
    'unmanage': Operation(
        act=lambda s: s.driver.unmanage(s.share),
        may_leave=lambda s: s.status(s.share) in ('gone', 'available'),
        ended=lambda s: (
            s.status(s.share) == 'gone'
            and list(s.manage_again()) == [5, s.current_content]
        ),
    ),
    'manage_snapshot': Operation(
        act=lambda s: s.driver.manage_existing_snapshot(s.unmanaged_snapshot, {}),
        may_leave=lambda s: (
            s.snapshot_status(s.unmanaged_snapshot) in ('gone', 'available')
        ),
        ended=lambda s: s.driver.get_snapshot_status(s.unmanaged_snapshot)['size'] == 5,
    ),
    'unmanage_snapshot': Operation(
        act=lambda s: s.driver.unmanage_snapshot(s.snapshot),
        may_leave=lambda s: s.snapshot_status(s.snapshot) in ('gone', 'available'),
        ended=lambda s: (
            s.snapshot_status(s.snapshot) == 'gone'
            and s.driver.manage_existing_snapshot(
                s.harness.snapshot(s.share, provider_location=s.snapshot.name), {}
            )['size']
            == 3
        ),
    ),
}


def _finish(scene: Scene, operation: Operation) -> None:
    """Repeat the operation in a new process and check the result."""
    scene.driver = scene.harness.start()
    assert operation.may_leave(scene)
    operation.act(scene)
    assert operation.ended(scene)
    assert not list(scene.root.glob('local/work/*'))


@sampling.enumeration
@pytest.mark.parametrize('name', ['dummy', 'local'])
@pytest.mark.parametrize('operation', OPERATIONS)
def test_operation_killed_at_every_step_can_be_repeated(name, operation, tmp_path):
    operation = OPERATIONS[operation]
    for scene in killed_at_steps(
        lambda folder: Scene(name, tmp_path / folder), operation.act
    ):
        _finish(scene, operation)


@sampling.enumeration
@pytest.mark.parametrize('name', ['dummy', 'local'])
@pytest.mark.parametrize('seed', sampling.seeds(250, 3))
def test_operation_killed_again_and_again_can_be_repeated(name, seed, tmp_path):
    _kill_again_and_again(Scene(name, tmp_path), random.Random(seed))


def _kill_again_and_again(scene: Scene, rng: random.Random) -> None:
    operation = OPERATIONS[rng.choice(sorted(OPERATIONS))]
    for _ in range(rng.randint(2, 5)):
        killed_at(rng.randint(1, 80), lambda: operation.act(scene))
    _finish(scene, operation)


@sampling.enumeration
@pytest.mark.parametrize(
    'operation, mode', [*((name, 'swap') for name in OPERATIONS), ('revert', 'rewrite')]
)
def test_operation_on_btrfs_killed_at_every_step_can_be_repeated(
    operation, mode, btrfs_options, tmp_path
):
    operation = OPERATIONS[operation]
    options = btrfs_options | {'btrfs_revert_mode': mode}
    for scene in killed_at_steps(
        lambda folder: Scene(BTRFS, tmp_path / folder, **options),
        operation.act,
        most=1,
        least=5,
    ):
        _finish(scene, operation)
        scene.clean_up()


@sampling.enumeration
@pytest.mark.parametrize('seed', sampling.seeds(100, 2))
def test_operation_on_btrfs_killed_again_and_again_can_be_repeated(
    seed, btrfs_options, tmp_path
):
    scene = Scene(BTRFS, tmp_path, **btrfs_options)
    _kill_again_and_again(scene, random.Random(seed))
    scene.clean_up()


KILLED = [('server',), ('bus',), ('supervisor',), ('supervisor', 'server')]


@sampling.enumeration
@pytest.mark.parametrize('daemons', KILLED, ids='-'.join)
@pytest.mark.parametrize('operation', sampling.sample(OPERATIONS, 1))
def test_operation_on_btrfs_succeeds_while_daemons_are_killed(
    operation, daemons, btrfs_options, tmp_path
):
    operation = OPERATIONS[operation]
    scene = Scene(BTRFS, tmp_path, **btrfs_options)
    folder = pathlib.Path(btrfs_options['btrfs_root']) / 'nfs'

    def kill():
        for daemon in daemons:
            record = folder / f'{daemon}.json'
            assert processes.end(record, signal.SIGKILL, 60)
        # As the next report of the share service does.
        scene.driver.backend.daemons.keep_supervised()

    killing = threading.Timer(random.uniform(0, 0.02), kill)
    killing.start()
    operation.act(scene)
    killing.join()
    assert operation.ended(scene)
    assert processes.is_running(folder / 'supervisor.json')
    scene.clean_up()
