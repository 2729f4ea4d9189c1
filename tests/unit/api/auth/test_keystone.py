"""Tokens of the identity service, checked by its own middleware."""

import dataclasses

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
from keystoneauth1 import loading
from keystoneauth1 import session
import openstack
import pytest

from tests.support.keystone_server import Keystone


@pytest.fixture
def keystone():
    with Keystone() as running:
        yield running


@pytest.fixture
def app(signed_in, keystone):
    return signed_in('keystone', keystone.service_config())


@pytest.fixture
def alice(keystone):
    return keystone.add_user(
        'alice', 'wonderland', 'tea party', ['Member', 'reader']
    )


def sign_in(keystone, user, **scope):
    """A keystoneauth session of the user, in the own project or a scope."""
    options = keystone.client_options(user)
    if scope:
        del options['project_name'], options['project_domain_id']
    loader = loading.get_plugin_loader('password')
    return session.Session(auth=loader.load_from_options(**options | scope))


def test_token_names_user_project_and_roles(app, ask, keystone, alice):
    token = sign_in(keystone, alice).get_token()
    answer = ask(
        app, X_Auth_Token=token, environ={'openstack.request_id': 'req-1'}
    ).json
    assert (answer['user'], answer['project']) == (alice.id, alice.project_id)
    assert answer['roles'] == ['member', 'reader']
    assert answer['request_id'] == 'req-1'
    assert answer['is_admin'] is False
    assert answer['may'] == ['share:get', 'share:create']


def test_context_keeps_no_token(app, ask, keystone, alice):
    token = sign_in(keystone, alice).get_token()
    assert ask(app, X_Auth_Token=token).json['token'] is None


def test_admin_is_who_has_the_role(app, ask, keystone):
    root = keystone.add_user('root', 'secret', 'ops', ['admin'])
    answer = ask(app, X_Auth_Token=sign_in(keystone, root).get_token()).json
    assert answer['is_admin'] is True
    assert 'service:index' in answer['may']


@pytest.mark.parametrize('token', [None, '', 'unknown', 'alice:a1'])
def test_others_are_refused(app, ask, keystone, token):
    headers = {} if token is None else {'X_Auth_Token': token}
    answer = ask(app, **headers)
    assert answer.status_int == 401
    assert answer.headers['WWW-Authenticate'] == (
        f'Keystone uri="{keystone.url}"'
    )


def test_revoked_token_is_refused(app, ask, keystone, alice):
    token = sign_in(keystone, alice).get_token()
    keystone.revoke(token)
    assert ask(app, X_Auth_Token=token).status_int == 401


def test_headers_of_the_client_mean_nothing(app, ask, keystone, alice):
    assert (
        ask(
            app,
            X_User_Id='root',
            X_Roles='admin',
            X_Project_Id='a1',
            X_Identity_Status='Confirmed',
        ).status_int
        == 401
    )
    answer = ask(
        app,
        X_Auth_Token=sign_in(keystone, alice).get_token(),
        X_Roles='admin',
        X_Project_Id='b2',
        OpenStack_System_Scope='all',
    ).json
    assert (answer['project'], answer['is_admin'], answer['system']) == (
        alice.project_id,
        False,
        None,
    )


def test_no_option_lets_strangers_in(signed_in, ask, keystone):
    app = signed_in(
        'keystone', keystone.service_config() + 'delay_auth_decision = true\n'
    )
    assert ask(app).status_int == 401
    assert ask(app, X_Auth_Token='unknown').status_int == 401


def test_service_token_brings_service_roles(app, ask, keystone, alice):
    answer = ask(
        app,
        X_Auth_Token=sign_in(keystone, alice).get_token(),
        X_Service_Token=sign_in(keystone, keystone.service).get_token(),
    ).json
    assert answer['service_roles'] == ['service']
    assert answer['user'] == alice.id


@pytest.mark.parametrize(
    'scope, system, domain',
    [
        ({'system_scope': 'all'}, 'all', None),
        ({'domain_id': 'default'}, None, 'default'),
    ],
)
def test_other_scopes_may_nothing_in_projects(
    app, ask, keystone, scope, system, domain
):
    root = keystone.add_user('root', 'secret', 'ops', ['admin'])
    token = sign_in(keystone, root, **scope).get_token()
    answer = ask(app, X_Auth_Token=token).json
    assert (answer['system'], answer['domain']) == (system, domain)
    assert (answer['is_admin'], answer['may']) == (False, [])


def test_token_is_looked_up_once(app, ask, keystone, alice):
    token = sign_in(keystone, alice).get_token()
    for _ in range(3):
        assert ask(app, X_Auth_Token=token).status_int == 200
    assert keystone.validations == 1


def test_unreachable_identity_service_is_unavailable(signed_in, ask):
    with Keystone() as gone:
        app = signed_in(
            'keystone',
            gone.service_config() + 'http_request_max_retries = 0\n',
        )
    assert ask(app, X_Auth_Token='any').status_int == 503


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
    answer = cloud.shared_file_system.get('/shares').json()
    assert answer['project'] == alice.project_id


def test_wrong_password_gives_no_token(keystone, alice):
    stranger = dataclasses.replace(alice, password='guess')
    with pytest.raises(exceptions.Unauthorized):
        sign_in(keystone, stranger).get_token()
