"""Paging parameters of queries and links in responses."""

import datetime
import types
import urllib.parse

import pytest

from manila_lite import exception
from manila_lite.api import links, paging, wsgi

MADE = datetime.datetime(2026, 5, 4, 1, 2, 3, 4)

KEYS = {'created_at': 'created_at', 'name': 'display_name'}


def request(path='/v2/shares', query='', base_url=None, project=None, **environ):
    return wsgi.Request(
        {
            'PATH_INFO': path,
            'QUERY_STRING': query,
            'SCRIPT_NAME': '',
            'HTTP_HOST': 'host:8786',
            'wsgi.url_scheme': 'http',
            **environ,
        },
        base_url=base_url,
        url_project=project,
    )


@pytest.mark.parametrize(
    'query, cap, limit, offset',
    [
        ({}, None, None, 0),
        ({}, 10, 10, 0),
        ({'limit': '5'}, None, 5, 0),
        ({'limit': '5'}, 10, 5, 0),
        ({'limit': '50'}, 10, 10, 0),
        ({'limit': '0'}, 10, 10, 0),
        ({'limit': '0'}, None, 0, 0),
        ({'offset': '7'}, None, None, 7),
        ({'limit': '00000000002', 'offset': '00000000007'}, None, 2, 7),
        ({'limit': '2147483647'}, 9, 9, 0),
    ],
)
def test_limit_and_offset_are_read(query, cap, limit, offset):
    page = paging.parse(query, cap=cap)
    assert (page.limit, page.offset) == (limit, offset)


@pytest.mark.parametrize('name', ['limit', 'offset'])
@pytest.mark.parametrize(
    'text', ['', '-1', 'x', '1.5', '1_0', ' 1', '+1', '٣', '0x1', 'None']
)
def test_malformed_number_is_refused(name, text):
    with pytest.raises(exception.InvalidInput, match=f'{name} must be'):
        paging.parse({name: text})


@pytest.mark.parametrize('text', ['2147483648', '9' * 5000])
def test_limit_that_is_too_large_is_refused(text):
    with pytest.raises(exception.InvalidInput, match='limit must be'):
        paging.parse({'limit': text})


@pytest.mark.parametrize(
    'query, key, direction',
    [
        ({}, 'created_at', 'desc'),
        ({'sort_key': 'name', 'sort_dir': 'asc'}, 'display_name', 'asc'),
        ({'sort_dir': 'desc'}, 'created_at', 'desc'),
    ],
)
def test_order_is_read(query, key, direction):
    page = paging.parse(query, sort_keys=KEYS)
    assert (page.sort_key, page.sort_dir) == (key, direction)


@pytest.mark.parametrize(
    'query',
    [
        {'sort_key': 'display_name'},
        {'sort_key': ''},
        {'sort_dir': 'DESC'},
        {'sort_dir': ''},
    ],
)
def test_unknown_order_is_refused(query):
    with pytest.raises(exception.InvalidInput, match='sort_'):
        paging.parse(query, sort_keys=KEYS)


def test_order_is_without_effect_if_not_supported():
    page = paging.parse({'sort_key': 'x', 'sort_dir': 'asc'})
    assert (page.sort_key, page.sort_dir) == ('created_at', 'desc')
    with pytest.raises(exception.InvalidInput, match='sort_dir must be'):
        paging.parse({'sort_dir': 'y'})


@pytest.mark.parametrize(
    'query, slice_',
    [
        ({}, [0, 1, 2, 3]),
        ({'limit': '2'}, [0, 1]),
        ({'offset': '3'}, [3]),
        ({'limit': '2', 'offset': '1'}, [1, 2]),
        ({'limit': '2', 'offset': '9'}, []),
    ],
)
def test_list_in_memory_is_sliced(query, slice_):
    assert paging.parse(query).slice_rows([0, 1, 2, 3]) == slice_


@pytest.mark.parametrize(
    'text, truth',
    [
        ('1', True),
        ('true', True),
        ('True', True),
        ('0', False),
        ('false', False),
        (None, True),
    ],
)
def test_flag_is_read(text, truth):
    query = {} if text is None else {'all_tenants': text}
    assert paging.parse_flag(query, 'all_tenants', default=True) is truth


def test_malformed_flag_is_refused():
    with pytest.raises(exception.InvalidInput, match='all_tenants must be a boolean'):
        paging.parse_flag({'all_tenants': 'all'}, 'all_tenants')


def query_of(link):
    text = urllib.parse.urlsplit(link['href']).query
    return dict(urllib.parse.parse_qsl(text))


def next_links(query, shown, *, sort_keys=None, **more):
    req = request(query=query, **more)
    return paging.next_links(
        req,
        paging.parse(req.query, sort_keys=sort_keys),
        'shares',
        [types.SimpleNamespace(id=id, created_at=MADE) for id in shown],
    )


@pytest.mark.parametrize(
    'query, shown', [('', 'ab'), ('limit=3', 'ab'), ('limit=0', ''), ('limit=2', '')]
)
def test_partial_or_unlimited_page_has_no_next_link(query, shown):
    assert next_links(query, shown) == []


def test_full_page_links_to_the_next_one():
    assert next_links('limit=2&status=error', 'ab', project='f0') == [
        {
            'rel': 'next',
            'href': 'http://host:8786/v2/f0/shares?limit=2'
            '&status=error&offset=2&marker=b'
            '&after=2%2C2026-05-04+01%3A02%3A03.000004%2Cb',
        }
    ]
    again = next_links('limit=2&offset=2&marker=b', 'cd')
    assert '?limit=2&offset=4&marker=d&after=4%2C' in again[0]['href']


