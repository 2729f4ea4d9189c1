"""An app behind authentication, called directly or over HTTP."""

import contextlib
import json
from socketserver import ThreadingMixIn
import threading
from wsgiref import simple_server

import bcrypt
import pytest
import webob

from manila_lite import conf as configuration
from manila_lite.api import auth, faults
from manila_lite.api.auth import users
from manila_lite.policies import enforcer

VERSIONS = {
    'versions': [
        {
            'id': 'v2.0',
            'status': 'CURRENT',
            'version': '2.99',
            'min_version': '2.0',
            'updated': '2015-08-27T11:33:21Z',
            'links': [{'rel': 'self', 'href': '/v2/'}],
        }
    ]
}


def whoami(environ, start_response):
    """A WSGI app that returns the caller and a version list."""
    ctx = environ['manila_lite.context']
    body = VERSIONS | {
        'user': ctx.user_id,
        'project': ctx.project_id,
        'roles': ctx.roles,
        'is_admin': ctx.is_admin,
        'request_id': ctx.request_id,
        'token': ctx.auth_token,
        'system': ctx.system_scope,
        'domain': ctx.domain_id,
        'service_roles': ctx.service_roles,
        'may': [
            rule
            for rule in ('share:get', 'share:create', 'service:index')
            if ctx.can(rule)
        ],
    }
    data = json.dumps(body).encode()
    start_response(
        '200 OK',
        [('Content-Type', 'application/json'), ('Content-Length', str(len(data)))],
    )
    return [data]


@pytest.fixture
def make_app(tmp_path):
    """Return `make(strategy, text)`, which builds the configured app."""

    def make(strategy, text=''):
        file = tmp_path / 'manila.conf'
        file.write_text(
            f'[DEFAULT]\nauth_strategy = {strategy}\nstate_path = {tmp_path}\n{text}'
        )
        conf = configuration.new(files=[str(file)])
        found = auth.pipeline(conf, whoami, enforcer.Enforcer(conf))
        return faults.FaultMiddleware(found.app)

    return make


@pytest.fixture
def call_app():
    """Return `get(app, path, **headers)`, which returns a response."""

    def get(app, path='/v2/shares', environ=None, **headers):
        request = webob.Request.blank(
            path,
            environ,
            headers={name.replace('_', '-'): value for name, value in headers.items()},
        )
        return request.get_response(app)

    return get


class _Server(ThreadingMixIn, simple_server.WSGIServer):
    daemon_threads = True


class _Silent(simple_server.WSGIRequestHandler):
    def log_message(self, *args):
        """Log nothing; the lines would only clutter the test output."""


@pytest.fixture
def serve():
    """Return `start(app)`, which serves the app and returns its URL."""
    with contextlib.ExitStack() as stack:

        def start(app):
            httpd = stack.enter_context(
                simple_server.make_server('127.0.0.1', 0, app, _Server, _Silent)
            )
            thread = threading.Thread(
                target=httpd.serve_forever, args=(0.02,), daemon=True
            )
            thread.start()
            stack.callback(thread.join)
            stack.callback(httpd.shutdown)
            return f'http://127.0.0.1:{httpd.server_port}'

        yield start


@pytest.fixture
def file(tmp_path):
    """The users file at the default path `$state_path/users`."""
    path = tmp_path / 'users'
    for name, roles in (
        ('alice', ['member']),
        ('root', ['admin']),
        ('carol', ['reader']),
    ):
        users.add(
            str(path), name, f'{name}-secret', f'id-of-{name}', 'a1', roles, cost=4
        )
    return path


@pytest.fixture
def hash_checks(monkeypatch):
    """The kind and cost of every hash that bcrypt computed."""
    costs = []
    work = bcrypt.checkpw

    def count(password, hashed):
        costs.append(hashed[:7].decode())
        return work(password, hashed)

    monkeypatch.setattr(bcrypt, 'checkpw', count)
    return costs
