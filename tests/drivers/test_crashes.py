"""Killed at any step, a verb leaves what its repetition can finish."""

from collections.abc import Callable, Iterator
import dataclasses
import itertools
import os
import pathlib
import random

import pytest

from manila_lite import exception
from manila_lite.share.drivers.base import normalise_export_locations
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers import content
from tests.drivers.conftest import own_options
from tests.drivers.crashes import killed_at
from tests.drivers.driver_harness import CTX
from tests.drivers.driver_harness import DriverHarness


@pytest.fixture(autouse=True)
def no_power_failures(monkeypatch):
    """A kill takes nothing from the kernel; waiting for disks is slow."""
    monkeypatch.setattr(os, 'sync', lambda: None)
    monkeypatch.setattr(os, 'fsync', lambda file: None)


class Scene:
    """A share with content, a snapshot of it, and changes made since."""

    def __init__(self, name: str, root: pathlib.Path):
        self.root = root
        configuration = Configuration.from_values(own_options(root))
        self.subject = DriverHarness(name, lambda: configuration)
        self.driver = self.subject.start()
        self.share = self.subject.share(size=3)
        self.snapshot = self.subject.snapshot(self.share)
        self.new_share = self.subject.share(size=3)
        self.new_snapshot = self.subject.snapshot(self.share)
        self.driver.create_share(CTX, self.share)
        self._fill()
        self.then = self.content(self.share)
        self.driver.create_snapshot(CTX, self.snapshot)
        self._change()
        self.driver.extend_share(self.share, 5)
        self.now = self.content(self.share)
        self.where = normalise_export_locations(
            self.driver.get_share_status(self.share)['export_locations']
        )[0]['path']
        self.rules = [
            self.subject.rule(
                self.share, f'10.0.0.{number}', access_level='ro'
            )
            for number in range(3)
        ]
        for thing in (self.share, self.snapshot):
            self.let_in(thing, self.rules[0])
        self.let_go()

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
        return pathlib.Path(path) if os.path.isdir(path) else None

    def content(self, share):
        directory = self.directory(share)
        return (
            content.describe(directory)
            if directory
            else self.driver.read(share.id)
        )

    # Who may use what, and what was let go

    def let_in(self, thing, *rules) -> None:
        """Have exactly these clients use a share or snapshot."""
        if thing is self.snapshot:
            self.driver.snapshot_update_access(CTX, thing, list(rules), [], [])
        else:
            self.driver.update_access(CTX, thing, list(rules), [], [], [])

    def change_clients(self, thing) -> None:
        """Let in two new ones, and shut out one."""
        old, *new = self.rules
        if thing is self.snapshot:
            self.driver.snapshot_update_access(CTX, thing, new, new, [old])
        else:
            self.driver.update_access(CTX, thing, new, new, [old], [])

    def clients(self, thing) -> set[str]:
        return {to for _, to, _ in self.subject.clients(self.driver, thing)}

    def let_go(self) -> None:
        """Have a share and a snapshot that are to be managed."""
        other = self.subject.share(size=4)
        exports = normalise_export_locations(
            self.driver.create_share(CTX, other)
        )
        self.driver.unmanage(other)
        self.found = self.subject.at(exports[0]['path'], size=0)
        taken = self.subject.snapshot(self.share)
        answer = self.driver.create_snapshot(CTX, taken)
        self.driver.unmanage_snapshot(taken)
        self.found_snapshot = self.subject.snapshot(
            self.share, provider_location=answer['provider_location']
        )

    def lost(self) -> Iterator[object]:
        """Manage what has just been let go; fails if it is not there."""
        again = self.subject.at(self.where)
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
        """What is on the back end, whether the driver tells or not."""
        return {
            path.name.removesuffix('.json')
            for path in self.root.glob('*/*/*')
            if path.name.partition('.')[2] in ('', 'json')
        }


@dataclasses.dataclass
class Verb:
    """What is done, what a kill may leave, what is there in the end."""

    act: Callable[[Scene], object]
    may_leave: Callable[[Scene], bool]
    ended: Callable[[Scene], bool]


def _new_share_is_whole(scene) -> bool:
    return (
        scene.status(scene.new_share) == 'available'
        and scene.size(scene.new_share) == 3
    )


