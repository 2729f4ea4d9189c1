"""A small file system of its own for one command."""

from collections.abc import Iterator
import contextlib
import pathlib
import subprocess

from tests.support import requirements
from tests.support.processes import BINARIES

_MOUNT = 'mount -t tmpfs -o size="$1" none "$2" && shift 2 && exec "$@"'
_NAMESPACE = ['unshare', '--map-root-user', '--mount', 'sh', '-c']


class SmallDisk:
    """A disk that only one process, and this test, can reach."""

    def __init__(self, process: subprocess.Popen, folder: pathlib.Path):
        self.path = pathlib.Path(f'/proc/{process.pid}/root', folder.relative_to('/'))

    def fill(self) -> None:
        """Leave no room for anybody."""
        with (
            contextlib.suppress(OSError),
            (self.path / 'ballast').open('wb', buffering=0) as file,
        ):
            while file.write(bytes(4096)):
                pass

    def empty(self) -> None:
        """Remove what `fill` has written."""
        (self.path / 'ballast').unlink()


@contextlib.contextmanager
def run_on_small_disk(
    folder: pathlib.Path, size: str, name: str, *args: object
) -> Iterator[SmallDisk]:
    """Run one of our commands with a small disk mounted at a folder.

    Skips where users may not mount in a namespace; fails instead if CI is
    set.
    """
    tried = subprocess.run(
        [*_NAMESPACE, _MOUNT, 'sh', size, str(folder), 'true'],
        capture_output=True,
        text=True,
    )
    if tried.returncode:
        requirements.missing(f'no mount namespace: {tried.stderr}')
    words = [str(BINARIES / name), *map(str, args)]
    with subprocess.Popen(
        [*_NAMESPACE, _MOUNT, 'sh', size, str(folder), *words], stdin=subprocess.DEVNULL
    ) as process:
        try:
            yield SmallDisk(process, folder)
        finally:
            process.kill()
