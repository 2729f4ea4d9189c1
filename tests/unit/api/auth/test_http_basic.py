"""Users sign in by name and password; nobody else does."""

import base64
import subprocess
import sys

import bcrypt
from keystoneauth1 import adapter
from keystoneauth1 import exceptions
from keystoneauth1 import loading
from keystoneauth1 import session
import openstack
from oslo_config import cfg
import pytest

from manila_lite.api.auth import http_basic
from manila_lite.api.auth import users

CHEAP = 4  # the least cost bcrypt allows


def basic(name, password, scheme='Basic'):
    pair = f'{name}:{password}'.encode()
    return f'{scheme} {base64.b64encode(pair).decode()}'


@pytest.fixture
def file(tmp_path):
    """The users file that `$state_path/users` means."""
    path = tmp_path / 'users'
    for name, roles in (
        ('alice', ['member']),
        ('root', ['admin']),
        ('carol', ['reader']),
    ):
        users.add(
            str(path),
            name,
            f'{name}-secret',
            f'id-of-{name}',
            'a1',
            roles,
            cost=CHEAP,
        )
    return path


@pytest.fixture
def app(signed_in, file):
    return signed_in('http_basic')


def test_user_acts_in_the_own_project(app, ask):
    answer = ask(
        app,
        Authorization=basic('alice', 'alice-secret'),
        environ={'openstack.request_id': 'req-1'},
    ).json
    assert (answer['user'], answer['project']) == ('id-of-alice', 'a1')
    assert answer['request_id'] == 'req-1'


@pytest.mark.parametrize(
    'name, is_admin, may',
    [
        ('carol', False, ['share:get']),
        ('alice', False, ['share:get', 'share:create']),
        ('root', True, ['share:get', 'share:create', 'service:index']),
    ],
)
def test_roles_of_the_file_decide(app, ask, name, is_admin, may):
    answer = ask(app, Authorization=basic(name, f'{name}-secret')).json
    assert (answer['is_admin'], answer['may']) == (is_admin, may)


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
def test_others_are_refused(app, ask, header):
    answer = ask(app, Authorization=header)
    assert answer.status_int == 401
    assert answer.headers['WWW-Authenticate'].startswith('Basic realm="')
    assert answer.content_type == 'application/json'
    assert answer.json['unauthorized']['code'] == 401
    assert 'authentication' in answer.json['unauthorized']['message']


def test_no_header_is_refused(app, ask):
    assert ask(app).status_int == 401


def test_headers_of_other_sign_ins_mean_nothing(app, ask):
    assert (
        ask(
            app,
            X_Auth_Token='admin',
            X_User_Id='id-of-root',
            X_Roles='admin',
            X_Identity_Status='Confirmed',
        ).status_int
        == 401
    )
    answer = ask(
        app,
        X_Roles='admin',
        X_Project_Id='b2',
        Authorization=basic('alice', 'alice-secret'),
    ).json
    assert (answer['project'], answer['is_admin']) == ('a1', False)


def test_scheme_may_be_written_in_any_case(app, ask):
    header = basic('alice', 'alice-secret', 'bAsIc')
    assert ask(app, Authorization=header).status_int == 200


def test_password_may_have_colons_and_any_character(app, ask, file):
    users.add(str(file), 'dora', 'a:b:ü ', 'u', 'a1', ['reader'], cost=CHEAP)
    assert ask(app, Authorization=basic('dora', 'a:b:ü ')).status_int == 200


def test_changed_file_counts_at_once(app, ask, file):
    header = basic('alice', 'alice-secret')
    assert ask(app, Authorization=header).status_int == 200
    users.remove(str(file), 'alice')
    assert ask(app, Authorization=header).status_int == 401
    users.add(
        str(file), 'alice', 'new-secret', 'u', 'a1', ['member'], cost=CHEAP
    )
    assert ask(app, Authorization=header).status_int == 401
    assert (
        ask(app, Authorization=basic('alice', 'new-secret')).status_int == 200
    )


