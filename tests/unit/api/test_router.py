"""The index finds what Routes' mapper finds, for every URL."""

import re

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import pytest
from routes import URLGenerator

from manila_lite.api import router
from manila_lite.api import routes
from manila_lite.api.router import Route
from tests.support import reference
from tests.unit.api import sample_controller as shelves

REGEX = r'[0-9a-f\-]+'
PROJECTS = ['', '/0123abcd-ef', '/admin', '/shares', '/types']

# Shapes that could be taken for each other.
TRICKY = [
    Route('GET', '/types/{id}', 'c', 'h'),
    Route('GET', '/types/default', 'c', 'h'),
    Route('GET', '/types/{id}/specs/{key}', 'c', 'h'),
    Route('GET', '/types/{id}/specs', 'c', 'h', kind='collection'),
    Route('GET', '/types/default/specs/{key}', 'c', 'h'),
    Route('GET', '/types/{id}/specs/all', 'c', 'h'),
    Route('PUT', '/types/{id}', 'c', 'h'),
    Route('GET', '/types', 'c', 'h'),
    Route('GET', '/types/detail', 'c', 'h'),
    Route('GET', '/{what}/types', 'c', 'h'),
    Route('GET', '/', 'c', 'h', kind='root'),
]


def published():
    """Routes of every published operation."""
    paths = dict.fromkeys(
        (row['method'], row['path'].removeprefix('/v2'))
        for row in reference.table('api-surface.csv')
        if row['path'].startswith('/v2/') and row['method'] != 'any'
    )
    return [
        Route(method, path, 'c', 'h', kind='root' if path == '/' else '')
        for method, path in paths
    ]


def found_by_mapper(mapper, table, method, path):
    match = mapper.match(path, {'REQUEST_METHOD': method})
    if match is None:
        return None
    route = table[int(match['route_number'])]
    return (
        route,
        [match[name] for name in route.names],
        match.get('url_project'),
    )


def found_by_index(index, method, path):
    found = index.find(method, path)
    return found and (found.routes[0], found.values, found.project)


class Both:
    def __init__(self, table, regex=REGEX):
        self.table = table
        self.mapper = router.build_mapper(table, regex)
        self.index = router.RouteIndex(table, regex)

    def find(self, method, path):
        """What both of them find; they may not differ."""
        found = found_by_index(self.index, method, path)
        assert found == found_by_mapper(
            self.mapper, self.table, method, path
        ), path
        return found


@pytest.mark.parametrize(
    'make',
    [lambda: routes.ROUTES, lambda: shelves.ROUTES, lambda: TRICKY, published],
    ids=['ours', 'shelves', 'tricky', 'published'],
)
def test_index_finds_every_route_in_all_its_forms_as_the_mapper_does(make):
    both = Both(make())
    url = URLGenerator(both.mapper, {})
    reached = set()
    for number, route in enumerate(both.table):
        names = {name: f'{name}-7' for name in route.names}
        path = url(str(number), **names)
        assert (
            url(f'project-{number}', url_project='f0', **names)
            == ('/f0' + path)
            or route.kind == 'root'
        )
        for project in PROJECTS:
            for suffix in ('', '.json', '/', '.xml'):
                for method in (route.method, 'GET', 'PATCH'):
                    found = both.find(method, project + path + suffix)
                    if found and project + suffix == '':
                        reached.add(found[0])
    first_windows = {
        both.index.find(route.method, _plain(route)).routes[0]
        for route in both.table
    }
    assert reached == first_windows


def _plain(route):
    return re.sub(r'\{(\w+)\}', r'\1-7', route.path)


WORDS = [
    'types',
    'default',
    'specs',
    'all',
    'detail',
    'a1',
    'ff-0',
    '',
    'x',
    'detail.json',
    'a1.json',
    '.json',
    'types.json',
    'é',
    'a b',
    '{id}',
    '%41',
    '..',
    'specs.json',
    'default.json',
]


@settings(max_examples=500)
@given(
    st.sampled_from(['GET', 'PUT', 'POST']),
    st.lists(
        st.sampled_from(WORDS)
        | st.text(
            st.characters(exclude_characters='/', exclude_categories=['C'])
        ),
        max_size=6,
    ),
    st.sampled_from([REGEX, '[^/]+', 'a1|ff-0']),
)
def test_index_and_mapper_agree_on_garbage(method, segments, regex):
    TRICKY_BOTH[regex].find(method, '/' + '/'.join(segments))


