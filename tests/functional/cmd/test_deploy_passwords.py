"""Passwords that operators choose, in all files that deploy writes."""

import base64
import contextlib
import http.server
import shlex
import subprocess
import threading

import pytest
import redis
import sqlalchemy as sa
from tooz import coordination

from manila_lite import conf as options
from manila_lite.rpc import transport
from tests.support import deploy_scripts
from tests.support.deploy_scripts import option, tool
from tests.support.processes import free_port, wait_until

PASSWORDS = [
    """a b;c$d"e'f%g@h#""",
    r"""\$x\\$$:/?&=`~!{}[]<>|*\n""",
    "'\u00e4\u20ac'",
    '"q" ',
    'plain-1_2.3',
]
NAMES = ('DATABASE', 'BROKER', 'LOCKS', 'ADMIN', 'KEYSTONE')


@pytest.fixture(params=PASSWORDS)
def password(request):
    return request.param


@pytest.fixture
def deploy(password, tmp_path):
    """Return a function that runs lines where all passwords are this one."""
    # LOCKS_PASSWORD may not have all characters.
    values = dict.fromkeys(NAMES, password) | {'LOCKS': 'c'}
    prepare = 'set -euo pipefail\nsource "$DEPLOY/lib/all.sh"\nread_variables'
    for name, value in values.items():
        prepare += f'\n{name}_PASSWORD={shlex.quote(value)}'
    prepare += '\nKEYSTONE_DATABASE_PASSWORD=$KEYSTONE_PASSWORD TOKEN_KEY=f\n'
    return lambda lines, variables='', **env: deploy_scripts.shell(
        lines, variables, tmp_path, prepare, **env
    )


def test_services_read_the_passwords_of_database_and_broker(deploy, password, tmp_path):
    file = tmp_path / 'manila_lite.conf'
    file.write_text(deploy('use_servers; use_identity; service_conf'))
    url = option(file, 'connection', 'database')
    assert sa.make_url(url).password == password
    transport.init_backend(threading=True)
    import oslo_messaging  # noqa: PLC0415 needs the line before

    conf = options.new(files=[str(file)])
    url = oslo_messaging.TransportURL.parse(conf, option(file, 'transport_url'))
    assert url.hosts[0].password == password


def test_urls_of_the_operator_are_read_as_they_are(deploy, tmp_path):
    url = 'mysql://manila:a$b$$c@db.example/manila'
    file = tmp_path / 'manila_lite.conf'
    variables = f"DATABASE_URL='{url}'"
    file.write_text(deploy('use_servers; service_conf', variables))
    assert option(file, 'connection', 'database') == url


def test_the_api_and_keystone_read_their_passwords(deploy, password, tmp_path):
    file = tmp_path / 'manila_lite.conf'
    lines = 'use_servers; use_identity; service_conf controller'
    file.write_text(deploy(lines, 'AUTH=keystone'))
    assert option(file, 'password', 'keystone_authtoken') == password

    file.write_text(deploy('use_identity; keystone_conf', 'AUTH=keystone'))
    url = option(file, 'connection', 'database')
    assert sa.make_url(url).password == password


def test_root_sources_the_script_for_the_client(deploy, password, tmp_path):
    file = tmp_path / 'admin-openrc'
    file.write_text(deploy('admin_openrc'))
    printed = deploy_scripts.run(
        *('bash', '-euc', f'. {file}; printf "%s\\n" "$OS_PASSWORD"')
    )
    assert printed == f'{password}\n'


def test_the_first_user_signs_in(deploy, password):
    tool('curl')
    header = []

    class Api(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            header.append(self.headers['Authorization'])
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args):
            pass

    with http.server.HTTPServer(('127.0.0.1', 0), Api) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        deploy(f'call_api http://127.0.0.1:{server.server_port}/')
        thread.join()
    expected = base64.b64encode(f'admin:{password}'.encode()).decode()
    assert header == [f'Basic {expected}']


@pytest.mark.parametrize('locks', ["""a b;c$d"e'f%g@h""", r'\$:&="', 'plain'])
def test_the_lock_service_is_reached(tmp_path, locks):
    port = free_port()
    prepare = f"""
set -euo pipefail
source "$DEPLOY/lib/all.sh"
read_variables
DATABASE_PASSWORD=a BROKER_PASSWORD=b LOCKS_PASSWORD={shlex.quote(locks)}
use_servers
use_identity
"""

    def deploy(lines):
        return deploy_scripts.shell(lines, '', tmp_path, prepare)

    file = tmp_path / 'redis.conf'
    file.write_text(deploy('redis_conf'))
    conf = tmp_path / 'manila_lite.conf'
    conf.write_text(deploy('service_conf').replace(':6379', f':{port}'))
    with subprocess.Popen(
        [tool('redis-server'), file, '--port', str(port), '--save', ''],
        stdout=subprocess.DEVNULL,
    ) as server:
        try:
            url = option(conf, 'backend_url', 'coordination')
            client = redis.Redis(port=port, password=locks)
            wait_until(lambda: is_answered(client), 'Redis answers')
            coordinator = coordination.get_coordinator(url, b'test')
            coordinator.start()
            coordinator.stop()
        finally:
            server.terminate()


def is_answered(client):
    with contextlib.suppress(redis.ConnectionError):
        return client.ping()
    return False


def test_a_password_of_locks_that_tooz_cannot_read_is_refused(deploy):
    with pytest.raises(AssertionError, match='may not contain'):
        deploy("LOCKS_PASSWORD='a#b'; use_servers")


def test_generated_secrets_are_read_as_they_were_written(deploy, password, tmp_path):
    secrets = tmp_path / 'secrets'
    secrets.touch()
    quoted = shlex.quote(password)
    assert (
        deploy(
            f'SECRETS={secrets}; add_secret ADMIN_PASSWORD {quoted} '
            f'> /dev/null; . {secrets}; printf %s "$ADMIN_PASSWORD"'
        )
        == password
    )
