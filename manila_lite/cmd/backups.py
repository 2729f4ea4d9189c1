"""The backups of the first controller, which deploy keeps in a directory."""

import collections
from collections.abc import Iterator
import math
import pathlib
import time
import typing

from manila_lite import metrics

DIRECTORY = '/var/backups/manila_lite'

AGE = metrics.Metric(
    'backup_age_seconds',
    'Time since the newest backup of a kind was written, of the directory that '
    'the option names; +Inf without a daily one.',
    'kind',
)
_DAILY = 'daily'


class Backups(typing.NamedTuple):
    """The backups of a kind."""

    kind: str
    number: int
    newest: str
    age: float
    bytes: int


def list_kinds(folder: pathlib.Path) -> Iterator[Backups]:
    """Yield what deploy has written there, by kind; only complete ones."""
    kinds = collections.defaultdict(list)
    for path in folder.glob('*-*T*Z.tar'):
        kinds[path.name.rpartition('-')[0]].append(path)
    for kind, paths in sorted(kinds.items()):
        newest = max(paths)
        written = newest.stat()
        yield Backups(
            kind,
            len(paths),
            newest.name,
            time.time() - written.st_mtime,
            written.st_size,
        )


def ages(folder: str) -> Iterator[metrics.Family]:
    """Yield the metric, which says as well that there is no daily backup."""
    found = {(one.kind,): one.age for one in list_kinds(pathlib.Path(folder))}
    yield AGE.of({(_DAILY,): math.inf} | found)
