"""Disk images: what a crash leaves on the disk, at every crash point.

While a `CrashableCloud` runs, `images_at_crash_points` captures its files at
every crash point. That is what a process that crashed there would have left:
none of its code runs after a crash, not even to clean up. Images with the
same content recover in the same way, so that one of them stands for all.
"""

from collections.abc import Callable
import contextlib
import os
import pathlib
import shutil
import typing

from tests.support import sampling
from tests.support.cloud import Cloud
from tests.support.dhss import ShareServersCloud

_LOST_SUFFIX = '-shm'  # shared memory of SQLite, lost in a crash


class DiskImage(typing.NamedTuple):
    """The contents of files by path, and the time of the capture.

    The path of a directory ends in a slash.
    """

    files: tuple[tuple[str, bytes], ...]
    now: float

    def restore(self, folder: pathlib.Path) -> None:
        """Create a folder with these files."""
        folder.mkdir()
        for name, content in self.files:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if name.endswith('/'):
                path.mkdir(exist_ok=True)
            else:
                path.write_bytes(content)


class CrashableCloud(Cloud):
    """A cloud that calls `on_crash_point` at every crash point."""

    on_crash_point: typing.Callable[[str], None] | None = None

    def _start_process(self) -> None:
        super()._start_process()
        for backend in self.share.backends:
            faults = backend.driver.faults
            faults.midway = self._half_way(faults.midway)

    def _half_way(self, midway: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            self._at_crash_point('half-way')
            midway()

        return run

    def _at_crash_point(self, name: str) -> None:
        if self.on_crash_point is not None:
            self.on_crash_point(name)
        super()._at_crash_point(name)


class CrashableShareServersCloud(CrashableCloud, ShareServersCloud):
    """The same with back ends that handle share servers."""


def boot(
    image: DiskImage,
    folder: pathlib.Path,
    seed: int,
    kind: type[CrashableCloud] = CrashableCloud,
    **kwargs: typing.Any,
) -> CrashableCloud:
    """Return a cloud on restored files, before its first start."""
    shutil.rmtree(folder, ignore_errors=True)
    image.restore(folder)
    cloud = kind(folder, seed=seed, initialize=False, start=False, **kwargs)
    cloud.clock.now = image.now
    return cloud


def start_on(
    image: DiskImage,
    folder: pathlib.Path,
    seed: int,
    kind: type[CrashableCloud] = CrashableCloud,
    **kwargs: typing.Any,
) -> CrashableCloud:
    """Return a cloud that has started on restored files."""
    cloud = boot(image, folder, seed, kind, **kwargs)
    cloud.restart()
    return cloud


def restart_on(
    image: DiskImage, cloud: CrashableCloud, seed: int = 0, backend_conf: str = ''
) -> None:
    """Start a new process of the same cloud on restored files."""
    cloud.db.dispose()
    shutil.rmtree(cloud.folder)
    image.restore(cloud.folder)
    cloud.rng.seed(seed)
    cloud.clock.now = image.now
    cloud.loss_rate = cloud.duplicate_rate = 0.0
    if backend_conf:
        cloud.configure(backend_conf=backend_conf)
    cloud.restart()


def images_at_crash_points(
    cloud: CrashableCloud, run: Callable[[], object]
) -> list[tuple[str, DiskImage]]:
    """Return name and image of every crash point of a run, in order."""
    images: list[tuple[str, DiskImage]] = []

    def on_crash_point(name: str) -> None:
        previous = images[-1][1] if images else None
        images.append((name, capture(cloud, previous)))

    cloud.on_crash_point = on_crash_point
    with contextlib.ExitStack() as stack:
        stack.callback(setattr, cloud, 'on_crash_point', None)
        run()
    return images


def distinct_images(
    images: list[tuple[str, DiskImage]],
) -> list[tuple[int, str, DiskImage]]:
    """Return one image per content, the last, with number and name."""
    return list(
        {
            image.files: (number, name, image)
            for number, (name, image) in enumerate(images)
        }.values()
    )


def to_try(
    images: list[tuple[int, str, DiskImage]], most: int = 2
) -> list[tuple[int, str, DiskImage]]:
    """Return the images that this run recovers from."""
    return sampling.sample(images, most)


def capture(cloud: Cloud, previous: DiskImage | None = None) -> DiskImage:
    """Return an image of the disk at this moment.

    It shares the contents that did not change with the previous image.
    """
    known = dict(previous.files) if previous else {}
    root = f'{cloud.folder}{os.sep}'
    files = []
    # Paths are strings: this runs at every crash point, for every file.
    for folder, _, names in os.walk(root):
        if folder != root:
            files.append((f'{folder.removeprefix(root)}/', b''))
        for name in names:
            if not name.endswith(_LOST_SUFFIX):
                path = os.path.join(folder, name)
                with open(path, 'rb', buffering=0) as file:
                    content = file.readall()
                key = path.removeprefix(root)
                same = known.get(key)
                files.append((key, same if same == content else content))
    return DiskImage(tuple(sorted(files)), cloud.clock.now)
