"""Half of the workers of pytest-xdist begin with the stories.

They take longest, and wait more than they work: the other workers use the
processors meanwhile. `worksteal` gives each worker an equal part of the tests,
in their order, and later what others have not begun.
"""

import itertools

import pytest

STORIES = 'tests/functional/stories/'


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config, items):
    yield  # others select
    if hasattr(config, 'workerinput') and not config.option.exhaust:
        items[:] = spread(items, config.workerinput['workercount'])


def spread(items, workers):
    """Return the items so that half of equal parts begin with stories.

    Those of one file stay together: they may share an installation.
    """
    stories = [item for item in items if item.nodeid.startswith(STORIES)]
    others = (item for item in items if not item.nodeid.startswith(STORIES))
    files = [
        list(group)
        for _, group in itertools.groupby(
            stories, lambda item: item.nodeid.partition('::')[0]
        )
    ]
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
