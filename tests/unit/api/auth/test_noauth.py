"""Without authentication every caller is an administrator."""

from keystoneauth1 import adapter, loading, session
import openstack
import pytest

PROJECT = '3f1c5d7e90ab4c2d8e6f0a1b2c3d4e5f'


@pytest.fixture
def app(make_app):
    return make_app('noauth')


@pytest.mark.parametrize(
    'path, token, user, project',
    [
        ('/v2/shares', None, 'admin', 'admin'),
        ('/v2/', None, 'admin', 'admin'),
        ('/v2', None, 'admin', 'admin'),
        (f'/v2/{PROJECT}/shares', None, 'admin', PROJECT),
        (f'/v2/{PROJECT}', None, 'admin', PROJECT),
        ('/v2/fade/shares', None, 'admin', 'fade'),
        ('/v2/shares', '', 'admin', 'admin'),
        ('/v2/shares', 'notused', 'admin', 'admin'),
        (f'/v2/{PROJECT}/shares', 'notused', 'admin', PROJECT),
        ('/v2/shares', 'alice:a1', 'alice', 'a1'),
        ('/v2/shares', 'alice:', 'alice', 'alice'),
        ('/v2/shares', 'alice', 'alice', 'alice'),
        # The router then refuses the request: its URL names another project.
        (f'/v2/{PROJECT}/shares', 'alice:a1', 'alice', 'a1'),
    ],
)
def test_token_or_url_determine_the_caller(app, call_app, path, token, user, project):
    headers = {} if token is None else {'X_Auth_Token': token}
    response = call_app(app, path, **headers).json
    assert (response['user'], response['project']) == (user, project)


@pytest.mark.parametrize('strategy', ['noauth', 'noauthv2'])
@pytest.mark.parametrize('token', [None, 'alice', 'alice:a1'])
def test_every_caller_is_an_administrator(make_app, call_app, strategy, token):
    headers = {'X_Auth_Token': token} if token else {}
    response = call_app(make_app(strategy), **headers).json
    assert response['roles'] == ['admin', 'member', 'reader']
    assert response['is_admin'] is True
    assert response['may'] == ['share:get', 'share:create', 'service:index']


@pytest.mark.parametrize(
    'strategy, url',
    [('noauth', 'http://localhost/v2/a1'), ('noauthv2', 'http://localhost/v2')],
)
def test_token_request_returns_a_token(make_app, call_app, strategy, url):
    response = call_app(
        make_app(strategy),
        '/v2',
        X_Auth_User='alice',
        X_Auth_Key='anything',
        X_Auth_Project_Id='a1',
    )
    assert (response.status_int, response.body) == (204, b'')
    assert response.headers['X-Auth-Token'] == 'alice:a1'
    assert response.headers['X-Server-Management-Url'] == url


@pytest.mark.parametrize(
    'headers, token',
    [
        ({'X_Auth_User': 'alice'}, 'alice:admin'),
        ({'X_Auth_Key': 'anything'}, 'admin:admin'),
        ({'X_Auth_Project_Id': 'a1'}, 'admin:a1'),
    ],
)
def test_token_defaults_to_admin(app, call_app, headers, token):
    response = call_app(app, '/v2/', **headers)
    assert response.status_int == 204
    assert response.headers['X-Auth-Token'] == token


def test_management_url_has_no_double_slash(app, call_app):
    response = call_app(app, '/v2/?a=b', X_Auth_User='alice')
    assert response.headers['X-Server-Management-Url'] == 'http://localhost/v2/admin'


def test_given_token_is_accepted(app, call_app):
    token = call_app(app, '/v2', X_Auth_User='alice', X_Auth_Project_Id='a1').headers[
        'X-Auth-Token'
    ]
    response = call_app(app, X_Auth_Token=token, X_Auth_User='bob').json
    assert (response['user'], response['project']) == ('alice', 'a1')


def test_headers_of_other_strategies_are_ignored(app, call_app):
    response = call_app(app, X_User_Id='mallory', X_Roles='service').json
    assert response['user'] == 'admin'
    assert 'service' not in response['roles']


def test_context_has_the_request_id_of_the_pipeline(app, call_app):
    response = call_app(app, environ={'openstack.request_id': 'req-1'})
    assert response.json['request_id'] == 'req-1'


@pytest.mark.parametrize(
    'plugin, options, user',
    [('none', {}, 'admin'), ('admin_token', {'token': 'alice:a1'}, 'alice')],
)
def test_plugins_of_keystoneauth_work(app, serve, plugin, options, user):
    url = f'{serve(app)}/v2'
    auth = loading.get_plugin_loader(plugin).load_from_options(endpoint=url, **options)
    client = adapter.Adapter(
        session.Session(auth=auth), service_type='shared-file-system'
    )
    assert client.get_endpoint_data().max_microversion == (2, 99)
    assert client.get('/shares').json()['user'] == user


def test_openstacksdk_works_without_authentication(app, serve):
    url = f'{serve(app)}/v2'
    cloud = openstack.connect(
        auth_type='none',
        auth={'endpoint': url},
        shared_file_system_endpoint_override=url,
    )
    assert cloud.shared_file_system.get('/shares').json()['user'] == 'admin'
