"""Killed at any step, what is done to replicas can be repeated."""

from collections.abc import Callable
import contextlib
import dataclasses
import itertools
import os
import random
import uuid

import pytest

from manila_lite import exception
from tests.drivers.crashes import changes
from tests.drivers.crashes import killed_at
from tests.drivers.driver_harness import CTX
from tests.drivers.replication_contract import PLACES
from tests.drivers.replication_contract import Sites


@pytest.fixture(autouse=True)
def no_power_failures(monkeypatch):
    """A kill takes nothing from the kernel; waiting for disks is slow."""
    monkeypatch.setattr(os, 'sync', lambda: None)
    monkeypatch.setattr(os, 'fsync', lambda file: None)


class Scene(Sites):
    """A share with a snapshot, a replica, and changes it has not got yet."""

    def __init__(self, folder, name, style, has_replica=True):
        folder.mkdir()
        super().__init__(folder, name, style, names=('here', 'there'))
        self.folder = folder
        self.write('then')
        self.saved = self.snapshot()
        if has_replica:
            self.made()
            self.snapshots[self.saved][0]['there'] = 'available'
            self.new = self.announced()
            self.copied = self.snapshot()
        self.write('now')

    def announced(self):
        """A snapshot that is accepted and not yet taken."""
        id = str(uuid.uuid4())
        self.snapshots[id] = ({'here': 'creating', 'there': 'creating'}, 1)
        return id

    def start(self):
        for site in self.sites:
            if not site.is_lost:
                site.restart()

    def taken(self, id, site):
        try:
            return site.driver.get_snapshot_status(self.instance(id, site))[
                'status'
            ]
        except exception.SnapshotResourceNotFound:
            return 'gone'

    def leftovers(self, *things):
        """What is left of something that is gone, but for torn files."""
        words = [word for thing in things for word in (thing.id, thing.name)]
        return [
            path
            for path in self.folder.rglob('*')
            if path.name.partition('.')[2] in ('', 'json')
            and any(word in path.name for word in words)
        ]

    def writers(self):
        """How many replicas let clients write."""
        return sum(
            'rw' in self.levels(site) for site in self.sites if site.state
        )

    def caught_up(self, site):
        """Whether a replica gets what the active one has."""
        if site.state != 'active':
            self.update(site)
        return site.state in ('active', 'in_sync') and self.read(
            site
        ) == self.read(self.active)


@dataclasses.dataclass
class Verb:
    """What is done, and what is there in the end."""

    act: Callable[[Scene], object]
    ended: Callable[[Scene], bool]
    has_replica: bool = True
    styles: tuple[str, ...] = ('writable', 'readable', 'dr')
    keeps: str = 'now'


def _create(s):
    s.there.state = 'out_of_sync'
    s.create()


def _drop(s):
    with contextlib.suppress(exception.SnapshotResourceNotFound):
        s.drop(s.copied)
        s.poll(s.copied)


def _lose_and_promote(s):
    if not s.here.is_lost:
        s.here.lose()
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
    s.here.bring_back()
    return _promoted(s)