TRICKY_BOTH = {
    regex: Both(TRICKY, regex) for regex in (REGEX, '[^/]+', 'a1|ff-0')
}


@pytest.mark.parametrize(
    'path, kind',
    [
        ('/shares', 'collection'),
        ('/shares/detail', 'collection'),
        ('/shares/{id}', 'member'),
        ('/shares/{id}/action', 'member'),
        ('/shares/{id}/metadata', 'free'),
        ('/shares/manage', 'free'),
        ('/types/default', 'free'),
    ],
)
def test_kind_follows_from_the_path(path, kind):
    assert Route('GET', path, 'c', 'h').kind == kind


def test_unknown_kind_is_refused():
    with pytest.raises(ValueError, match='not a kind'):
        Route('GET', '/x', 'c', 'h', kind='thing')


@pytest.mark.parametrize(
    'first, second',
    [
        ((None, '2.6'), ('2.6', None)),
        ((None, None), ('2.50', None)),
        (('2.7', '2.9'), (None, None)),
    ],
)
def test_two_routes_for_one_path_and_version_are_refused(first, second):
    with pytest.raises(ValueError, match=r'GET /x/\{\} has two routes'):
        router.check_overlaps(
            [
                Route('GET', '/x/{a}', 'c', 'h', *first),
                Route('GET', '/x/{b}', 'c', 'i', *second),
            ]
        )


def test_disjoint_windows_and_other_methods_are_accepted():
    router.check_overlaps(
        [
            Route('GET', '/x/{a}', 'c', 'h', until='2.6'),
            Route('GET', '/x/{b}', 'c', 'i', since='2.7'),
            Route('PUT', '/x/{a}', 'c', 'j'),
            Route('GET', '/x/y', 'c', 'k'),
        ]
    )


def test_our_own_table_is_sound():
    router.check_overlaps(routes.ROUTES)


# Over HTTP


@pytest.mark.parametrize(
    'path',
    [
        '/v2/shelves/a1',
        '/v2/abcdef0123/shelves/a1',
        '/v2/shelves/a1.json',
        '/v2/abcdef0123/shelves/a1.json',
    ],
)
def test_path_works_with_and_without_project_and_suffix(client, path):
    assert client('GET', path).json['shelf']['id'] == 'a1'


@pytest.mark.parametrize('roles', ['reader', 'admin'])
def test_foreign_project_in_the_url_is_malformed(client, roles):
    answer = client('GET', '/v2/fedcba9876/shelves', roles=roles)
    assert answer.status_int == 400
    assert answer.json == {
        'badRequest': {'code': 400, 'message': 'Malformed request url'}
    }


def test_project_of_another_form_is_taken_on_free_paths_only(client):
    assert client('GET', '/v2/admin/shelves').status_int == 404
    answer = client('GET', '/v2/admin/shelves/a1/books/b')
    assert answer.status_int == 400  # it is not the caller's project


@pytest.mark.parametrize(
    'method, path',
    [
        ('GET', '/v2/nowhere'),
        ('GET', '/v2/shelves/'),
        ('PATCH', '/v2/shelves'),
        ('DELETE', '/v2/shelves'),
        ('GET', '/v2/shelves/a1/books/b.json/c'),
        ('GET', '/v2//shelves'),
        ('GET', '/v2/shelves/a\n'),
        ('GET', '/v2/shelves/a\0'),
        ('GET', '/v2/abcdef0123'),
        ('GET', '/v2/abcdef0123/'),
        ('GET', '/v2/shelves/\xff'),
        ('GET', '/v1/shelves'),
        ('GET', '/v22'),
        ('BREW', '/v2/shelves'),
    ],
)
def test_unknown_url_is_404_in_plain_text(client, method, path):
    answer = client(method, path)
    assert answer.status_int == 404
    assert answer.content_type == 'text/plain'
    assert 'itemNotFound' not in answer.text


def test_path_is_read_as_utf_8(client):
    path = '/v2/shelves/a1/books/Bücher'.encode().decode('latin-1')
    assert client('GET', path).json['book'] == 'Bücher'


def test_suffix_is_part_of_a_name_on_free_paths(client):
    answer = client('GET', '/v2/shelves/a1/books/b.json')
    assert answer.json['book'] == 'b.json'


def test_head_is_get_without_the_body(client):
    answer = client('HEAD', '/v2/shelves/a1')
    assert answer.status_int == 200
    assert answer.body == b''
    assert client('HEAD', '/v2/shelves/none').status_int == 404
