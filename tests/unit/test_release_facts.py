"""Every fact of the published release notes has a test or a reason.

A test that fails if a fact does not hold is marked with
`pytest.mark.facts(*ids)`, or so is a row of its table. Facts that do not hold
here are in `differences.FACTS`, with the reason.
"""

import ast
import collections
import pathlib

from tests.functional.api import differences
from tests.support import reference

TESTS = pathlib.Path(__file__).resolve().parents[1]

FACTS = {row['id'] for row in reference.table('release-facts.csv')}


def _is_call(node, name):
    return isinstance(node, ast.Call) and ast.unparse(node.func) == name


def _is_mark(node):
    return _is_call(node, 'pytest.mark.facts')


def _tests_of(tree):
    """Yield what pytest marks: tests, and the rows of their tables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if node.name.lower().startswith('test'):
                yield from node.decorator_list
        elif _is_call(node, 'pytest.param'):
            yield from (
                keyword.value for keyword in node.keywords if keyword.arg == 'marks'
            )


def _marks():
    """Yield each mark in the tests, and whether pytest sees it."""
    for path in TESTS.rglob('*.py'):
        text = path.read_text()
        if 'mark.facts(' not in text or path == pathlib.Path(__file__):
            continue
        tree = ast.parse(text)
        seen = {
            id(node)
            for test in _tests_of(tree)
            for node in ast.walk(test)
            if _is_mark(node)
        }
        for node in ast.walk(tree):
            if _is_mark(node):
                where = f'{path.relative_to(TESTS)}:{node.lineno}'
                yield where, node, id(node) in seen


def _tested():
    """Return where each marked id is."""
    places = collections.defaultdict(list)
    for where, node, _ in _marks():
        for arg in node.args:
            places[ast.literal_eval(arg)].append(where)
    return places


def test_every_fact_has_a_test_or_a_reason():
    known = set(_tested()) | set(differences.FACTS)
    assert sorted(FACTS - known) == []


def test_marked_facts_are_in_the_table():
    assert {fact: where for fact, where in _tested().items() if fact not in FACTS} == {}
    assert set(differences.FACTS) <= FACTS


def test_only_tests_and_rows_of_their_tables_are_marked():
    assert [where for where, _, seen in _marks() if not seen] == []
