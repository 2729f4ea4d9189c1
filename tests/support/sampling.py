"""Enumerations: tests of which a run tries a sample, or every case.

There are more crash points, orders of events, combinations of parameters,
databases and generated examples than a usual run has time for. `make test`
tries a sample of each enumeration; `make exhaust` tries all of it. Which cases
are in the sample, and what hypothesis generates, follows from one seed. It is
that of the commit unless MANILA_LITE_TEST_SEED is set, and pytest prints it,
so that a sample can be tried again.
"""

from collections.abc import Iterable, Iterator, Sequence
import itertools
import os
import pathlib
import random
import subprocess
import typing

import pytest

VARIABLE = 'MANILA_LITE_TEST_SEED'
ROOT = pathlib.Path(__file__).parents[2]

enumeration = pytest.mark.enumeration
"""Marks the tests that try a sample of their cases."""

combinations = pytest.mark.combinations
"""Marks the tests of which a run tries a sample of all combinations.

Its arguments are the names of the parameters, such as `database_url`. In a
sample, every value of each of them occurs, but one of the database servers.
"""

dialects = pytest.mark.dialects
"""Marks the tests that every run tries on a database server, too.

These are the tests of what depends on the database: guards against
concurrent changes, locks, isolation, plans, errors, time, migrations, and
the order and comparison of values.
"""

on_server = pytest.mark.on_server
"""Marks the cases of a test on MariaDB and PostgreSQL.

Only `make exhaust` tries those of tests to which the dialect does not matter.
"""

suite = pytest.mark.suite
"""Marks the tests of a suite, of which a run tries a sample.

Its arguments are the name of the suite and the number of tests to try.
"""

Case = typing.TypeVar('Case')

_every_case = False


def seed() -> int:
    """Return the seed of this run; xdist workers inherit it."""
    if VARIABLE not in os.environ:
        os.environ[VARIABLE] = str(_commit())
    return int(os.environ[VARIABLE])


def _commit() -> int:
    """Return a number that differs from commit to commit."""
    try:
        found = subprocess.run(
            ['git', 'rev-parse', '--short=7', 'HEAD'],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        return 0
    return int(found.stdout, 16) if found.returncode == 0 else 0


def try_every_case(wanted: bool) -> None:
    """Decide for the tests that are imported and run from now on."""
    global _every_case
    _every_case = wanted


def tries_every_case() -> bool:
    """Return whether enumerations try all of their cases in this run."""
    return _every_case


def sample(cases: Iterable[Case], most: int) -> list[Case]:
    """Return the cases to try in their order: all, or at most so many."""
    cases = list(cases)
    if _every_case or len(cases) <= most:
        return cases
    rng = random.Random(f'{seed()} of {len(cases)}')
    chosen = sorted(rng.sample(range(len(cases)), most))
    return [cases[number] for number in chosen]


def part(cases: Iterable[Case], name: str, of: int = 4) -> list[Case]:
    """Return one case of so many where all are tried, else none.

    For what takes too long to try on every case in every run. Which cases
    these are follows from the seed and the name of the part.
    """
    if not _every_case:
        return []
    first = random.Random(f'{seed()} {name}').randrange(of)
    return list(cases)[first::of]


def steps(of: int = 3) -> Iterator[int]:
    """Yield the numbers of steps to try, from 1: all, or one of so many.

    The caller stops after the last step.
    """
    if _every_case:
        return itertools.count(1)
    return itertools.count(1 + random.Random(f'{seed()} of steps').randrange(of), of)


def covering(cases: Sequence[Sequence[object]], name: str) -> list[int]:
    """Return the numbers of a few combinations, in their order.

    Each value of every parameter is in one of them. `name` says what is
    combined, so that two lists of the same combinations differ in the sample.
    """
    numbers = list(range(len(cases)))
    random.Random(f'{seed()} of {name}').shuffle(numbers)
    values = [set(enumerate(case)) for case in cases]
    missing = set().union(*values)
    chosen = []
    while missing:
        best = max(numbers, key=lambda number: len(missing & values[number]))
        chosen.append(best)
        missing -= values[best]
    return sorted(chosen)


def seeds(count: int, most: int) -> list[int]:
    """Return seeds of random orders to try, of 0 to count - 1."""
    return sample(range(count), most)


def examples(count: int, most: int) -> int:
    """Return the number of examples that hypothesis generates."""
    return count if _every_case else min(count, most)
