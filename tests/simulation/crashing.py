"""Crashes of a process at every crash point, one after the other."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import pathlib
import random
import typing

import pytest

from tests.simulation import crash_images, pausing, slow_commits
from tests.support import sampling
from tests.support.cloud import Cloud, Crash
from tests.support.rewind import Begin, rewindable

Verb = Callable[[typing.Any, typing.Any], object]
Keeps = Callable[[typing.Any, typing.Any, str, list[str]], object]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Scene:
    """A kind of resources: how they are prepared, and what is done to them.

    A verb is called with the cloud and the result of `prepare(cloud)`.
    """

    name: str
    prepare: Callable[[typing.Any], object]
    verbs: Mapping[str, Verb]
    kind: type[Cloud] = crash_images.CrashableCloud
    options: Mapping[str, typing.Any] = dataclasses.field(default_factory=dict)
    """Those of the cloud."""

    conf: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """`backend_conf` and `extra_conf` of the processes."""

    conf_of: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    """The same by verb, added."""

    without_driver: Collection[str] = ()
    """The verbs that call no driver, during which no worker is paused."""

    check: Callable[[typing.Any], object] = lambda cloud: cloud.check_invariants()
    """`check(cloud)` fails unless all is as it must be after any crash."""

    keeps: Keeps = lambda cloud, prepared, name, points: None
    """Fails unless what was accepted is carried out.

    Called with the cloud, what was prepared, the verb, and the names of the
    crash points that it had passed.
    """

    seeds: tuple[int, int] = (100, 2)
    """How many random orders there are, and how many a sample has."""

    points: int = 60
    """The first of two crashes is within so many points."""

    least: int = 2
    """The number of crash points of each verb that differ, at least."""

    def seeds_to_try(self, at_once: int = 20) -> Iterator[list[int]]:
        """Yield the seeds of this run, a test's each."""
        seeds = sampling.seeds(*self.seeds)
        for first in range(0, len(seeds), at_once):
            yield seeds[first : first + at_once]

    @staticmethod
    def named(*verbs: Verb) -> dict[str, Verb]:
        """Return functions by their names."""
        return {verb.__name__: verb for verb in verbs}

    @contextlib.contextmanager
    def opened(self, folder: pathlib.Path) -> Iterator['Stage']:
        """Prepare the resources; yield a stage that is rewound to them."""
        with rewindable(folder, self.prepare, kind=self.kind, **self.options) as begin:
            yield Stage(self, begin)


class Stage:
    """A scene that can be begun any number of times."""

    def __init__(self, scene: Scene, begin: Begin):
        self.scene = scene
        self._begin = begin

    def begin(
        self, name: str = '', backend_conf: str = '', **kwargs: typing.Any
    ) -> tuple[typing.Any, typing.Any]:
        """Start a process for a verb; return the cloud, what was prepared."""
        parts = self.scene.conf, self.scene.conf_of.get(name, {})
        conf = {
            key: '\n'.join(part[key] for part in parts if key in part)
            for key in ('backend_conf', 'extra_conf')
        }
        conf['backend_conf'] += f'\n{backend_conf}'
        return self._begin(**conf, **kwargs)

    def crash_everywhere(self, name: str) -> None:
        """Crash once at every point of a verb, and recover.

        Crashes that leave the same image are recovered once.
        """
        cloud, prepared = self.begin(name)
        images = crash_images.images_at_crash_points(
            cloud, lambda: self.scene.verbs[name](cloud, prepared)
        )
        points = [point for point, _ in images]
        self.scene.check(cloud)

        def recover(number: int, image: crash_images.DiskImage) -> None:
            cloud, _ = self.begin(name, seed=1000 + number, image=image)
            self.scene.check(cloud)
            self.scene.keeps(cloud, prepared, name, points[:number])

        recover_from_each(images, recover, name, least=self.scene.least)

    def crash_twice(self, seeds: Sequence[int]) -> None:
        """With each seed, crash in a verb and again during recovery.

        A third of the messages is lost, and a third is delivered twice.
        """
        crashes = sum(map(self._crash_twice, seeds))
        if sampling.tries_every_case():  # the few of a sample may have none
            assert 2 * crashes >= len(seeds)

    def _crash_twice(self, seed: int) -> int:
        name = random.Random(seed).choice(list(self.scene.verbs))
        cloud, prepared = self.begin(name, seed=seed)
        cloud.loss_rate, cloud.duplicate_rate = 0.3, 0.3
        first = cloud.rng.randrange(self.scene.points)
        verb = self.scene.verbs[name]
        crashes = [crash_at_point(cloud, first, verb, cloud, prepared)]
        cloud.restart()
        crashes.append(crash_at_point(cloud, cloud.rng.randrange(60), cloud.settle))
        cloud.restart()
        cloud.settle()
        try:
            self.scene.check(cloud)
        except AssertionError as error:
            pytest.fail(f'{name}, seed {seed}, at {first}: {error}')
        return sum(crashes)

    def pause_everywhere(
        self, name: str, fencing: str, shared_database: Callable[[str], str]
    ) -> None:
        """Pause once at each driver call of a verb."""

        def start():
            cloud, prepared = self.begin(name, backend_conf=fencing)
            return (
                cloud,
                lambda: self.scene.verbs[name](cloud, prepared),
                lambda: self.scene.check(cloud),
            )

        pausing.pause_everywhere(start, name, shared_database)

    def commit_slowly(self, name: str, shared_database: Callable[[str], str]) -> None:
        """Lose the connection at the commits of a verb, which go on."""
        slow_commits.commit_slowly(
            lambda: self.begin(name),
            self.scene.verbs[name],
            f'{self.scene.name} {name}',
            shared_database,
            self.scene.check,
        )


def crash_at_point(cloud, point, verb, *args):
    """Run `verb(*args)`; return whether it crashed at the given point."""
    cloud.crash_at(point)
    try:
        verb(*args)
    except Crash:
        return True
    return False


def recover_from_each(images, recover, name, *, least=2, most=2):
    """Call `recover(number, image)` for each image that this run tries.

    Fail with the crash point where it fails. At least so many images must
    differ.
    """
    distinct = crash_images.distinct_images(images)
    assert len(distinct) >= least
    for number, point, image in crash_images.to_try(distinct, most):
        try:
            recover(number, image)
        except AssertionError as error:
            pytest.fail(f'{name} at {number} ({point}): {error}')
    print(f'{name}: {len(images)} points, {len(distinct)} of them differ')
