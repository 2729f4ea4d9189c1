"""Users who replace entries of a tree by links while it is worked on."""

from collections.abc import Callable, Iterator
import contextlib
import os
import pathlib
import uuid

from tests.drivers import content
from tests.drivers.crashes import interrupted_at
from tests.support import sampling


class Swapper:
    """A tree beside files that are none of its users' business."""

    def __init__(self, folder: pathlib.Path):
        self.outside = folder / 'outside'
        self.outside.mkdir()
        fill(self.outside)
        self._before = content.describe(self.outside)

    def swap(self, tree: pathlib.Path) -> None:
        """Replace all entries of a tree by links that lead outside."""
        for entry in list(tree.iterdir()):
            to = self.outside if entry.is_dir() else self.outside / 'file'
            with contextlib.suppress(FileNotFoundError):
                entry.rename(tree / uuid.uuid4().hex)
                entry.symlink_to(to)

    def is_unharmed(self) -> bool:
        return content.describe(self.outside) == self._before


def fill(tree: pathlib.Path) -> None:
    """Create directories, files and a pipe."""
    (tree / 'below' / 'deep').mkdir(parents=True)
    for path in (tree, tree / 'below', tree / 'below' / 'deep'):
        (path / 'file').write_text('secret')
        (path / 'file').chmod(0o600)
        os.mkfifo(path / 'pipe')
        (path / 'pipe').chmod(0o666)


def swapped_at_steps(
    build: Callable[[], pathlib.Path],
    act: Callable[[pathlib.Path], object],
    swapper: Swapper,
) -> Iterator[int]:
    """Act on new trees, each swapped just before another step of the sample.

    It yields the number of the step. The act may fail.
    """
    for step in sampling.steps():
        tree = build()

        def attempt(tree: pathlib.Path = tree) -> None:
            with contextlib.suppress(OSError):
                act(tree)

        is_reached = interrupted_at(step, attempt, lambda tree=tree: swapper.swap(tree))
        yield step
        if not is_reached:
            return
