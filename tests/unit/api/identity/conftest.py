"""The whole application with http_basic, called directly."""

import pytest
import webob

from manila_lite import conf as configuration
from manila_lite.api import app, wsgi
from manila_lite.api.auth import users
from manila_lite.api.router import get, serve
from manila_lite.policies import enforcer

COST = 4  # the least that bcrypt allows


class CallerController(wsgi.Controller):
    """Describes the caller."""

    @wsgi.method(wsgi.OPEN)
    def index(self, req):
        return {
            'user': req.ctx.user_id,
            'project': req.ctx.project_id,
            'roles': req.ctx.roles,
            'is_admin': req.ctx.is_admin,
        }


TABLE = serve(CallerController, '/caller', get('', 'index'))


@pytest.fixture
def users_file(tmp_path):
    """Two users of the project red and an administrator of blue."""
    path = tmp_path / 'users'
    for name, project, role in (
        ('alice', 'red', 'member'),
        ('carol', 'red', 'reader'),
        ('root', 'blue', 'admin'),
    ):
        users.add(
            str(path),
            name,
            f'{name}-secret',
            f'id-of-{name}',
            project,
            [role],
            cost=COST,
        )
    return path


@pytest.fixture
def build(tmp_path, users_file):
    """Return `build(text, strategy)`, which builds the application."""

    def build(text='', strategy='http_basic'):
        file = tmp_path / 'manila.conf'
        file.write_text(
            f'[DEFAULT]\nauth_strategy = {strategy}\nstate_path = {tmp_path}\n{text}'
        )
        conf = configuration.new(files=[str(file)])
        return app.build_app(conf, None, enforcer.Enforcer(conf), table=TABLE)

    return build


class Client:
    """Sends requests to an application."""

    def __init__(self, application):
        self.application = application

    def __call__(self, method, path, body=None, *, expect=200, **headers):
        """Return the response; fail unless it has the expected status."""
        req = webob.Request.blank(
            path,
            method=method,
            headers={name.replace('_', '-'): value for name, value in headers.items()},
        )
        if body is not None:
            req.json = body
            req.content_type = 'application/json'
        answer = req.get_response(self.application)
        assert answer.status_int == expect, answer.text
        return answer

    def sign_in(self, body, expect=201):
        return self('POST', '/v3/auth/tokens', body, expect=expect)

    def token(self, name):
        """Return a token of the user."""
        answer = self.sign_in(by_password(name=name))
        return answer.headers['X-Subject-Token']

    def get(self, path, name, **options):
        """Return what the user gets, with a token."""
        return self('GET', path, X_Auth_Token=self.token(name), **options).json


@pytest.fixture
def client(build):
    return Client(build())


def by_password(scope=None, password=None, **user):
    """Return the body of a sign-in by password."""
    if password is None:
        password = f'{user.get("name", "")}-secret'
    body = {
        'auth': {
            'identity': {
                'methods': ['password'],
                'password': {'user': {**user, 'password': password}},
            }
        }
    }
    if scope is not None:
        body['auth']['scope'] = scope
    return body


def by_token(token, scope=None):
    """Return the body of a request for a token by a token."""
    body = {'auth': {'identity': {'methods': ['token'], 'token': {'id': token}}}}
    if scope is not None:
        body['auth']['scope'] = scope
    return body
