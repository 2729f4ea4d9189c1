"""The copies of the data service, compared with `cp -a` on the same files.

Both write to the same disk and flush it at the end, in turns.
"""

from collections.abc import Callable
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from benchmarks.verdict import Verdict
from manila_lite.data import copying
from manila_lite.share.drivers import trees

SMALL_FILES, SMALL = 5_000, 4 << 10
FOLDERS = 100
LARGE_FILES, LARGE = 2, 128 << 20
ROUNDS = 5

SPEED = 0.7


def run(verdict: Verdict) -> None:
    with tempfile.TemporaryDirectory() as folder:
        top = pathlib.Path(folder)
        for name, fill in (
            (f'{SMALL_FILES} small files', _fill_small),
            (f'{LARGE_FILES} large files', _fill_large),
        ):
            source = top / name
            source.mkdir()
            fill(source)
            verdict.record(
                f'copy of {name}, speed to that of cp -a',
                _speed(source, top),
                'times',
                at_least=SPEED,
            )
            shutil.rmtree(source)


def _fill_small(source: pathlib.Path) -> None:
    for number in range(SMALL_FILES):
        folder = source / str(number % FOLDERS)
        folder.mkdir(exist_ok=True)
        (folder / str(number)).write_bytes(os.urandom(SMALL))


def _fill_large(source: pathlib.Path) -> None:
    for number in range(LARGE_FILES):
        (source / str(number)).write_bytes(os.urandom(LARGE))


def _speed(source: pathlib.Path, top: pathlib.Path) -> float:
    """Return the speed of our copy, that of `cp` being 1."""
    ours, theirs = [], []
    for _ in range(ROUNDS):
        theirs.append(_time(_cp, source, top))
        ours.append(_time(_copy, source, top))
    return min(theirs) / min(ours)


def _time(
    copy: Callable[[pathlib.Path, pathlib.Path], object],
    source: pathlib.Path,
    top: pathlib.Path,
) -> float:
    target = top / 'target'
    target.mkdir()
    os.sync()
    began = time.perf_counter()
    copy(source, target)
    taken = time.perf_counter() - began
    shutil.rmtree(target)
    return taken


def _cp(source: pathlib.Path, target: pathlib.Path) -> None:
    subprocess.run(['cp', '-a', f'{source}/.', str(target)], check=True)
    os.sync()


def _copy(source: pathlib.Path, target: pathlib.Path) -> None:
    with (
        trees.opened_directory(source) as origin,
        trees.opened_directory(target) as into,
    ):
        copying.size_of(origin)  # as before every copy
        copying.copy_tree(
            origin,
            into,
            on_progress=lambda count: None,
            check=lambda: None,
            is_resumed=True,
        )
