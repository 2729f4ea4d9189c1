"""HTTP basic authentication with a file of users."""

import base64
import subprocess
import sys

from keystoneauth1 import adapter, exceptions, loading, session
import openstack
from oslo_config import cfg
import pytest

from manila_lite.api.auth import users

CHEAP = 4  # the least cost bcrypt allows


def basic(name, password, scheme='Basic'):
    pair = f'{name}:{password}'.encode()
    return f'{scheme} {base64.b64encode(pair).decode()}'


@pytest.fixture
def app(make_app, file):
    return make_app('http_basic')


def test_user_acts_in_own_project(app, call_app):
    response = call_app(
        app,
        Authorization=basic('alice', 'alice-secret'),
        environ={'openstack.request_id': 'req-1'},
    ).json
    assert (response['user'], response['project']) == ('id-of-alice', 'a1')
    assert response['request_id'] == 'req-1'


@pytest.mark.parametrize(
    'name, is_admin, may',
    [
        ('carol', False, ['share:get']),
        ('alice', False, ['share:get', 'share:create']),
        ('root', True, ['share:get', 'share:create', 'service:index']),
    ],
)
def test_roles_come_from_the_file(app, call_app, name, is_admin, may):
    response = call_app(app, Authorization=basic(name, f'{name}-secret')).json
    assert (response['is_admin'], response['may']) == (is_admin, may)


@pytest.mark.parametrize(
    'header',
    [
        basic('alice', 'wrong'),
        basic('alice', ''),
        basic('nobody', 'x'),
        basic('', 'x'),
        basic('Alice', 'alice-secret'),
        basic('alice', 'alice-secret' + 'x' * 80),
        basic('alice', 'alice-secret', 'Bearer'),
        'Basic',
        'Basic ',
        'Basic !',
        'Basic YWxpY2U=',
        'Basic /////w==',
        '',
        'Basic ' + base64.b64encode(b'\xff:x').decode(),
        'Basic \xe9',
        'alice:alice-secret',
    ],
)
def test_others_are_refused(app, call_app, header):
    response = call_app(app, Authorization=header)
    assert response.status_int == 401
    assert response.headers['WWW-Authenticate'].startswith('Basic realm="')
    assert response.content_type == 'application/json'
    assert response.json['unauthorized']['code'] == 401
    assert 'authentication' in response.json['unauthorized']['message']


def test_no_header_is_refused(app, call_app):
    assert call_app(app).status_int == 401


def test_headers_of_other_strategies_are_ignored(app, call_app):
    assert (
        call_app(
            app,
            X_Auth_Token='admin',
            X_User_Id='id-of-root',
            X_Roles='admin',
            X_Identity_Status='Confirmed',
        ).status_int
        == 401
    )
    response = call_app(
        app,
        X_Roles='admin',
        X_Project_Id='b2',
        Authorization=basic('alice', 'alice-secret'),
    ).json
    assert (response['project'], response['is_admin']) == ('a1', False)


def test_scheme_is_case_insensitive(app, call_app):
    header = basic('alice', 'alice-secret', 'bAsIc')
    assert call_app(app, Authorization=header).status_int == 200


def test_password_may_have_colons_and_any_character(app, call_app, file):
    users.add(str(file), 'dora', 'a:b:ü ', 'u', 'a1', ['reader'], cost=CHEAP)
    assert call_app(app, Authorization=basic('dora', 'a:b:ü ')).status_int == 200


def test_changed_file_takes_effect_at_once(app, call_app, file):
    header = basic('alice', 'alice-secret')
    assert call_app(app, Authorization=header).status_int == 200
    users.remove(str(file), 'alice')
    assert call_app(app, Authorization=header).status_int == 401
    users.add(str(file), 'alice', 'new-secret', 'u', 'a1', ['member'], cost=CHEAP)
    assert call_app(app, Authorization=header).status_int == 401
    assert call_app(app, Authorization=basic('alice', 'new-secret')).status_int == 200


