"""The scripts of deploy where a private CA has issued the certificate."""

import contextlib
import http.server
import re
import ssl
import sys
import threading

import pytest

from tests.support import certificates, deploy_scripts
from tests.support.deploy_scripts import option, tool


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers as the API and as Keystone; both know every password."""

    def do_GET(self):
        self._answer(200)

    def do_POST(self):
        self.rfile.read(int(self.headers['Content-Length']))
        self._answer(201)

    def _answer(self, status):
        text = b'{"token": {"expires_at": "2099-01-01T00:00:00Z"}}'
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(text)))
        self.send_header('X-Subject-Token', 'the-token')
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass


@contextlib.contextmanager
def serve(certificate):
    """Yield the URL of a server with TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with http.server.HTTPServer(('127.0.0.1', 0), Answers) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f'https://127.0.0.1:{server.server_port}'
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def url(tmp_path):
    certificates.make(tmp_path)
    with serve(tmp_path / 'server.pem') as url:
        yield url


@pytest.fixture
def shell(tmp_path):
    """Return a function that runs lines, where TLS_CACERT names a file.

    The copy of it is a file of the test, too.
    """

    def run(lines, cacert='', **env):
        prepare = f'{deploy_scripts.PREPARE}\nADMIN_PASSWORD=g\nCACERT='
        prepare += f'{tmp_path}/{cacert}\n' if cacert else '/nowhere\n'
        variables = f'TLS_CACERT={tmp_path / cacert if cacert else ""}\n'
        return deploy_scripts.shell(lines, variables, tmp_path, prepare, **env)

    return run


def test_the_api_is_verified_with_the_ca(shell, url):
    tool('curl')
    with pytest.raises(AssertionError) as refused:
        shell(f'call_api {url}/; echo goes on')
    assert 'TLS_CERTIFICATE must be valid for API_ADDRESS' in str(refused)
    assert 'the one that TLS_CACERT names' in str(refused)
    assert 'goes on' not in str(refused)
    assert 'the-token' in shell(f'call_api --include {url}/', 'ca.pem')


def test_keystone_is_verified_with_the_ca(shell, url):
    lines = f"""
PROGRAM="{sys.prefix}"
KEYSTONE_INTERNAL_URL={url}/v3
identity token
"""
    with pytest.raises(AssertionError, match='CERTIFICATE_VERIFY_FAILED'):
        shell(lines)
    assert shell(lines, 'ca.pem') == 'the-token\n'


def test_the_api_verifies_keystone_with_the_ca(shell, tmp_path):
    lines = 'AUTH=keystone; use_identity; service_conf controller'
    file = tmp_path / 'manila_lite.conf'
    file.write_text(shell(lines, 'ca.pem'))
    found = option(file, 'cafile', 'keystone_authtoken')
    assert found == str(tmp_path / 'ca.pem')
    assert 'cafile' not in shell(lines)


def test_the_client_verifies_with_the_ca(shell, tmp_path):
    file = tmp_path / 'admin-openrc'
    file.write_text(shell('admin_openrc', 'ca.pem'))
    lines = f'. {file}; printf "%s\\n" "$OS_CACERT"'
    printed = deploy_scripts.run('bash', '-euc', lines)
    assert printed == f'{tmp_path}/ca.pem\n'
    assert 'OS_CACERT' not in shell('admin_openrc')


@pytest.mark.parametrize(
    'name, reason',
    [
        ('missing.pem', 'missing.pem is not a file'),
        ('server.pem', 'server.pem contains a private key'),
        ('empty.pem', 'empty.pem contains none'),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(shell, tmp_path, name, reason):
    certificates.make(tmp_path)
    (tmp_path / 'empty.pem').write_text('-----BEGIN CERTIFICATE-----\n')
    pattern = f'TLS_CACERT must name .*{re.escape(reason)}'
    with pytest.raises(AssertionError, match=pattern):
        shell('put_cacert', name)


def test_services_get_a_copy_while_the_variable_is_set(shell, tmp_path):
    certificates.make(tmp_path)
    lines = f"""
CACERT={tmp_path}/copy.pem
put_file() {{
    echo "$1 $2"
    cat > "$3"
}}
put_cacert
"""
    assert shell(lines, 'ca.pem') == 'root:manila 644\n'
    text = (tmp_path / 'copy.pem').read_text()
    assert text == (tmp_path / 'ca.pem').read_text()
    assert shell(lines) == f'removed {tmp_path}/copy.pem\n'
