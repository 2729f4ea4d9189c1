"""What `make test` and `make exhaust` select."""

import collections
import types

import pytest

from tests.support import databases
from tests.support import sampling
from tests.support import tiers


class Item:
    """A test as it is collected, on one database."""

    def __init__(self, case, *marks):
        kind, more = case, ()
        if case in databases.EACH[1:]:
            (kind,), more, _ = case
        self.nodeid = kind
        self.callspec = types.SimpleNamespace(params={'database_url': kind})
        self._marks = {mark.name: mark for mark in (*marks, *more)}

    def get_closest_marker(self, name):
        return self._marks.get(name)


def select(*marks, exhaust):
    """Return the databases on which a test with these marks runs."""
    config = types.SimpleNamespace(
        option=types.SimpleNamespace(exhaust=exhaust, time_limit=0.0),
        hook=types.SimpleNamespace(pytest_deselected=lambda items: None),
        stash=collections.defaultdict(dict),
    )
    items = [Item(case, *marks) for case in databases.EACH]
    tiers.pytest_collection_modifyitems(config, items)
    return [item.nodeid for item in items]


@pytest.mark.parametrize(
    'marks, usual, exhaustive',
    [
        ([], databases.KINDS[:1], databases.KINDS[1:]),
        ([sampling.dialects], databases.KINDS, ()),
        ([sampling.enumeration], databases.KINDS[:1], databases.KINDS),
        (
            [sampling.suite('of one', 1).mark],
            databases.KINDS[:1],
            databases.KINDS,
        ),
        (
            [sampling.dialects, sampling.enumeration],
            databases.KINDS,
            databases.KINDS,
        ),
        (
            [sampling.combinations('database_url').mark],
            databases.KINDS,
            databases.KINDS,
        ),
    ],
)
def test_each_tier_has_its_databases(marks, usual, exhaustive):
    assert tuple(select(*marks, exhaust=False)) == tuple(usual)
    assert tuple(select(*marks, exhaust=True)) == tuple(exhaustive)