def test_link_says_behind_which_row_its_page_begins():
    (link,) = next_links('limit=2&offset=4', 'ab')
    page = paging.parse(query_of(link))
    assert (page.limit, page.offset) == (2, 6)
    assert page.after == (MADE, 'b')


def test_changed_offset_of_a_link_counts():
    (link,) = next_links('limit=2', 'ab')
    page = paging.parse(query_of(link) | {'offset': '9'})
    assert (page.offset, page.after) == (9, None)


def parse_link(link, **changed):
    return paging.parse(query_of(link) | changed, sort_keys=KEYS)


def test_link_of_another_order_counts_by_its_offset():
    (link,) = next_links('limit=1&sort_key=name', 'a', sort_keys=KEYS)
    page = parse_link(link)
    assert (page.offset, page.after, page.marker) == (1, None, None)


@pytest.mark.parametrize('order', ['', '&sort_key=name'])
def test_changed_marker_of_a_link_counts(order):
    """So does openstacksdk ask for what follows the last page."""
    (link,) = next_links(f'limit=2{order}', 'ab', sort_keys=KEYS)
    page = parse_link(link, marker='z')
    assert (page.after, page.marker) == (None, 'z')


@pytest.mark.parametrize('query', ['', '&offset=0', '&offset=0&after='])
def test_marker_alone_counts(query):
    page = paging.parse(request(query=f'limit=2&marker=b{query}').query)
    assert (page.offset, page.marker) == (0, 'b')


def test_marker_beside_an_offset_does_not_count():
    page = paging.parse(request(query='limit=2&marker=b&offset=4').query)
    assert (page.offset, page.marker) == (4, None)


def test_page_behind_a_marker_links_to_what_follows_it():
    (link,) = next_links('limit=2&marker=b', 'cd')
    assert parse_link(link).after == (MADE, 'd')
    (link,) = next_links('limit=2&marker=b&sort_key=name', 'cd', sort_keys=KEYS)
    page = parse_link(link)
    assert (page.offset, page.marker) == (0, 'd')


@pytest.mark.parametrize(
    'text',
    [
        'x',
        '2',
        '2,',
        '2,2026-05-04',
        '2,2026-05-04,',
        '2,yesterday,b',
        '2,2026-05-04,b\0',
        '2,2026-05-04,é',
        '2,2026-05-04,' + 'b' * 37,
    ],
)
def test_malformed_position_is_refused(text):
    with pytest.raises(exception.InvalidInput, match='after must be'):
        paging.parse({'offset': '2', 'after': text})


def test_large_offset_is_for_links_only():
    largest = str(paging.MAX_OFFSET)
    assert paging.parse({'offset': largest}).offset == paging.MAX_OFFSET
    beyond = str(paging.MAX_OFFSET + 1)
    for text in (beyond, '9223372036854775807', '9' * 5000):
        page = paging.parse({'offset': text, 'limit': '7'})
        assert (page.limit, page.offset) == (1, paging.MAX_OFFSET)
        assert not page.slice_rows(range(paging.MAX_OFFSET))
        with pytest.raises(exception.InvalidInput, match=f'at most {largest}'):
            page.slice_rows(range(paging.MAX_OFFSET + 1))
    linked = paging.parse({'offset': beyond, 'after': f'{beyond},{MADE},b'})
    assert linked.after == (MADE, 'b')


@pytest.mark.parametrize(
    'more, own, bookmark',
    [
        ({}, 'http://host:8786/v2/shares/1', 'http://host:8786/shares/1'),
        (
            {'project': 'f0'},
            'http://host:8786/v2/f0/shares/1',
            'http://host:8786/f0/shares/1',
        ),
        (
            {'base_url': 'https://out/', 'project': 'f0'},
            'https://out/v2/f0/shares/1',
            'https://out/f0/shares/1',
        ),
        (
            {'base_url': 'https://out/share'},
            'https://out/share/v2/shares/1',
            'https://out/share/shares/1',
        ),
        (
            {'SCRIPT_NAME': '/share'},
            'http://host:8786/share/v2/shares/1',
            'http://host:8786/share/shares/1',
        ),
    ],
)
def test_links_have_the_form_of_the_request(more, own, bookmark):
    assert links.Links(request(**more), 'shares')('1') == [
        {'rel': 'self', 'href': own},
        {'rel': 'bookmark', 'href': bookmark},
    ]


def test_unusual_project_id_is_quoted():
    req = request(project='a b/é')
    assert links.collection_url(req, 'x').endswith('/v2/a%20b%2F%C3%A9/x')


def test_answer_has_links_and_count_only_where_there_are_any():
    req = request(query='limit=1')
    page = paging.parse(req.query)
    items = [{'id': 'a'}]
    rows = [types.SimpleNamespace(id='a', created_at=MADE)]
    assert paging.answer(req, page, 'x', 'things', [], []) == {'things': []}
    assert paging.answer(req, page, 'x', 'things', items, rows, count=0) == {
        'things': items,
        'things_links': paging.next_links(req, page, 'x', rows),
        'count': 0,
    }
    assert 'other' in paging.answer(
        req, page, 'x', 'things', items, rows, links_key='other'
    )
