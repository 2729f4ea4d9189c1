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
from tests.support.dhss import ServersCloud

_NOT_LEFT = '-shm'  # the memory that processes on SQLite share


class Remains(typing.NamedTuple):
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


class Mortal(Cloud):
    """A cloud that says so when it comes to a place where it may die."""

    at_place: typing.Callable[[str], None] | None = None

    def _begin(self) -> None:
        super()._begin()
        for backend in self.share.backends:
            faults = backend.driver.faults
            faults.midway = self._half_way(faults.midway)

    def _half_way(self, midway: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            self._probe('half-way')
            midway()

        return run

    def _probe(self, name: str) -> None:
        if self.at_place is not None:
            self.at_place(name)
        super()._probe(name)


class MortalWithServers(Mortal, ServersCloud):
    """The same with back ends that handle share servers."""


def begin(
    remains: Remains,
    folder: pathlib.Path,
    seed: int,
    kind: type[Mortal] = Mortal,
    **how: typing.Any,
) -> Mortal:
    """A process that has found the files, but not yet looked at them."""
    shutil.rmtree(folder, ignore_errors=True)
    remains.restore(folder)
    cloud = kind(folder, seed=seed, fill=False, **how)
    cloud.clock.now = remains.now
    return cloud


def remains_of(
    cloud: Mortal, run: Callable[[], object]
) -> list[tuple[str, Remains]]:
    """What is left by deaths at all places of a run, in their order."""
    found = []
    cloud.at_place = lambda place: found.append((place, look(cloud)))
    with contextlib.ExitStack() as stack:
        stack.callback(setattr, cloud, 'at_place', None)
        run()
    return found


def different(
    places: list[tuple[str, Remains]],
) -> list[tuple[int, str, Remains]]:
    """Of remains of the same content the last, with its number and place."""
    return list(
        {
            remains.files: (number, place, remains)
            for number, (place, remains) in enumerate(places)
        }.values()
    )


def look(cloud: Cloud) -> Remains:
    """What is on the disk at this moment."""
    return Remains(
        tuple(
            sorted(
                (str(path.relative_to(cloud.folder)), path.read_bytes())
                for path in cloud.folder.rglob('*')
                if path.is_file() and not path.name.endswith(_NOT_LEFT)
            )
        ),
        cloud.clock.now,
    )
