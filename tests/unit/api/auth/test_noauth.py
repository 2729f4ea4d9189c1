"""Everybody is an administrator, under the name they give."""

from keystoneauth1 import adapter
from keystoneauth1 import loading
from keystoneauth1 import session
import openstack
import pytest

PROJECT = '3f1c5d7e90ab4c2d8e6f0a1b2c3d4e5f'


@pytest.fixture
def app(signed_in):
    return signed_in('noauth')


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
        # The router refuses the request whose URL says otherwise.
        (f'/v2/{PROJECT}/shares', 'alice:a1', 'alice', 'a1'),
    ],
)
def test_caller_is_who_the_token_or_the_url_says(
    app, ask, path, token, user, project
):
    headers = {} if token is None else {'X_Auth_Token': token}
    answer = ask(app, path, **headers).json
    assert (answer['user'], answer['project']) == (user, project)


@pytest.mark.parametrize('strategy', ['noauth', 'noauthv2'])
@pytest.mark.parametrize('token', [None, 'alice', 'alice:a1'])
def test_every_caller_is_an_administrator(signed_in, ask, strategy, token):
    headers = {'X_Auth_Token': token} if token else {}
    answer = ask(signed_in(strategy), **headers).json
    assert answer['roles'] == ['admin', 'member', 'reader']
    assert answer['is_admin'] is True
    assert answer['may'] == ['share:get', 'share:create', 'service:index']


@pytest.mark.parametrize(
    'strategy, url',
    [
        ('noauth', 'http://localhost/v2/a1'),
        ('noauthv2', 'http://localhost/v2'),
    ],
)
def test_asking_for_a_token_gives_it(signed_in, ask, strategy, url):
    answer = ask(
        signed_in(strategy),
        '/v2',
        X_Auth_User='alice',
        X_Auth_Key='anything',
        X_Auth_Project_Id='a1',
    )
    assert (answer.status_int, answer.body) == (204, b'')
    assert answer.headers['X-Auth-Token'] == 'alice:a1'
    assert answer.headers['X-Server-Management-Url'] == url


@pytest.mark.parametrize(
    'headers, token',
    [
        ({'X_Auth_User': 'alice'}, 'alice:admin'),
        ({'X_Auth_Key': 'anything'}, 'admin:admin'),
        ({'X_Auth_Project_Id': 'a1'}, 'admin:a1'),
    ],
)
def test_token_has_admin_for_what_was_not_said(app, ask, headers, token):
    answer = ask(app, '/v2/', **headers)
    assert answer.status_int == 204
    assert answer.headers['X-Auth-Token'] == token


def test_management_url_has_no_double_slash(app, ask):
    answer = ask(app, '/v2/?a=b', X_Auth_User='alice')
    assert (
        answer.headers['X-Server-Management-Url']
        == 'http://localhost/v2/admin'
    )


def test_given_token_is_accepted(app, ask):
    token = ask(
        app, '/v2', X_Auth_User='alice', X_Auth_Project_Id='a1'
    ).headers['X-Auth-Token']
    answer = ask(app, X_Auth_Token=token, X_Auth_User='bob').json
    assert (answer['user'], answer['project']) == ('alice', 'a1')


def test_headers_of_other_sign_ins_mean_nothing(app, ask):
    answer = ask(app, X_User_Id='mallory', X_Roles='service').json
    assert answer['user'] == 'admin'
    assert 'service' not in answer['roles']


def test_context_has_the_request_id_of_the_pipeline(app, ask):
    answer = ask(app, environ={'openstack.request_id': 'req-1'})
    assert answer.json['request_id'] == 'req-1'


@pytest.mark.parametrize(
    'plugin, options, user',
    [('none', {}, 'admin'), ('admin_token', {'token': 'alice:a1'}, 'alice')],
)
def test_plugins_of_keystoneauth_work(app, serve, plugin, options, user):
    url = f'{serve(app)}/v2'
    auth = loading.get_plugin_loader(plugin).load_from_options(
        endpoint=url, **options
    )
    client = adapter.Adapter(
        session.Session(auth=auth), service_type='shared-file-system'
    )
    assert client.get_endpoint_data().max_microversion == (2, 99)
    assert client.get('/shares').json()['user'] == user


def test_openstacksdk_works_without_sign_in(app, serve):
    url = f'{serve(app)}/v2'
    cloud = openstack.connect(
        auth_type='none',
        auth={'endpoint': url},
        shared_file_system_endpoint_override=url,
    )
    assert cloud.shared_file_system.get('/shares').json()['user'] == 'admin'
