"""Tokens of the identity service, validated by its middleware."""

import dataclasses
import sys

from keystoneauth1 import adapter, exceptions, loading, session
import openstack
from oslo_config import cfg
import pytest

from tests.support.keystone_server import Keystone


@pytest.fixture
def keystone():
    with Keystone() as running:
        yield running


@pytest.fixture
def app(make_app, keystone):
    return make_app('keystone', keystone.service_config())


@pytest.fixture
def alice(keystone):
    return keystone.add_user('alice', 'wonderland', 'tea party', ['Member', 'reader'])


def sign_in(keystone, user, **scope):
    """Return a session of the user in the own project or a given scope."""
    options = keystone.client_options(user)
    if scope:
        del options['project_name'], options['project_domain_id']
    loader = loading.get_plugin_loader('password')
    return session.Session(auth=loader.load_from_options(**options | scope))


def test_token_names_user_project_and_roles(app, call_app, keystone, alice):
    token = sign_in(keystone, alice).get_token()
    response = call_app(
        app, X_Auth_Token=token, environ={'openstack.request_id': 'req-1'}
    ).json
    assert (response['user'], response['project']) == (alice.id, alice.project_id)
    assert response['roles'] == ['member', 'reader']
    assert response['request_id'] == 'req-1'
    assert response['is_admin'] is False
    assert response['may'] == ['share:get', 'share:create']


def test_context_keeps_no_token(app, call_app, keystone, alice):
    token = sign_in(keystone, alice).get_token()
    assert call_app(app, X_Auth_Token=token).json['token'] is None


def test_admin_role_makes_an_administrator(app, call_app, keystone):
    root = keystone.add_user('root', 'secret', 'ops', ['admin'])
    response = call_app(app, X_Auth_Token=sign_in(keystone, root).get_token()).json
    assert response['is_admin'] is True
    assert 'service:index' in response['may']


@pytest.mark.parametrize('token', [None, '', 'unknown', 'alice:a1'])
def test_others_are_refused(app, call_app, keystone, token):
    headers = {} if token is None else {'X_Auth_Token': token}
    response = call_app(app, **headers)
    assert response.status_int == 401
    assert response.headers['WWW-Authenticate'] == (f'Keystone uri="{keystone.url}"')


def test_revoked_token_is_refused(app, call_app, keystone, alice):
    token = sign_in(keystone, alice).get_token()
    keystone.revoke(token)
    assert call_app(app, X_Auth_Token=token).status_int == 401


def test_identity_headers_of_the_client_are_ignored(app, call_app, keystone, alice):
    assert (
        call_app(
            app,
            X_User_Id='root',
            X_Roles='admin',
            X_Project_Id='a1',
            X_Identity_Status='Confirmed',
        ).status_int
        == 401
    )
    response = call_app(
        app,
        X_Auth_Token=sign_in(keystone, alice).get_token(),
        X_Roles='admin',
        X_Project_Id='b2',
        OpenStack_System_Scope='all',
    ).json
    assert (response['project'], response['is_admin'], response['system']) == (
        alice.project_id,
        False,
        None,
    )


def test_no_option_admits_invalid_tokens(make_app, call_app, keystone):
    app = make_app(
        'keystone', keystone.service_config() + 'delay_auth_decision = true\n'
    )
    assert call_app(app).status_int == 401
    assert call_app(app, X_Auth_Token='unknown').status_int == 401


def test_service_token_adds_service_roles(app, call_app, keystone, alice):
    response = call_app(
        app,
        X_Auth_Token=sign_in(keystone, alice).get_token(),
        X_Service_Token=sign_in(keystone, keystone.service).get_token(),
    ).json
    assert response['service_roles'] == ['service']
    assert response['user'] == alice.id


@pytest.mark.parametrize(
    'scope, system, domain',
    [
        ({'system_scope': 'all'}, 'all', None),
        ({'domain_id': 'default'}, None, 'default'),
    ],
)
@pytest.mark.facts('enable-enforce-scope.1')
def test_other_scopes_have_no_rights_in_projects(
    app, call_app, keystone, scope, system, domain
):
    root = keystone.add_user('root', 'secret', 'ops', ['admin'])
    token = sign_in(keystone, root, **scope).get_token()
    response = call_app(app, X_Auth_Token=token).json
    assert (response['system'], response['domain']) == (system, domain)
    assert (response['is_admin'], response['may']) == (False, [])


def test_token_is_validated_once(app, call_app, keystone, alice):
    token = sign_in(keystone, alice).get_token()
    for _ in range(3):
        assert call_app(app, X_Auth_Token=token).status_int == 200
    assert keystone.validations == 1


def test_unreachable_identity_service_is_unavailable(make_app, call_app):
    with Keystone() as gone:
        app = make_app(
            'keystone', gone.service_config() + 'http_request_max_retries = 0\n'
        )
    assert call_app(app, X_Auth_Token='any').status_int == 503


def test_clients_find_the_service_in_the_catalog(app, serve, keystone, alice):
    keystone.share_url = f'{serve(app)}/v2'
    client = adapter.Adapter(
        sign_in(keystone, alice), service_type='shared-file-system'
    )
    assert client.get_endpoint_data().max_microversion == (2, 99)
    assert client.get('/shares').json()['user'] == alice.id


def test_openstacksdk_works(app, serve, keystone, alice):
    keystone.share_url = f'{serve(app)}/v2'
    cloud = openstack.connect(
        auth_type='password',
        region_name='RegionOne',
        auth=keystone.client_options(alice),
    )
    response = cloud.shared_file_system.get('/shares').json()
    assert response['project'] == alice.project_id


def test_wrong_password_gives_no_token(keystone, alice):
    stranger = dataclasses.replace(alice, password='guess')
    with pytest.raises(exceptions.Unauthorized):
        sign_in(keystone, stranger).get_token()


def test_encryption_of_cached_tokens_needs_its_library(make_app, keystone, monkeypatch):
    monkeypatch.setitem(sys.modules, 'cryptography', None)
    with pytest.raises(cfg.Error, match='ENCRYPT .* module cryptography'):
        make_app(
            'keystone',
            f'{keystone.service_config()}'
            'memcached_servers = 127.0.0.1:11211\n'
            'memcache_security_strategy = ENCRYPT\n',
        )
