"""Filters of lists, by version and audience."""

import types

import pytest

from manila_lite import exception
from manila_lite.api.filters import Filter, exact, filters, non_empty, number

ALL = filters(
    *exact('status'),
    Filter('name', 'display_name'),
    Filter('display_name'),
    Filter('zone', since='2.10', until='2.20'),
    Filter('size', parse=number),
    Filter('owner', admin_only=True),
    Filter('host', policy='list_by_host'),
)


class Caller:
    def __init__(self, is_admin):
        self.is_admin = is_admin

    def authorize(self, policy):
        if not self.is_admin:
            raise exception.PolicyNotAuthorized(rule=policy)


def request(minor=99, is_admin=False, **query):
    return types.SimpleNamespace(minor=minor, query=query, ctx=Caller(is_admin))


def test_values_have_the_names_of_the_criteria():
    assert ALL.values(request(status='error', name='a', size='7')) == {
        'status': 'error',
        'display_name': 'a',
        'size': 7,
    }


def test_unknown_keys_are_ignored():
    assert ALL.values(request(colour='red')) == {}


def test_later_row_of_one_name_counts():
    found = ALL.values(request(display_name='b', name='a'))
    assert found == {'display_name': 'b'}


@pytest.mark.parametrize('minor, found', [(9, {}), (10, {'zone': 'z'}), (21, {})])
def test_key_outside_its_versions_is_ignored(minor, found):
    assert ALL.values(request(minor, zone='z')) == found


def test_key_for_administrators_is_ignored_from_others():
    assert ALL.values(request(owner='u')) == {}
    assert ALL.values(request(owner='u', is_admin=True)) == {'owner': 'u'}


def test_key_with_a_policy_is_refused_without_it():
    with pytest.raises(exception.PolicyNotAuthorized):
        ALL.values(request(host='h'))
    assert ALL.values(request(host='h', is_admin=True)) == {'host': 'h'}


def test_empty_values_are_skipped_parsed_or_refused_as_declared():
    query = request(status='')
    assert ALL.values(query) == {'status': ''}
    assert filters(*exact('status'), skip_empty=True).values(query) == {}
    with pytest.raises(exception.InvalidInput, match='status must not'):
        filters(Filter('status', parse=non_empty)).values(query)


def test_number_names_the_key_that_is_wrong():
    with pytest.raises(exception.InvalidInput, match='size '):
        ALL.values(request(size='big'))
