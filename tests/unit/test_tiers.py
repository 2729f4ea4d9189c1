"""What `make test` and `make exhaust` select."""

import collections
import types

import pytest

from tests.support import databases, sampling, tiers

SQLITE, *SERVERS = databases.KINDS


class Item:
    """A test as it is collected, on one database."""

    def __init__(self, case, *marks, test='test'):
        self.kind, more = case, ()
        if case in databases.EACH[1:]:
            (self.kind,), more, _ = case
        self.nodeid = f'{test}[{self.kind}]'
        self.callspec = types.SimpleNamespace(params={'database_url': self.kind})
        self._marks = {mark.name: mark for mark in (*marks, *more)}

    def get_closest_marker(self, name):
        return self._marks.get(name)


def select(*marks, exhaust):
    """Return the databases on which a test with these marks runs."""
    items = [Item(case, *marks) for case in databases.EACH]
    return [item.kind for item in select_of(items, exhaust)]


def select_of(items, exhaust, cases=None, **options):
    """Return those of the items that run."""
    config = types.SimpleNamespace(
        option=types.SimpleNamespace(
            **{'exhaust': exhaust, 'time_limit': 0.0, 'cases': cases}
            | {'one_of_each': False}
            | options
        ),
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
    'test, marks, count, usual, exhaustive',
    [
        ('tests/unit/test_one.py::test', [], 12, 12, 0),
        ('tests/unit/test_one.py::test', [], 13, 12, 13),
        ('tests/functional/test_one.py::test', [], 6, 6, 0),
        ('tests/functional/test_one.py::test', [], 7, 6, 7),
        # It has chosen its cases.
        ('tests/unit/test_one.py::test', [sampling.enumeration], 13, 13, 13),
    ],
)
def test_many_cases_of_a_test_are_a_sample(test, marks, count, usual, exhaustive):
    items = [Item(f'{number}', *marks, test=test) for number in range(count)]
    assert len(select_of(items[:], exhaust=False, cases=12)) == usual
    assert len(select_of(items[:], exhaust=True, cases=12)) == exhaustive
    assert len(select_of(items[:], exhaust=False)) == count
    assert len(select_of(items[:], exhaust=True)) == count * bool(marks)


@pytest.mark.parametrize('folder, tried', [('api', 3), ('share', 3), ('db', 5)])
def test_half_of_the_tests_of_services_are_tried_on_a_server(folder, tried):
    path = f'tests/functional/{folder}/test_one.py'
    items = [
        Item(case, sampling.dialects, test=f'{path}::test_{number}')
        for number in range(5)
        for case in databases.EACH
    ]
    usual = select_of(items[:], exhaust=False)
    assert len(usual) == 5 + tried
    every = {item.nodeid for item in items if item.kind != SQLITE}
    assert {item.nodeid for item in select_of(items[:], exhaust=True)} == every


def enumerations(**counts):
    """Return tests by their names, with so many cases of each."""
    return [
        Item(f'{number}', sampling.enumeration, test=name)
        for name, count in counts.items()
        for number in range(count)
    ]


def run_with(monkeypatch, seed, items, **options):
    """Return the ids of the tests of a run with this seed, in their order."""
    monkeypatch.setenv(sampling.VARIABLE, str(seed))
    selected = select_of(items[:], exhaust=True, **options)
    return [item.nodeid for item in selected]


def names_of(ids):
    return [id.partition('[')[0] for id in ids]


def test_run_begins_with_one_case_of_each_test(monkeypatch):
    """A test that is broken usually fails in all of its cases."""
    items = enumerations(short=2, long=500, last=3)
    begun = set()
    for seed in range(1000, 1010):
        run = run_with(monkeypatch, seed, items)
        assert sorted(names_of(run[:3])) == ['last', 'long', 'short']
        assert sorted(run) == sorted(item.nodeid for item in items)
        for limit in (0.0, 20.0):
            each = run_with(
                monkeypatch, seed, items, time_limit=limit, one_of_each=True
            )
            assert sorted(each) == sorted(run[:3])
        begun.update(run[:3])
    assert len(begun) == 2 + 10 + 3


def test_one_case_of_each_is_one_on_each_database(monkeypatch):
    items = [Item(case) for case in [*databases.EACH, *databases.EACH]]
    run = run_with(monkeypatch, 7, items, one_of_each=True)
    assert run == [f'test[{kind}]' for kind in SERVERS]


def test_runs_together_try_all_cases(monkeypatch):
    """A run that begins at the seed that the last one printed continues it."""
    items = enumerations(short=2, long=50, last=9)
    tried, seed = set(), 12345
    for _ in range(10):
        run = run_with(monkeypatch, seed, items, time_limit=20.0)
        begun = 10
        tried.update(run[:begun])
        seed = tiers.next_seed(seed, begun, 0)
    assert len(tried) == len(items)