def test_new_password_invalidates_the_old_one(app, call_app, file):
    old = basic('alice', 'alice-secret')
    assert call_app(app, Authorization=old).status_int == 200
    spare = file.with_name('spare')
    users.add(str(spare), 'alice', 'new-secret', 'u', 'a1', ['member'], cost=CHEAP)
    spare.rename(file)
    assert call_app(app, Authorization=old).status_int == 401


def test_malformed_file_keeps_the_users_and_is_logged_once(app, call_app, file, caplog):
    file.write_text('alice:alice-secret\n')
    for _ in range(3):
        response = call_app(app, Authorization=basic('alice', 'alice-secret'))
        assert response.status_int == 200
    assert caplog.text.count('keeping the previous users') == 1
    assert 'alice-secret' not in caplog.text


def test_malformed_file_at_the_start_is_an_error(make_app, file):
    file.write_text('alice:alice-secret\n')
    with pytest.raises(cfg.ConfigFileParseError, match='line 1'):
        make_app('http_basic')


def test_without_a_file_all_logins_fail(make_app, call_app, tmp_path, caplog):
    file = tmp_path / 'late'
    app = make_app('http_basic', f'[http_basic]\nusers_file = {file}\n')
    assert 'Cannot read the users file' in caplog.text
    header = basic('alice', 'alice-secret')
    assert call_app(app, Authorization=header).status_int == 401
    users.add(str(file), 'alice', 'alice-secret', 'u', 'a1', ['reader'], cost=CHEAP)
    assert call_app(app, Authorization=header).status_int == 200


def test_secrets_are_never_logged(app, call_app, caplog):
    caplog.set_level('DEBUG')
    call_app(app, Authorization=basic('alice', 'alice-secret'))
    call_app(app, Authorization=basic('alice', 'wrong-secret'))
    assert 'secret' not in caplog.text


def test_repeated_failures_are_refused_with_retry_after(
    app, call_app, hash_checks, caplog
):
    header = basic('alice', 'wrong')
    codes = [call_app(app, Authorization=header).status_int for _ in range(5)]
    assert codes == [401, 401, 401, 401, 503]
    response = call_app(app, Authorization=header)
    assert int(response.headers['Retry-After']) >= 1
    assert response.json['serviceUnavailable']['code'] == 503
    assert len(hash_checks) == 4
    assert caplog.text == ''


def test_signed_in_user_is_served_while_others_guess_the_password(app, call_app):
    header = basic('alice', 'alice-secret')
    assert call_app(app, Authorization=header).status_int == 200
    for _ in range(6):
        call_app(app, Authorization=basic('alice', 'wrong'))
    assert call_app(app, Authorization=header).status_int == 200


def test_bcrypt_is_loaded_for_this_strategy_only():
    script = (
        'import sys; import manila_lite.api.auth.noauth; '
        'sys.exit("bcrypt" in sys.modules)'
    )
    assert subprocess.run([sys.executable, '-c', script]).returncode == 0


def plugin(url, password='alice-secret'):
    return loading.get_plugin_loader('http_basic').load_from_options(
        endpoint=url, username='alice', password=password
    )


def test_plugin_of_keystoneauth_works(app, serve):
    url = f'{serve(app)}/v2'
    client = adapter.Adapter(
        session.Session(auth=plugin(url)), service_type='shared-file-system'
    )
    assert client.get_endpoint_data().max_microversion == (2, 99)
    assert client.get('/shares').json()['user'] == 'id-of-alice'


def test_plugin_of_keystoneauth_sees_the_refusal(app, serve):
    url = f'{serve(app)}/v2'
    client = session.Session(auth=plugin(url, 'wrong'))
    with pytest.raises(exceptions.Unauthorized):
        client.get(f'{url}/shares')


def test_openstacksdk_works(app, serve):
    url = f'{serve(app)}/v2'
    cloud = openstack.connect(
        auth_type='http_basic',
        auth={'endpoint': url, 'username': 'alice', 'password': 'alice-secret'},
        shared_file_system_endpoint_override=url,
    )
    response = cloud.shared_file_system.get('/shares').json()
    assert response['user'] == 'id-of-alice'
