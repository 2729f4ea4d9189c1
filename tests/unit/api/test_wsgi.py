"""The declarations of a handler are checked in order before it runs."""

import pytest

from manila_lite.api import schema, versions, wsgi

MESSAGE = (
    'Access was denied to this resource. Policy does not allow share:update '
    'to be performed.'
)
EXPERIMENTAL = {versions.EXPERIMENTAL_HEADER: 'true'}


def act(client, body, widget='a1', **more):
    return client('POST', f'/v2/widgets/{widget}/action', body, **more)


# Responses


def test_dict_is_json_with_the_declared_status(client):
    response = client('POST', '/v2/widgets', {'widget': {'size': 5}})
    assert response.status_int == 201
    assert response.content_type == 'application/json'
    assert response.json == {'args': {'size': 5}}
    assert response.content_length == len(response.body)


def test_none_is_an_empty_body(client):
    response = act(client, {'reset': None}, roles='admin')
    assert (response.status_int, response.body) == (202, b'')
    assert response.headers['Content-Length'] == '0'


def test_no_content_has_no_length(client):
    response = client('DELETE', '/v2/widgets/a1')
    assert (response.status_int, response.body) == (204, b'')
    assert 'Content-Length' not in response.headers


def test_bytes_are_json_already(client):
    assert client('GET', '/v2/widgets/detail').json == {'raw': [1]}


def test_response_changes_status_and_adds_headers(client):
    response = client('GET', '/v2/odd', version='2.5')
    assert response.status_int == 203
    assert response.headers['X-Odd'] == 'yes'
    assert response.headers[versions.HEADER] == '2.5'
    assert response.json == [1]


# Target, policy, body


def test_missing_target_is_404_before_the_body_is_checked(client):
    response = client('PUT', '/v2/widgets/none', {'nonsense': 1})
    assert response.status_int == 404
    assert response.json['itemNotFound']['message'] == 'Widget none could not be found.'


@pytest.mark.parametrize('widget', ['w1', 'none', 'f1'])
def test_role_without_the_operation_is_403_for_every_id(client, widget):
    response = client('PUT', f'/v2/widgets/{widget}', {}, roles='none')
    assert response.status_int == 403
    assert response.json == {'forbidden': {'code': 403, 'message': MESSAGE}}


@pytest.mark.parametrize('roles', ['none', 'member'])
def test_busy_database_is_503_whatever_the_role(client, roles):
    response = client('PUT', '/v2/widgets/overloaded', {'nonsense': 1}, roles=roles)
    assert response.status_int == 503


def test_policy_is_checked_before_the_body(client):
    response = client('PUT', '/v2/widgets/f1', {'nonsense': 1})
    assert response.status_int == 403
    assert response.json == {'forbidden': {'code': 403, 'message': MESSAGE}}


def test_policy_without_target_applies_to_the_own_project(client):
    body = {'widget': {'size': 1}}
    assert client('POST', '/v2/widgets', body).status_int == 201
    assert client('POST', '/v2/widgets', body, roles='reader').status_int == 403


def test_action_is_checked_like_a_method(client):
    assert act(client, {'reset': None}).status_int == 403
    assert act(client, {'reset': None}, 'none').status_int == 403
    assert act(client, {'stretch': {}}, 'none').status_int == 404
    assert act(client, {'stretch': {}}, 'f1').status_int == 403
    assert act(client, {'stretch': {}}).status_int == 400


def test_other_path_variables_are_named_arguments(client):
    response = client('GET', '/v2/widgets/a1/parts/b2')
    assert response.json == {
        'id': 'a1',
        'part': 'b2',
        'vars': {'widget_id': 'a1', 'part': 'b2'},
    }


def test_without_target_all_variables_are_named_arguments(client):
    assert act(client, {'dream': 1}).json == {'dreamt': 'a1'}