def test_new_password_ends_the_old_one(app, ask, file):
    old = basic('alice', 'alice-secret')
    assert ask(app, Authorization=old).status_int == 200
    spare = file.with_name('spare')
    users.add(
        str(spare), 'alice', 'new-secret', 'u', 'a1', ['member'], cost=CHEAP
    )
    spare.rename(file)
    assert ask(app, Authorization=old).status_int == 401


def test_broken_file_keeps_the_users_and_is_reported_once(
    app, ask, file, caplog
):
    file.write_text('alice:alice-secret\n')
    for _ in range(3):
        answer = ask(app, Authorization=basic('alice', 'alice-secret'))
        assert answer.status_int == 200
    assert caplog.text.count('keeping the previous users') == 1
    assert 'alice-secret' not in caplog.text


def test_broken_file_at_the_start_is_an_error(signed_in, file):
    file.write_text('alice:alice-secret\n')
    with pytest.raises(cfg.ConfigFileParseError, match='line 1'):
        signed_in('http_basic')


def test_without_a_file_nobody_signs_in(signed_in, ask, tmp_path, caplog):
    file = tmp_path / 'late'
    app = signed_in('http_basic', f'[http_basic]\nusers_file = {file}\n')
    assert 'Cannot read the users file' in caplog.text
    header = basic('alice', 'alice-secret')
    assert ask(app, Authorization=header).status_int == 401
    users.add(
        str(file), 'alice', 'alice-secret', 'u', 'a1', ['reader'], cost=CHEAP
    )
    assert ask(app, Authorization=header).status_int == 200


def test_secrets_are_never_logged(app, ask, caplog):
    caplog.set_level('DEBUG')
    ask(app, Authorization=basic('alice', 'alice-secret'))
    ask(app, Authorization=basic('alice', 'wrong-secret'))
    assert 'secret' not in caplog.text


class Clock:
    """Seconds that pass when told to."""

    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def worked_out(monkeypatch):
    """The kind and cost of every hash that bcrypt had to work out."""
    costs = []
    work = bcrypt.checkpw

    def count(password, hashed):
        costs.append(hashed[:7].decode())
        return work(password, hashed)

    monkeypatch.setattr(bcrypt, 'checkpw', count)
    return costs


def test_right_password_is_worked_out_once_in_five_minutes(file, worked_out):
    clock = Clock()
    passwords = http_basic.PasswordVerifier(str(file), clock)
    for later in (0, 1, 298):
        clock.now += later
        assert passwords.user('alice', b'alice-secret')
    assert len(worked_out) == 1
    clock.now += 1
    assert passwords.user('alice', b'alice-secret')
    assert len(worked_out) == 2


def test_wrong_password_is_worked_out_every_time(file, worked_out):
    passwords = http_basic.PasswordVerifier(str(file), Clock())
    assert passwords.user('alice', b'alice-secret')
    for _ in range(2):
        assert passwords.user('alice', b'guess') is None
    assert len(worked_out) == 3


def test_unknown_name_takes_the_work_of_a_known_one(file, worked_out):
    passwords = http_basic.PasswordVerifier(str(file), Clock())
    users.add(str(file), 'erin', 'secret', 'u', 'a1', ['reader'])
    assert passwords.user('erin', b'guess') is None
    assert passwords.user('nobody', b'guess') is None
    assert worked_out == ['$2b$12$', '$2b$12$']


def test_passwords_are_not_kept(file):
    passwords = http_basic.PasswordVerifier(str(file), Clock())
    assert passwords.user('alice', b'alice-secret')
    assert b'alice-secret' not in repr(vars(passwords)).encode()


def test_bcrypt_is_loaded_for_this_sign_in_alone():
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
        auth={
            'endpoint': url,
            'username': 'alice',
            'password': 'alice-secret',
        },
        shared_file_system_endpoint_override=url,
    )
    answer = cloud.shared_file_system.get('/shares').json()
    assert answer['user'] == 'id-of-alice'
