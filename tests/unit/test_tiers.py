"""What `make test` and `make exhaust` select."""

import collections
import types

import pytest

from tests.support import databases, sampling, tiers

SQLITE, *SERVERS = databases.KINDS


class Item:
    """A test as it is collected, on one database."""

    def __init__(self, case, *marks):
        self.kind, more = case, ()
        if case in databases.EACH[1:]:
            (self.kind,), more, _ = case
        self.nodeid = f'test[{self.kind}]'
        self.callspec = types.SimpleNamespace(params={'database_url': self.kind})
        self._marks = {mark.name: mark for mark in (*marks, *more)}

    def get_closest_marker(self, name):
        return self._marks.get(name)


def select(*marks, exhaust):
    """Return the databases on which a test with these marks runs."""
    items = [Item(case, *marks) for case in databases.EACH]
    return [item.kind for item in select_of(items, exhaust)]


def select_of(items, exhaust, cases=None):
    """Return those of the items that run."""
    config = types.SimpleNamespace(
        option=types.SimpleNamespace(exhaust=exhaust, time_limit=0.0, cases=cases),
        hook=types.SimpleNamespace(pytest_deselected=lambda items: None),
        stash=collections.defaultdict(dict),
    )
    tiers.pytest_collection_modifyitems(config, items)
    return items


@pytest.mark.parametrize(
    'marks, servers, exhaustive',
    [
        ([], 0, SERVERS),
        ([sampling.dialects], 1, SERVERS),
        ([sampling.enumeration], 0, databases.KINDS),
        ([sampling.dialects, sampling.enumeration], 1, databases.KINDS),
        ([sampling.combinations('database_url').mark], 1, databases.KINDS),
    ],
)
def test_each_tier_has_its_databases(marks, servers, exhaustive):
    usual = select(*marks, exhaust=False)
    assert usual[0] == SQLITE
    assert len(usual) == 1 + servers
    assert select(*marks, exhaust=True) == [*exhaustive]


def test_suite_is_tried_on_one_database_or_on_all():
    mark = sampling.suite('of one', 1).mark
    assert len(select(mark, exhaust=False)) <= 1
    assert select(mark, exhaust=True) == [*databases.KINDS]


def test_every_server_is_tried_by_some_runs(monkeypatch):
    tried = set()
    for seed in range(20):
        monkeypatch.setenv(sampling.VARIABLE, str(seed))
        tried.update(select(sampling.dialects, exhaust=False))
    assert tried == set(databases.KINDS)


@pytest.mark.parametrize(
    'marks, count, usual, exhaustive',
    [
        ([], 12, 12, 0),
        ([], 13, 12, 13),
        ([sampling.enumeration], 13, 13, 13),  # it has chosen its cases
    ],
)
def test_many_cases_of_a_test_are_a_sample(marks, count, usual, exhaustive):
    items = [Item(f'{number}', *marks) for number in range(count)]
    assert len(select_of(items[:], exhaust=False, cases=12)) == usual
    assert len(select_of(items[:], exhaust=True, cases=12)) == exhaustive
    assert len(select_of(items[:], exhaust=False)) == count
