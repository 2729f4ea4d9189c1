"""Killed at any step, a verb leaves what its repetition can finish."""

from collections.abc import Callable
import dataclasses
import itertools
import os
import pathlib
import random

import pytest

from manila_lite import exception
from manila_lite.share.drivers.base import export_locations
from manila_lite.share.drivers.configuration import Configuration
from tests.drivers import content
from tests.drivers.conftest import own_options
from tests.drivers.crashes import killed_at
from tests.drivers.subject import CTX
from tests.drivers.subject import Subject


class Scene:
    """A share with content, a snapshot of it, and changes made since."""

    def __init__(self, name: str, root: pathlib.Path):
        self.root = root
        configuration = Configuration.from_values(own_options(root))
        self.subject = Subject(name, lambda: configuration)
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
        path = export_locations(
            self.driver.get_share_status(share)['export_locations']
        )[0]['path']
        return pathlib.Path(path) if os.path.isdir(path) else None

    def content(self, share):
        directory = self.directory(share)
        return (content.describe(directory) if directory
                else self.driver.read(share.id))

    def size(self, share):
        return self.driver.get_share_status(share)['size']

    def status(self, share) -> str:
        try:
            return self.driver.get_share_status(share)['status']
        except exception.ShareResourceNotFound:
            return 'gone'

    def names(self) -> set[str]:
        """What is on the back end, whether the driver tells or not."""
        return {path.name.removesuffix('.json')
                for path in self.root.glob('*/*/*')
                if path.name.partition('.')[2] in ('', 'json')}


@dataclasses.dataclass
class Verb:
    """What is done, what a kill may leave, what is there in the end."""

    act: Callable[[Scene], object]
    may_leave: Callable[[Scene], bool]
    ended: Callable[[Scene], bool]


def _new_share_is_whole(scene) -> bool:
    return (scene.status(scene.new_share) == 'available'
            and scene.size(scene.new_share) == 3)


VERBS = {
    'create': Verb(
        act=lambda s: s.driver.create_share(CTX, s.new_share),
        may_leave=lambda s: s.status(s.new_share) in ('gone', 'error')
        or _new_share_is_whole(s),
        ended=_new_share_is_whole),
    'create_from_snapshot': Verb(
        act=lambda s: s.driver.create_share_from_snapshot(
            CTX, s.new_share, s.snapshot),
        may_leave=lambda s: s.status(s.new_share) in ('gone', 'error')
        or s.content(s.new_share) == s.then,
        ended=lambda s: _new_share_is_whole(s)
        and s.content(s.new_share) == s.then),
    'delete': Verb(
        act=lambda s: s.driver.delete_share(CTX, s.share),
        may_leave=lambda s: s.status(s.share) in ('gone', 'error')
        or s.content(s.share) == s.now,
        ended=lambda s: s.status(s.share) == 'gone'
        and not {s.share.name, s.share.id} & s.names()),
    'extend': Verb(
        act=lambda s: s.driver.extend_share(s.share, 9),
        may_leave=lambda s: s.size(s.share) in (5, 9)
        and s.content(s.share) == s.now,
        ended=lambda s: s.size(s.share) == 9),
    'shrink': Verb(
        act=lambda s: s.driver.shrink_share(s.share, 2),
        may_leave=lambda s: s.size(s.share) in (5, 2)
        and s.content(s.share) == s.now,
        ended=lambda s: s.size(s.share) == 2),
    'snapshot': Verb(
        act=lambda s: s.driver.create_snapshot(CTX, s.new_snapshot),
        may_leave=lambda s: s.content(s.share) == s.now
        and s.status(s.share) == 'available',
        ended=lambda s: s.driver.revert_to_snapshot(
            CTX, s.new_snapshot, [], []) == 5 and s.content(s.share) == s.now),
    'delete_snapshot': Verb(
        act=lambda s: s.driver.delete_snapshot(CTX, s.snapshot),
        may_leave=lambda s: s.content(s.share) == s.now,
        ended=lambda s: not {s.snapshot.name, s.snapshot.id} & s.names()),
    'revert': Verb(
        act=lambda s: s.driver.revert_to_snapshot(CTX, s.snapshot, [], []),
        may_leave=lambda s: s.status(s.share) == 'error'
        or s.content(s.share) in (s.then, s.now),
        ended=lambda s: s.status(s.share) == 'available'
        and s.size(s.share) == 3 and s.content(s.share) == s.then),
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
    chance = random.Random(seed)
    scene = Scene(name, tmp_path)
    verb = VERBS[chance.choice(sorted(VERBS))]
    for _ in range(chance.randint(2, 5)):
        killed_at(chance.randint(1, 80), lambda: verb.act(scene))
    _finish(scene, verb)