@pytest.mark.parametrize(
    'widget, code, message',
    [
        ('lost', 403, 'Share lost could not be found.'),
        (
            'unknown',
            400,
            'Invalid input received: Share network n1 could not be found.',
        ),
        (
            'busy',
            400,
            'Invalid share: The widget is in status lent; lend needs one of: idle.',
        ),
        ('odd', 409, 'no'),
    ],
)
def test_declared_refusal_replaces_the_first_error_that_it_lists(
    client, widget, code, message
):
    response = act(client, {'lend': None}, widget)
    (fault,) = response.json.values()
    assert (response.status_int, fault['message']) == (code, message)


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
    response = act(client, {name: {'to': 2}}, version=f'2.{minor}')
    assert response.status_int == status
    key = 'id' if status == 202 else 'itemNotFound'
    assert key in response.json


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
def test_windows_of_one_action_have_their_own_schemas(client, minor, value, outcome):
    response = act(client, {'measure': value}, version=f'2.{minor}')
    if outcome == 400:
        assert response.json['badRequest']['code'] == 400
    else:
        assert response.json == {'args': outcome}


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
def test_experimental_action_requires_its_header(client, minor, headers, status):
    response = act(client, {'dream': None}, version=f'2.{minor}', headers=headers)
    assert response.status_int == status


def test_field_of_a_later_version_is_dropped_below(client):
    body = {'stretch': {'to': '3', 'force': 'yes'}}
    assert act(client, body, version='2.63').json['args'] == {'to': 3}
    assert act(client, body, version='2.64').json['args'] == {'to': 3, 'force': True}


@pytest.mark.parametrize('name', ['fly', 'Stretch', '', 'target'])
@pytest.mark.parametrize('version', ['2.0', '2.99'])
def test_unknown_action_is_400_and_named(client, name, version):
    response = act(client, {name: None}, version=version)
    assert response.json == {
        'badRequest': {'code': 400, 'message': f'There is no such action: {name}'}
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
    response = act(client, body)
    assert response.json == {
        'badRequest': {'code': 400, 'message': 'Malformed request body'}
    }


# Invalid declarations


def test_action_declared_twice_for_a_version_is_refused():
    class Twice(wsgi.Controller):
        @wsgi.action('x', wsgi.OPEN, until='2.9', target=False)
        def one(self, req):
            """Serve up to 2.9."""

        @wsgi.action('x', wsgi.OPEN, since='2.9', target=False)
        def two(self, req):
            """Serve from 2.9 too."""

    with pytest.raises(ValueError, match='action x is declared twice'):
        wsgi.check_actions(Twice)


def test_renamed_action_has_its_former_name_before_that_version():
    class Renamed(wsgi.Controller):
        @wsgi.action('x', wsgi.OPEN, renamed='2.7', until='2.44', target=False)
        def act(self, req):
            """Serve two names."""

    assert [(each.name, each.window) for each in Renamed.act.actions] == [
        ('x', versions.window('2.7', '2.44')),
        ('os-x', versions.window(until='2.6')),
    ]


def test_controller_without_actions_cannot_have_an_action_route():
    with pytest.raises(ValueError, match='Controller has no action'):
        wsgi.check_actions(wsgi.Controller)


def test_undeclared_handler_cannot_be_routed():
    class Bare(wsgi.Controller):
        def index(self, req):
            """Serve without a declaration."""

    with pytest.raises(AttributeError, match='declared'):
        wsgi.bind_method(Bare(None), 'index')


def test_controller_has_the_services():
    services = object()
    assert wsgi.Controller(services).services is services


def test_missing_wrapper_has_the_declared_code(client):
    missing = client('POST', '/v2/widgets', {'size': 5})
    assert missing.json == {
        'computeFault': {
            'code': 422,
            'message': 'The body lacks the required element "widget".',
        }
    }
    assert client('PUT', '/v2/widgets/a1', {'name': 'x'}).json['badRequest'][
        'message'
    ] == ('Invalid input received: widget is required')


def test_schema_refuses_an_unknown_code():
    with pytest.raises(ValueError, match='400 or 422'):
        schema.schema(wrapper='x', missing=404)
