"""Filters and sort keys of lists do what they say.

A filter that is accepted and does nothing would show everything, whatever
its value is.
"""

import re
import typing
import urllib.parse

from manila_lite.api import paging, routes, wsgi
from manila_lite.api.description import parameters
from manila_lite.api.router import RouteIndex
from tests.functional.api import published_api
from tests.functional.api.examples.registry import example
from tests.functional.api.published_api import by_key
from tests.functional.api.test_published_surface import SERVED
from tests.functional.api.views.registry import VIEWS

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


# Markers of lists without pages


class _Listening:
    """A client that keeps the lists that it is answered, by path."""

    def __init__(self, api):
        self._api = api
        self.lists = {}

    def __getattr__(self, name):
        return getattr(self._api, name)

    def get(self, path, **options):
        answer = self._api.get(path, **options)
        for key, items in answer.items():
            if (
                key not in ('versions', 'values')
                and not re.search(r'\b(marker|limit)=', path)
                and isinstance(items, list)
                and items
                and {'id', 'name'} & items[0].keys()
            ):
                self.lists[path, key] = options, items
        return answer


def test_marker_of_every_list_names_the_last_item_seen(sample):
    """Clients such as openstacksdk read a list until nothing follows."""
    seen = set()
    for view in VIEWS:
        api = _Listening(sample.apis[view.personas[0]])
        view.fetch_items(sample, api, published_api.VERSIONS[-1])
        for (path, key), (options, items) in list(api.lists.items()):
            names = [item.get('id', item.get('name')) for item in items]
            for number in {0, len(items) - 1}:
                separator = '&' if '?' in path else '?'
                marked = f'{path}{separator}marker={names[number]}'
                assert api.get(marked, **options)[key] == items[number + 1 :], marked
            seen.add(key)
    assert seen >= {'share_types', 'access_list', 'services', 'pools', 'shares'}
