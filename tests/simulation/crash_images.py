"""What a death leaves on the disk, at every place where it may come.

While a `Mortal` runs, `remains_of` keeps what its files hold at every
place, which is what a process that died there would have left: nothing of
it runs on, not even to clean up. Remains of the same content have the
same future, so that one of them stands for all.
"""

from collections.abc import Callable
import contextlib
import pathlib
import shutil
import typing

from tests.support.cloud import Cloud
from tests.support.dhss import ShareServersCloud

_NOT_LEFT = '-shm'  # the memory that processes on SQLite share


class DiskImage(typing.NamedTuple):
    """Files by their paths, and the time at which they were left."""

    files: tuple[tuple[str, bytes], ...]
    now: float

    def restore(self, folder: pathlib.Path) -> None:
        """Have a folder, which is not there, hold just this."""
        folder.mkdir()
        for name, content in self.files:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


class CrashableCloud(Cloud):
    """A cloud that says so when it comes to a place where it may die."""

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
    **how: typing.Any,
) -> CrashableCloud:
    """A process that has found the files, but not yet looked at them."""
    shutil.rmtree(folder, ignore_errors=True)
    image.restore(folder)
    cloud = kind(folder, seed=seed, initialize=False, **how)
    cloud.clock.now = image.now
    return cloud


def images_at_crash_points(
    cloud: CrashableCloud, run: Callable[[], object]
) -> list[tuple[str, DiskImage]]:
    """What is left by deaths at all places of a run, in their order."""
    found = []
    cloud.on_crash_point = lambda place: found.append((place, capture(cloud)))
    with contextlib.ExitStack() as stack:
        stack.callback(setattr, cloud, 'on_crash_point', None)
        run()
    return found


def distinct_images(
    places: list[tuple[str, DiskImage]],
) -> list[tuple[int, str, DiskImage]]:
    """Of remains of the same content the last, with its number and place."""
    return list(
        {
            image.files: (number, place, image)
            for number, (place, image) in enumerate(places)
        }.values()
    )


def capture(cloud: Cloud) -> DiskImage:
    """What is on the disk at this moment."""
    return DiskImage(
        tuple(
            sorted(
                (str(path.relative_to(cloud.folder)), path.read_bytes())
                for path in cloud.folder.rglob('*')
                if path.is_file() and not path.name.endswith(_NOT_LEFT)
            )
        ),
        cloud.clock.now,
    )
