"""What clouds with the same configuration have stored at their start.

Building it, a share type, services that are up, perhaps a share, takes
longer than most tests; so it is done once per process and copied.
"""

from collections.abc import Callable, Hashable
import contextlib
import functools
import os
import pathlib
import shutil
import sqlite3
import tempfile
import typing

DATABASE = 'cloud.sqlite'
FOLDERS = ('dummy', 'dummy-replication', 'backups')
"""What a cloud stores in its folder; other files there are the test's."""

_FOLDER = b'{folder}'


T = typing.TypeVar('T')


class Image(typing.NamedTuple):
    """Files by path, None for a folder; and what the test must know.

    Of a symbolic link, its target is kept.
    """

    files: tuple[tuple[str, bytes | pathlib.Path | None], ...]
    now: float
    incarnation: str
    answer: typing.Any

    def restore(self, folder: pathlib.Path) -> None:
        """Replace what a cloud has stored, which no process uses now."""
        place = _place_of_length(len(os.fsencode(folder)))
        for name in FOLDERS:
            shutil.rmtree(folder / name, ignore_errors=True)
        for path in folder.glob(f'{DATABASE}*'):
            path.unlink()
        for name, content in self.files:
            if content is None:
                (folder / name).mkdir()
            elif isinstance(content, pathlib.Path):
                (folder / name).symlink_to(content)
            elif name == DATABASE:
                moved = _moved(content, place)
                (folder / name).write_bytes(moved.replace(place, os.fsencode(folder)))
            else:
                (folder / name).write_bytes(
                    content.replace(_FOLDER, os.fsencode(folder))
                )


_IMAGES: dict[Hashable, Image] = {}


def shared_image(key: Hashable, build: Callable[[], Image]) -> Image:
    """Return the image with this key; it is built once in a process."""
    if key not in _IMAGES:
        _IMAGES[key] = build()
    return _IMAGES[key]


def capture(
    folder: pathlib.Path, now: float, incarnation: str, answer: typing.Any
) -> Image:
    """Return the image of a folder that no process uses."""
    files: list[tuple[str, bytes | pathlib.Path | None]] = []
    _move_disks(folder, str(folder), _FOLDER.decode(), vacuum=True)
    stored = [
        path
        for name in FOLDERS
        if (folder / name).is_dir()
        for path in (folder / name, *sorted((folder / name).rglob('*')))
    ]
    for path in [*sorted(folder.glob(f'{DATABASE}*')), *stored]:
        name = str(path.relative_to(folder))
        if path.is_symlink():
            files.append((name, path.readlink()))
            continue
        content = None if path.is_dir() else path.read_bytes()
        if content is not None and str(folder).encode() in content:
            if name.startswith(DATABASE):
                raise ValueError('the database names its folder')
            content = content.replace(str(folder).encode(), _FOLDER)
        files.append((name, content))
    return Image(tuple(files), now, incarnation, answer)


def _place_of_length(length: int) -> bytes:
    """Return what stands for a folder whose path has so many bytes."""
    return _FOLDER[:-1].ljust(length - 1, b'_') + _FOLDER[-1:]


@functools.lru_cache(maxsize=100)
def _moved(content: bytes, place: bytes) -> bytes:
    """Return a database in which that stands for the folder.

    There is one for all folders whose paths have the same length, as those of
    most tests do: their bytes can be replaced.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, DATABASE)
        path.write_bytes(content)
        _move_disks(path.parent, _FOLDER.decode(), place.decode())
        return path.read_bytes()


def _move_disks(
    folder: pathlib.Path, old: str, new: str, *, vacuum: bool = False
) -> None:
    """Change where the disks of the back ends were last seen.

    Vacuumed, the database has no remains of the old place either.
    """
    path = folder / DATABASE
    with contextlib.closing(sqlite3.connect(path)) as database:
        with database:
            database.execute(
                'UPDATE storage_disks SET location = replace(location, ?, ?)',
                (old, new),
            )
        if vacuum:
            database.execute('VACUUM')


def prepared(function: Callable[..., T]) -> Callable[..., T]:
    """Decorate what prepares a cloud, as tests do before anything else.

    It is a fixture, or a function whose first argument is the cloud or a
    client of it. What it returns must make sense on a copy of the cloud, as
    an id does; `repr` tells its other arguments apart.
    """

    @functools.wraps(function)
    def run(*args: typing.Any, **kwargs: typing.Any) -> T:
        cloud = args[0] if args else kwargs['cloud']
        cloud = getattr(cloud, 'cloud', cloud)
        call = functools.partial(function, *args, **kwargs)
        if not isinstance(cloud, Copied):
            return call()
        others = [*args, *kwargs.values()]
        said = repr([one for one in others if one is not cloud]), *sorted(kwargs)
        if ' at 0x' in said[0]:  # an argument does not say what it is
            return call()
        return cloud.prepare(call, function.__module__, function.__qualname__, *said)

    return run


class Copied:
    """A cloud that starts on what another has stored."""

    _image: Image | None = None
    _prepared: tuple[tuple[Hashable, ...], ...] = ()
    _building: tuple[Hashable, ...] = ()

    def _image_after(self, prepare: Callable[[], object], *key: Hashable) -> Image:
        """Return what a cloud like this one has stored after a call.

        Ids in it are the same in all tests; later ones depend on the seed.
        """
        conf = self._conf_file.read_text().replace(str(self.folder), '')
        key = type(self), conf, *key

        def build() -> Image:
            outer, self._building = self._building, key
            try:
                self._seed_ids()
                answer = prepare()
            finally:
                self._building = outer
            self.db.dispose()
            return capture(self.folder, self.clock.now, self.process.id, answer)

        return shared_image(key, build)

    def _start_on(self, image: Image) -> None:
        """Start the process that has stored the image.

        Its services are built when something needs them: many tests only
        send requests that they have no part in.
        """
        self.db.dispose()
        image.restore(self.folder)
        self.clock.now = image.now
        self._seed_ids()
        self._start_process(image.incarnation)
        self._image = image

    def _seed_ids(self) -> None:
        """Begin with ids that nothing which is copied has."""
        of_image = repr((self._building, self._prepared))
        self.rng.seed(of_image if self._building else self._seed)

    def _is_untouched(self) -> bool:
        """Return whether nothing has happened since the start.

        Services look at the clock when they start, requests when they are
        answered; a test may have changed the API without sending one.
        """
        return (
            self._image is not None
            and '_served' not in self.__dict__
            and self._image.now == self.clock.now
        )

    def prepare(self, function: Callable[[], T], *key: Hashable) -> T:
        """Return what the function returns, in the state that it leaves.

        If nothing else has happened yet, it is called only once for all
        clouds like this one: the key must tell it from others.
        """
        if not self._is_untouched():
            return function()
        steps = *self._prepared, key
        image = self._image_after(function, *steps)
        self._prepared = steps
        self._start_on(image)
        return image.answer
