"""The index finds what Routes' mapper finds, for every URL."""

import re

from hypothesis import given, settings, strategies as st
import pytest
from routes import URLGenerator

from manila_lite.api import router, routes
from manila_lite.api.router import Route
from tests.support import reference, sampling
from tests.support.routes_mapper import build_mapper
from tests.unit.api import sample_controller as widgets

REGEX = r'[0-9a-f\-]+'
PROJECTS = ['', '/0123abcd-ef', '/admin', '/shares', '/types']

# Paths that can be confused with each other.
AMBIGUOUS = [
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
    """Return the routes of all published operations."""
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
    return (route, [match[name] for name in route.names], match.get('url_project'))


def found_by_index(index, method, path):
    found = index.find(method, path)
    return found and (found.routes[0], found.values, found.project)


class MapperAndIndex:
    def __init__(self, table, regex=REGEX):
        self.table = table
        self.mapper = build_mapper(table, regex)
        self.index = router.RouteIndex(table, regex)

    def find(self, method, path):
        """Return what the index finds; the mapper must find the same."""
        found = found_by_index(self.index, method, path)
        assert found == found_by_mapper(self.mapper, self.table, method, path), path
        return found


@pytest.mark.parametrize(
    'get_table',
    [lambda: routes.ROUTES, lambda: widgets.ROUTES, lambda: AMBIGUOUS, published],
    ids=['ours', 'widgets', 'tricky', 'published'],
)
def test_index_finds_every_route_in_all_its_forms_as_the_mapper_does(get_table):
    both = MapperAndIndex(get_table())
    url = URLGenerator(both.mapper, {})
    reached = set()
    for number, route in enumerate(both.table):
        names = {name: f'{name}-7' for name in route.names}
        path = url(str(number), **names)
        assert (
            url(f'project-{number}', url_project='f0', **names) == ('/f0' + path)
            or route.kind == 'root'
        )
        for project in PROJECTS:
            for suffix in ('', '.json', '/', '.xml'):
                if suffix == '/' and path.endswith('/metadata/key-7'):
                    continue  # the mapper does not know that the key has it
                for method in (route.method, 'GET', 'PATCH'):
                    found = both.find(method, project + path + suffix)
                    if found and project + suffix == '':
                        reached.add(found[0])
    first_windows = {
        both.index.find(route.method, _plain(route)).routes[0] for route in both.table
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


@settings(max_examples=sampling.examples(4000, 60))
@given(
    st.sampled_from(['GET', 'PUT', 'POST']),
    st.lists(
        st.sampled_from(WORDS)
        | st.text(st.characters(exclude_characters='/', exclude_categories=['C'])),
        max_size=6,
    ),
    st.sampled_from([REGEX, '[^/]+', 'a1|ff-0']),
)
def test_index_and_mapper_agree_on_garbage(method, segments, regex):
    AMBIGUOUS_BY_REGEX[regex].find(method, '/' + '/'.join(segments))


AMBIGUOUS_BY_REGEX = {
    regex: MapperAndIndex(AMBIGUOUS, regex) for regex in (REGEX, '[^/]+', 'a1|ff-0')
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
def test_default_kind_depends_on_the_path(path, kind):
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


def test_route_table_has_no_overlaps():
    router.check_overlaps(routes.ROUTES)


# Over HTTP


@pytest.mark.parametrize(
    'path',
    [
        '/v2/widgets/a1',
        '/v2/abcdef0123/widgets/a1',
        '/v2/widgets/a1.json',
        '/v2/abcdef0123/widgets/a1.json',
    ],
)
@pytest.mark.facts('bp-remove-project-id.1')
def test_path_works_with_and_without_project_and_suffix(client, path):
    assert client('GET', path).json['widget']['id'] == 'a1'


@pytest.mark.parametrize('roles', ['reader', 'admin'])
@pytest.mark.facts('bp-remove-project-id.2')
def test_other_project_in_the_url_is_malformed(client, roles):
    response = client('GET', '/v2/fedcba9876/widgets', roles=roles)
    assert response.status_int == 400
    assert response.json == {
        'badRequest': {'code': 400, 'message': 'Malformed request url'}
    }


def test_unusual_project_id_is_accepted_on_free_paths_only(client):
    assert client('GET', '/v2/admin/widgets').status_int == 404
    response = client('GET', '/v2/admin/widgets/a1/parts/b')
    assert response.status_int == 400  # it is not the caller's project


@pytest.mark.parametrize(
    'method, path',
    [
        ('GET', '/v2/nowhere'),
        ('GET', '/v2/widgets/'),
        ('GET', '/v2/widgets/a1/parts/b.json/c'),
        ('GET', '/v2//widgets'),
        ('GET', '/v2/widgets/a\n'),
        ('GET', '/v2/widgets/a\0'),
        ('GET', '/v2/abcdef0123'),
        ('GET', '/v2/abcdef0123/'),
        ('GET', '/v2/widgets/\xff'),
        ('GET', '/v1/widgets'),
        ('GET', '/v22'),
    ],
)
def test_unknown_url_is_404(client, method, path):
    response = client(method, path, headers={'Accept': 'text/html'})
    assert response.status_int == 404
    assert response.json == {
        'itemNotFound': {'code': 404, 'message': 'The resource could not be found.'}
    }


@pytest.mark.parametrize(
    'method, path, allowed',
    [
        ('PATCH', '/v2/widgets', 'GET, HEAD, POST'),
        ('DELETE', '/v2/widgets.json', 'GET, HEAD, POST'),
        ('BREW', '/v2/widgets', 'GET, HEAD, POST'),
        ('OPTIONS', '/v2/abcdef0123/widgets', 'GET, HEAD, POST'),
        ('get', '/v2/widgets', 'GET, HEAD, POST'),
        ('POST', '/v2/widgets/a1', 'DELETE, GET, HEAD, PUT'),
        ('HEAD', '/v2/widgets/a1/action', 'POST'),
        ('POST', '/', 'GET, HEAD'),
        ('OPTIONS', '/healthcheck', 'GET, HEAD'),
    ],
)
def test_method_that_a_url_does_not_have_is_405(client, method, path, allowed):
    response = client(method, path)
    assert response.status_int == 405
    assert response.headers['Allow'] == allowed
    assert response.content_type == 'application/json'
    assert method == 'HEAD' or response.json['badMethod']['code'] == 405


def test_allowed_methods_are_those_of_the_version(client):
    assert client('PATCH', '/v2/odd', version='2.99').status_int == 404
    response = client('PATCH', '/v2/odd', version='2.80')
    assert (response.status_int, response.headers['Allow']) == (405, 'GET, HEAD')


def test_path_is_read_as_utf_8(client):
    path = '/v2/widgets/a1/parts/Bücher'.encode().decode('latin-1')
    assert client('GET', path).json['part'] == 'Bücher'


@pytest.mark.facts('fix_limit_formating_routes')
def test_id_may_have_a_dot(client):
    assert client('GET', '/v2/widgets/a.1').json['widget']['id'] == 'a.1'


def test_suffix_is_part_of_a_name_on_free_paths(client):
    response = client('GET', '/v2/widgets/a1/parts/b.json')
    assert response.json['part'] == 'b.json'


def test_head_is_get_without_the_body(client):
    response = client('HEAD', '/v2/widgets/a1')
    assert response.status_int == 200
    assert response.body == b''
    assert client('HEAD', '/v2/widgets/none').status_int == 404
