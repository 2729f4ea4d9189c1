"""Filters of lists: a value that nothing has finds nothing.

A filter that is accepted and does nothing would show everything instead.
"""

import typing
import urllib.parse

from manila_lite.api import paging
from manila_lite.api import routes
from manila_lite.api import wsgi
from manila_lite.api.description import parameters
from manila_lite.api.router import RouteIndex
from tests.functional.api.examples.registry import example
from tests.functional.api.published_api import by_key
from tests.functional.api.test_published_surface import SERVED

INDEX = RouteIndex(routes.ROUTES, '[0-9a-f]{32}')
ALL_PROJECTS = {'all_tenants', 'all_projects'}
NOT_FILTERS = {*paging.KEYS, *ALL_PROJECTS, 'with_count'}


def filters_of(operation):
    """Return the filters that the last version of a list has, and the flag.

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
    (flag,) = {row.key for row in rows} & ALL_PROJECTS or {''}
    return [row for row in rows if row.key not in NOT_FILTERS], flag


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
    and any(map(value_of, filters_of(one)[0]))
    and 'quota-sets' not in one.path
]


@by_key(LISTS)
def test_value_that_nothing_has_finds_nothing(sample, operation):
    sample.new_rule()  # of all that is listed, the sample lacks only this
    args = example(operation)(sample)
    filters, flag = filters_of(operation)

    def send(**query):
        if flag:
            query[flag] = '1'
        return sample.send_request(
            operation,
            args._replace(query=f'?{urllib.parse.urlencode(query)}'),
            minor=operation.versions[-1],
        )

    everything = items(send(**required(filters, args)))
    ignored = []
    for row in filters:
        value = value_of(row)
        if value is None:
            continue
        answer = send(**required(filters, args) | {row.key: value})
        # An unknown resource, or a value of another form, may be refused.
        if answer.status_int not in (400, 404) and items(answer) != []:
            ignored.append(row.key)
    assert everything
    assert ignored == []


def required(filters, args):
    """Return those filters of the example without which there is no list."""
    given = dict(urllib.parse.parse_qsl(args.query.removeprefix('?')))
    return {row.key: given[row.key] for row in filters if row.required}
