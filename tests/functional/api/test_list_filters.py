"""Filters and sort keys of lists do what they say.

A filter that is accepted and does nothing would show everything, whatever
its value is.
"""

import typing
import urllib.parse

from manila_lite.api import paging, routes, wsgi
from manila_lite.api.description import parameters
from manila_lite.api.router import RouteIndex
from tests.functional.api.examples.registry import example
from tests.functional.api.published_api import by_key
from tests.functional.api.test_published_surface import SERVED

INDEX = RouteIndex(routes.ROUTES, '[0-9a-f]{32}')
ALL_PROJECTS = {'all_tenants', 'all_projects'}
NOT_FILTERS = {*paging.KEYS, *ALL_PROJECTS, 'with_count'}


def declared(operation):
    """Return the query keys of the last version by name, and the flag.

    The flag asks for the resources of all projects.
    """
    found = INDEX.find('GET', operation.path.removeprefix('/v2'))
    rows = [
        row
        for route in (found.routes if found else ())
        for row in parameters.rows(
            wsgi.declaration(route.controller, route.handler).query
        )
        if operation.versions[-1] in row.window
    ]
    keys = {row.key: row for row in rows}
    (flag,) = keys.keys() & ALL_PROJECTS or {''}
    return keys, flag


def filters_of(operation):
    keys, _ = declared(operation)
    return [row for key, row in keys.items() if key not in NOT_FILTERS]


def value_of(row):
    """Return a value of the filter that nothing has; None for flags."""
    kind = str(typing.get_type_hints(row.parse)['return'])
    if 'bool' in kind or row.words:
        return None
    return "{'no such key': 'x'}" if 'dict' in kind else '87654321'


def items(answer):
    (found,) = (
        value
        for key, value in answer.json.items()
        if not key.endswith('_links') and key not in ('count', 'volume_types')
    )
    return found


LISTS = [
    one
    for one in SERVED
    if one.method == 'GET'
    and any(map(value_of, filters_of(one)))
    and 'quota-sets' not in one.path
]


SORTED = [
    one for one in SERVED if one.method == 'GET' and 'sort_key' in declared(one)[0]
]


def sender(sample, operation):
    """Return a function that sends a query about all projects."""
    sample.new_rule()  # of all that is listed, the sample lacks only this
    args = example(operation)(sample)
    keys, flag = declared(operation)
    given = dict(urllib.parse.parse_qsl(args.query.removeprefix('?')))
    always = {key: given[key] for key, row in keys.items() if row.required}
    if flag:
        always[flag] = '1'

    def send(**query):
        query = urllib.parse.urlencode(always | query)
        return sample.send_request(
            operation, args._replace(query=f'?{query}'), minor=operation.versions[-1]
        )

    return send


@by_key(LISTS)
def test_value_that_nothing_has_finds_nothing(sample, operation):
    send = sender(sample, operation)
    assert items(send())
    ignored = []
    for row in filters_of(operation):
        value = value_of(row)
        if value is None:
            continue
        answer = send(**{row.key: value})
        # An unknown resource, or a value of another form, may be refused.
        if answer.status_int not in (400, 404) and items(answer) != []:
            ignored.append(row.key)
    assert ignored == []


REFUSING = ('/v2/share-groups', '/v2/share-group-snapshots', '/v2/share-backups')
"""Lists that refuse a key that is no filter; their detail does so, too."""

FINDING_NOTHING = '/v2/share-servers'
"""The list in which no row has what an unknown key names, as published."""


@by_key(LISTS)
def test_key_that_is_no_filter_changes_nothing_unless_listed(sample, operation):
    send = sender(sample, operation)
    answer = send(no_such_filter='x')
    if operation.path.removesuffix('/detail') in REFUSING:
        assert answer.status_int == 400
        assert 'no_such_filter' in answer.text
    elif operation.path == FINDING_NOTHING:
        assert items(answer) == []
    else:
        assert items(answer) == items(send())


@by_key(SORTED)
def test_list_is_in_the_order_of_a_field_that_it_shows(sample, operation):
    send = sender(sample, operation)
    for key in declared(operation)[0]['sort_key'].words:
        for way in ('asc', 'desc'):
            found = items(send(sort_key=key, sort_dir=way))
            values = [one.get(key) for one in found]
            if None not in values:
                assert values == sorted(values, reverse=way == 'desc'), key
