"""Every listed difference exists and has a test that proves it."""

import pathlib

import pytest

from manila_lite.messages import Detail
from tests.functional.api import differences, published_api
from tests.support import reference, sampling

HERE = pathlib.Path(__file__).parent
TESTS = HERE.parents[1]
PRODUCT = TESTS.parent / 'manila_lite'


@pytest.mark.parametrize('rule', differences.RULES)
def test_rule_has_a_test_that_proves_it(rule):
    mark = f"@differences.proves('{rule}')"
    assert any(mark in file.read_text() for file in HERE.rglob('test_*.py'))


@differences.proves('quota keys of later versions')
@sampling.enumeration
def test_quota_keys_are_unknown_below_their_version(sample):
    """In all earlier versions; the published service checks only some."""
    rows = published_api.view_fields('quota set', 'show and update')
    path = '/v2/quota-sets/project'
    for row in rows:
        for minor in sampling.sample(range(7, row.versions[0]), 5):
            answer = sample.send(
                'PUT', path, minor=minor, body={'quota_set': {row.field: 7}}
            )
            assert answer.status_int == 400, (row.field, minor)
        assert (
            sample.send(
                'PUT',
                path,
                minor=max(7, row.versions[0]),
                body={'quota_set': {row.field: 7}},
            ).status_int
            == 200
        )


def test_unsupported_operations_are_published():
    assert set(differences.UNSUPPORTED_OPERATIONS) <= {
        operation.key for operation in published_api.operations()
    }


def test_missing_fields_are_published():
    for resource, field in differences.MISSING_FIELDS:
        assert field in {
            row.field
            for row in published_api.view_fields(
                resource, *(name for of, name in published_api.view_names([resource]))
            )
        }


def test_each_published_detail_is_written_or_listed_and_reached_by_a_test():
    """Filters name theirs by its code, all others by its name."""
    product = _text(PRODUCT, but='messages.py') + ''.join(
        line
        for line in (PRODUCT / 'messages.py').read_text().splitlines()
        if 'return Detail.' in line
    )
    tests = _text(TESTS, but='test_messages.py')
    unwritten = set()
    for row in reference.table('message-codes.csv'):
        if row['kind'] != 'detail':
            continue
        code, name = row['code'], Detail.of(row['code']).name
        if f'Detail.{name}' in product or f"detail = '{code}'" in product:
            assert any(one in tests for one in (f"'{code}'", f"'{name}'")), name
        else:
            unwritten.add(code)
    assert unwritten == set(differences.UNWRITTEN_DETAILS)


def test_each_published_action_is_written_or_listed_and_reached_by_a_test():
    product = _text(PRODUCT, but='messages.py')
    tests = _text(TESTS, but='test_messages.py')
    unwritten = set()
    for row in reference.table('message-codes.csv'):
        if row['kind'] != 'action':
            continue
        code, name = row['code'], row['name']
        if f'Action.{name}' in product:
            reached = (f"'{code}'", f"'{name}'", f'Action.{name}')
            assert any(one in tests for one in reached), name
        else:
            unwritten.add(code)
    assert unwritten == set(differences.UNWRITTEN_ACTIONS)


def _text(folder, but):
    files = [one for one in folder.rglob('*.py') if one.name != but]
    return ''.join(one.read_text() for one in files if one.name != 'differences.py')