VERBS = {
    'create': Verb(
        act=_create,
        has_replica=False,
        ended=lambda s: (
            s.caught_up(s.there)
            and s.read() == 'now'
            and s.taken(s.saved, s.there) == 'available'
        ),
    ),
    'delete': Verb(
        act=lambda s: s.delete(),
        ended=lambda s: (
            not s.levels()
            and not s.leftovers(
                s.of(s.there), *(s.instance(id, s.there) for id in s.snapshots)
            )
        ),
    ),
    'update': Verb(
        act=lambda s: s.update(),
        styles=('readable', 'dr'),
        ended=lambda s: s.there.state != 'in_sync' or s.read() == 'now',
    ),
    'promote': Verb(
        act=lambda s: s.promote(), styles=('readable', 'dr'), ended=_promoted
    ),
    'promote_alone': Verb(
        act=_lose_and_promote, styles=('readable', 'dr'), ended=_promoted_alone
    ),
    'snapshot': Verb(
        act=lambda s: s.take(s.new),
        ended=lambda s: (
            s.taken(s.new, s.here) == 'available'
            and (
                s.snapshots[s.new][0]['there'] == 'available'
                or s.poll(s.new)[0]['status'] == 'available'
            )
            and s.taken(s.new, s.there) == 'available'
        ),
    ),
    'poll': Verb(
        act=lambda s: s.poll(s.copied),
        styles=('readable', 'dr'),
        ended=lambda s: s.taken(s.copied, s.there) == 'available',
    ),
    'drop': Verb(
        act=_drop,
        ended=lambda s: (
            {s.taken(s.copied, site) for site in s.sites} == {'gone'}
            and not s.leftovers(
                *(s.instance(s.copied, site) for site in s.sites)
            )
        ),
    ),
    'extend': Verb(
        act=lambda s: s.here.driver.extend_share(s.of(s.here), 3),
        ended=lambda s: (
            s.status(s.here)['size'] == 3
            and s.caught_up(s.there)
            and s.status()['size'] == 3
        ),
    ),
    'revert': Verb(
        act=lambda s: s.revert(s.copied),
        keeps='',
        ended=lambda s: s.read(s.here) == 'then' and s.caught_up(s.there),
    ),
}
CASES = [
    (verb, name, style)
    for name, style, servers in PLACES
    if not servers
    for verb in VERBS
    if style in VERBS[verb].styles
]


def _finish(scene: Scene, verb: Verb) -> None:
    """Repeat the verb in new processes and see that all is well."""
    scene.start()
    if verb.keeps and not scene.here.is_lost:
        assert scene.read(scene.here) == verb.keeps
    if scene.style != 'writable':
        assert scene.writers() <= 1
    verb.act(scene)
    assert verb.ended(scene)
    assert not list(scene.folder.glob('*/work/*'))


def _scene(folder, name, style, verb) -> Scene:
    scene = Scene(folder, name, style, verb.has_replica)
    if verb is VERBS['promote_alone']:
        scene.here.lose()
    return scene


@pytest.mark.parametrize('verb, name, style', CASES)
def test_verb_killed_at_every_step_can_be_repeated(
    verb, name, style, tmp_path
):
    verb = VERBS[verb]
    for step in itertools.count(1):
        scene = _scene(tmp_path / str(step), name, style, verb)
        killed = killed_at(step, lambda s=scene: verb.act(s), changes)
        _finish(scene, verb)
        if not killed:
            break
    assert step > 1, 'there was no step to be killed at'


@pytest.mark.parametrize('name', sorted({name for _, name, _ in CASES}))
@pytest.mark.parametrize('seed', range(15))
def test_verb_killed_again_and_again_can_be_repeated(name, seed, tmp_path):
    rng = random.Random(seed)
    verb, name, style = rng.choice([case for case in CASES if case[1] == name])
    scene = _scene(tmp_path / 'scene', name, style, VERBS[verb])
    for _ in range(rng.randint(2, 5)):
        killed_at(rng.randint(1, 40), lambda: VERBS[verb].act(scene), changes)
    _finish(scene, VERBS[verb])


def test_a_share_whose_replica_was_half_made_can_be_deleted(tmp_path):
    for step in itertools.count(1):
        scene = Scene(tmp_path / str(step), 'dummy', 'dr', False)
        killed = killed_at(step, lambda s=scene: _create(s), changes)
        scene.start()
        scene.there.state = 'error'
        scene.delete()
        scene.there.state = None
        scene.here.driver.delete_snapshot(
            CTX, scene.instance(scene.saved, scene.here)
        )
        scene.here.driver.delete_share(CTX, scene.of(scene.here))
        assert not scene.leftovers(scene.of(scene.here), scene.of(scene.there))
        assert not list(scene.folder.rglob(f'{scene.share_id}.json'))
        if not killed:
            break
