"""The order of tests: random, with the stories first.

A test that needs what another one has left, or does not bear it, passes in one
order only. So every run has another one: that of the seed of its samples. Tests
of a file stay together, and so do those that share a parametrised fixture.

Half of the workers of pytest-xdist begin with the stories. They take longest,
and wait more than they work: the other workers use the processors meanwhile.
`worksteal` gives each worker an equal part of the tests, in their order, and
later what others have not begun.
"""

import itertools
import random

import pytest

from tests.support import sampling

STORIES = 'tests/functional/stories/'


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config, items):
    # A limited run of all cases continues where the one before has ended.
    if not config.option.exhaust:
        items[:] = shuffled(items, sampling.seed())
    yield  # others group by fixtures, and select
    if hasattr(config, 'workerinput') and not config.option.exhaust:
        items[:] = spread(items, config.workerinput['workercount'])


def shuffled(items, seed):
    """Return the items with the files, and the tests of each, in random order."""
    rng = random.Random(f'order {seed}')
    files = [list(group) for _, group in itertools.groupby(items, _file_of)]
    rng.shuffle(files)
    for file in files:
        rng.shuffle(file)
    return [*itertools.chain.from_iterable(files)]


def _file_of(item):
    return item.nodeid.partition('::')[0]


def spread(items, workers):
    """Return the items so that half of equal parts begin with stories.

    Those of one file stay together: they may share an installation.
    """
    stories = [item for item in items if item.nodeid.startswith(STORIES)]
    others = (item for item in items if not item.nodeid.startswith(STORIES))
    files = [list(group) for _, group in itertools.groupby(stories, _file_of)]
    parts = [[] for _ in range(workers)]
    for file in sorted(files, key=len, reverse=True):
        min(parts[: max(workers // 2, 1)], key=len).extend(file)
    remaining, spread = len(items), []
    for number, part in enumerate(parts):
        size = remaining // (workers - number)
        spread += part
        spread += itertools.islice(others, max(size - len(part), 0))
        remaining = len(items) - len(spread)
    return [*spread, *others]
