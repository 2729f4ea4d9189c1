"""What a controller declares is checked, in order, before it runs."""

import pytest

from manila_lite.api import schema
from manila_lite.api import versions
from manila_lite.api import wsgi

MESSAGE = 'Access was denied to this resource.'
EXPERIMENTAL = {versions.EXPERIMENTAL_HEADER: 'true'}


def act(client, body, shelf='a1', **more):
    return client('POST', f'/v2/shelves/{shelf}/action', body, **more)


# Answers


def test_dict_is_json_with_the_declared_status(client):
    answer = client('POST', '/v2/shelves', {'shelf': {'size': 5}})
    assert answer.status_int == 201
    assert answer.content_type == 'application/json'
    assert answer.json == {'args': {'size': 5}}
    assert answer.content_length == len(answer.body)


def test_none_is_an_empty_body(client):
    answer = act(client, {'reset': None}, roles='admin')
    assert (answer.status_int, answer.body) == (202, b'')
    assert answer.headers['Content-Length'] == '0'


def test_no_content_has_no_length(client):
    answer = client('DELETE', '/v2/shelves/a1')
    assert (answer.status_int, answer.body) == (204, b'')
    assert 'Content-Length' not in answer.headers


def test_bytes_are_json_already(client):
    assert client('GET', '/v2/shelves/detail').json == {'raw': [1]}


def test_answer_changes_status_and_adds_headers(client):
    answer = client('GET', '/v2/odd', version='2.5')
    assert answer.status_int == 203
    assert answer.headers['X-Odd'] == 'yes'
    assert answer.headers[versions.HEADER] == '2.5'
    assert answer.json == [1]


# Target, policy, body


def test_absent_target_is_404_before_all_else(client):
    answer = client('PUT', '/v2/shelves/none', {'nonsense': 1}, roles='none')
    assert answer.status_int == 404
    assert (
        answer.json['itemNotFound']['message']
        == 'Shelf none could not be found.'
    )


def test_policy_is_asked_about_the_target_before_the_body(client):
    answer = client('PUT', '/v2/shelves/f1', {'nonsense': 1})
    assert answer.status_int == 403
    assert answer.json == {'forbidden': {'code': 403, 'message': MESSAGE}}


def test_policy_without_target_is_about_the_own_project(client):
    body = {'shelf': {'size': 1}}
    assert client('POST', '/v2/shelves', body).status_int == 201
    assert (
        client('POST', '/v2/shelves', body, roles='reader').status_int == 403
    )


def test_action_is_checked_like_a_method(client):
    assert act(client, {'reset': None}).status_int == 403
    assert act(client, {'reset': None}, 'none').status_int == 404
    assert act(client, {'stretch': {}}, 'f1').status_int == 403
    assert act(client, {'stretch': {}}).status_int == 400


def test_other_path_variables_are_named_arguments(client):
    answer = client('GET', '/v2/shelves/a1/books/b2')
    assert answer.json == {
        'id': 'a1',
        'book': 'b2',
        'vars': {'shelf_id': 'a1', 'book': 'b2'},
    }


def test_without_target_all_variables_are_named_arguments(client):
    assert act(client, {'dream': 1}).json == {'dreamt': 'a1'}


# Actions and versions


@pytest.mark.parametrize(
    'name, minor, status',
    [
        ('os-stretch', 0, 202),
        ('os-stretch', 6, 202),
        ('os-stretch', 7, 404),
        ('stretch', 6, 404),
        ('stretch', 7, 202),
        ('stretch', 99, 202),
    ],
)
def test_one_function_serves_two_names(client, name, minor, status):
    answer = act(client, {name: {'to': 2}}, version=f'2.{minor}')
    assert answer.status_int == status
    key = 'id' if status == 202 else 'itemNotFound'
    assert key in answer.json


@pytest.mark.parametrize(
    'minor, value, outcome',
    [
        (44, {'unit': 'ell', 'more': 1}, {'unit': 'ell'}),
        (44, None, {}),
        (45, {'unit': 'cm'}, {'unit': 'cm'}),
        (45, {'unit': 'ell'}, 400),
        (45, {'unit': 'cm', 'more': 1}, 400),
        (45, None, 400),
    ],
)
def test_windows_of_one_action_have_their_own_schemas(
    client, minor, value, outcome
):
    answer = act(client, {'measure': value}, version=f'2.{minor}')
    if outcome == 400:
        assert answer.json['badRequest']['code'] == 400
    else:
        assert answer.json == {'args': outcome}


@pytest.mark.parametrize(
    'minor, headers, status',
    [
        (9, EXPERIMENTAL, 404),
        (10, {}, 202),
        (20, {}, 404),
        (20, EXPERIMENTAL, 202),
        (30, {}, 404),
        (31, {}, 202),
    ],
)
def test_experimental_action_wants_its_header(client, minor, headers, status):
    answer = act(
        client, {'dream': None}, version=f'2.{minor}', headers=headers
    )
    assert answer.status_int == status


def test_field_of_a_later_version_is_dropped_below(client):
    body = {'stretch': {'to': '3', 'force': 'yes'}}
    assert act(client, body, version='2.63').json['args'] == {'to': 3}
    assert act(client, body, version='2.64').json['args'] == {
        'to': 3,
        'force': True,
    }


@pytest.mark.parametrize('name', ['fly', 'Stretch', '', 'target'])
@pytest.mark.parametrize('version', ['2.0', '2.99'])
def test_unknown_action_is_400_and_named(client, name, version):
    answer = act(client, {name: None}, version=version)
    assert answer.json == {
        'badRequest': {
            'code': 400,
            'message': f'There is no such action: {name}',
        }
    }


@pytest.mark.parametrize(
    'body',
    [
        {},
        {'stretch': {'to': 1}, 'reset': None},
        [],
        ['stretch'],
        'stretch',
        5,
        None,
        True,
        b'',
        b'{',
    ],
)
def test_action_body_must_have_one_key(client, body):
    answer = act(client, body)
    assert answer.json == {
        'badRequest': {'code': 400, 'message': 'Malformed request body'}
    }


# Declarations that make no sense


def test_action_declared_twice_for_a_version_is_refused():
    class Twice(wsgi.Controller):
        @wsgi.action('x', until='2.9', target=False)
        def one(self, req):
            """Serve up to 2.9."""

        @wsgi.action('x', since='2.9', target=False)
        def two(self, req):
            """Serve from 2.9 too."""

    with pytest.raises(ValueError, match='action x is declared twice'):
        wsgi.bind_actions(Twice(None))


def test_controller_without_actions_cannot_have_an_action_route():
    with pytest.raises(ValueError, match='Controller has no action'):
        wsgi.bind_actions(wsgi.Controller(None))


def test_handler_that_is_not_declared_cannot_be_routed():
    class Bare(wsgi.Controller):
        def index(self, req):
            """Serve without a declaration."""

    with pytest.raises(AttributeError, match='declared'):
        wsgi.bind_method(Bare(None), 'index')


def test_controller_has_the_services():
    services = object()
    assert wsgi.Controller(services).services is services


def test_missing_wrapper_answers_the_declared_code(client):
    missing = client('POST', '/v2/shelves', {'size': 5})
    assert missing.json == {
        'computeFault': {
            'code': 422,
            'message': 'The body lacks the required element "shelf".',
        }
    }
    assert client('PUT', '/v2/shelves/a1', {'name': 'x'}).json['badRequest'][
        'message'
    ] == ('Invalid input received: shelf is required')


def test_schema_refuses_an_unheard_of_code():
    with pytest.raises(ValueError, match='400 or 422'):
        schema.schema(wrapper='x', missing=404)