VERBS = {
    'create': Verb(
        act=lambda s: s.driver.create_share(CTX, s.new_share),
        may_leave=lambda s: (
            s.status(s.new_share) in ('gone', 'error')
            or _new_share_is_whole(s)
        ),
        ended=_new_share_is_whole,
    ),
    'create_from_snapshot': Verb(
        act=lambda s: s.driver.create_share_from_snapshot(
            CTX, s.new_share, s.snapshot
        ),
        may_leave=lambda s: (
            s.status(s.new_share) in ('gone', 'error')
            or s.content(s.new_share) == s.then
        ),
        ended=lambda s: (
            _new_share_is_whole(s) and s.content(s.new_share) == s.then
        ),
    ),
    'delete': Verb(
        act=lambda s: s.driver.delete_share(CTX, s.share),
        may_leave=lambda s: (
            s.status(s.share) in ('gone', 'error')
            or s.content(s.share) == s.now
        ),
        ended=lambda s: (
            s.status(s.share) == 'gone'
            and not s.clients(s.share)
            and not {s.share.name, s.share.id} & s.names()
        ),
    ),
    'extend': Verb(
        act=lambda s: s.driver.extend_share(s.share, 9),
        may_leave=lambda s: (
            s.size(s.share) in (5, 9) and s.content(s.share) == s.now
        ),
        ended=lambda s: s.size(s.share) == 9,
    ),
    'shrink': Verb(
        act=lambda s: s.driver.shrink_share(s.share, 2),
        may_leave=lambda s: (
            s.size(s.share) in (5, 2) and s.content(s.share) == s.now
        ),
        ended=lambda s: s.size(s.share) == 2,
    ),
    'snapshot': Verb(
        act=lambda s: s.driver.create_snapshot(CTX, s.new_snapshot),
        may_leave=lambda s: (
            s.content(s.share) == s.now and s.status(s.share) == 'available'
        ),
        ended=lambda s: (
            s.driver.revert_to_snapshot(CTX, s.new_snapshot, [], []) == 5
            and s.content(s.share) == s.now
        ),
    ),
    'delete_snapshot': Verb(
        act=lambda s: s.driver.delete_snapshot(CTX, s.snapshot),
        may_leave=lambda s: s.content(s.share) == s.now,
        ended=lambda s: (
            not {s.snapshot.name, s.snapshot.id} & s.names()
            and not s.clients(s.snapshot)
        ),
    ),
    'revert': Verb(
        act=lambda s: s.driver.revert_to_snapshot(CTX, s.snapshot, [], []),
        may_leave=lambda s: (
            s.status(s.share) == 'error'
            or s.content(s.share) in (s.then, s.now)
        ),
        ended=lambda s: (
            s.status(s.share) == 'available'
            and s.size(s.share) == 3
            and s.content(s.share) == s.then
            and s.clients(s.share) == {'10.0.0.0'}
        ),
    ),
    **{
        verb: Verb(
            act=lambda s, name=name: s.change_clients(getattr(s, name)),
            may_leave=lambda s, name=name: (
                s.clients(getattr(s, name))
                <= {'10.0.0.0', '10.0.0.1', '10.0.0.2'}
            ),
            ended=lambda s, name=name: (
                s.clients(getattr(s, name)) == {'10.0.0.1', '10.0.0.2'}
            ),
        )
        for verb, name in (
            ('access', 'share'),
            ('snapshot_access', 'snapshot'),
        )
    },
    'sync': Verb(
        act=lambda s: s.let_in(s.share, *s.rules[1:]),
        may_leave=lambda s: (
            s.clients(s.share) <= {'10.0.0.0', '10.0.0.1', '10.0.0.2'}
        ),
        ended=lambda s: s.clients(s.share) == {'10.0.0.1', '10.0.0.2'},
    ),
    'manage': Verb(
        act=lambda s: s.driver.manage_existing(s.found, {}),
        may_leave=lambda s: s.status(s.found) in ('gone', 'available'),
        ended=lambda s: (
            s.size(s.found) == 4
            and s.status(s.found) == 'available'
            and s.driver.manage_existing(s.found, {})['size'] == 4
        ),
    ),
    'unmanage': Verb(
        act=lambda s: s.driver.unmanage(s.share),
        may_leave=lambda s: s.status(s.share) in ('gone', 'available'),
        ended=lambda s: (
            s.status(s.share) == 'gone' and list(s.lost()) == [5, s.now]
        ),
    ),
    'manage_snapshot': Verb(
        act=lambda s: s.driver.manage_existing_snapshot(s.found_snapshot, {}),
        may_leave=lambda s: (
            s.snapshot_status(s.found_snapshot) in ('gone', 'available')
        ),
        ended=lambda s: (
            s.driver.get_snapshot_status(s.found_snapshot)['size'] == 5
        ),
    ),
    'unmanage_snapshot': Verb(
        act=lambda s: s.driver.unmanage_snapshot(s.snapshot),
        may_leave=lambda s: (
            s.snapshot_status(s.snapshot) in ('gone', 'available')
        ),
        ended=lambda s: (
            s.snapshot_status(s.snapshot) == 'gone'
            and s.driver.manage_existing_snapshot(
                s.subject.snapshot(s.share, provider_location=s.snapshot.name),
                {},
            )['size']
            == 3
        ),
    ),
}


def _finish(scene: Scene, verb: Verb) -> None:
    """Repeat the verb in a new process and see that all is well."""
    scene.driver = scene.subject.start()
    assert verb.may_leave(scene)
    verb.act(scene)
    assert verb.ended(scene)
    assert not list(scene.root.glob('local/work/*'))


@pytest.mark.parametrize('name', ['dummy', 'local'])
@pytest.mark.parametrize('verb', VERBS)
def test_verb_killed_at_every_step_can_be_repeated(name, verb, tmp_path):
    for step in itertools.count(1):
        scene = Scene(name, tmp_path / str(step))
        killed = killed_at(step, lambda s=scene: VERBS[verb].act(s))
        _finish(scene, VERBS[verb])
        if not killed:
            break
    assert step > 1, 'there was no step to be killed at'


@pytest.mark.parametrize('name', ['dummy', 'local'])
@pytest.mark.parametrize('seed', range(20))
def test_verb_killed_again_and_again_can_be_repeated(name, seed, tmp_path):
    rng = random.Random(seed)
    scene = Scene(name, tmp_path)
    verb = VERBS[rng.choice(sorted(VERBS))]
    for _ in range(rng.randint(2, 5)):
        killed_at(rng.randint(1, 80), lambda: verb.act(scene))
    _finish(scene, verb)
