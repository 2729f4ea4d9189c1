"""A sample API behind the real pipeline, and its client."""

import json
from wsgiref import validate

import pytest
import webob

from manila_lite import conf as configuration, context
from manila_lite.api import app, versions
from manila_lite.policies import enforcer as policy_enforcer
from tests.unit.api import sample_controller

PROJECT = 'abcdef0123'


class FakeAuthMiddleware:
    """Accepts every request with the roles in the header X-Roles."""

    def __init__(self, app, enforcer):
        self.app, self.enforcer = app, enforcer

    def __call__(self, environ, start_response):
        roles = environ.get('HTTP_X_ROLES', 'member,reader').split(',')
        environ['manila_lite.context'] = context.RequestContext(
            user_id='u1',
            project_id=PROJECT,
            roles=roles,
            is_admin='admin' in roles,
            enforcer=self.enforcer,
            request_id=environ['openstack.request_id'],
        )
        return self.app(environ, start_response)


class ApiClient:
    """Sends requests to an application and validates its use of WSGI."""

    def __init__(self, application):
        self.bare_app = application
        self.app = validate.validator(application)

    def __call__(
        self, method, path, body=None, version='2.99', roles=None, headers=(), **environ
    ):
        req = webob.Request.blank('/')
        path, _, query = path.partition('?')
        req.environ.update(
            REQUEST_METHOD=method, PATH_INFO=path, QUERY_STRING=query, **environ
        )
        if body is not None:
            req.body = body if isinstance(body, bytes) else json.dumps(body).encode()
            req.environ['CONTENT_TYPE'] = 'application/json'
        if version is not None:
            req.headers[versions.HEADER] = version
        if roles is not None:
            req.headers['X-Roles'] = roles
        req.headers.update(headers)
        response = req.get_response(self.app)
        response.body  # noqa: B018  read to the end, as a server does
        return response


@pytest.fixture(scope='session')
def enforcer(tmp_path_factory):
    folder = tmp_path_factory.mktemp('policy')
    conf = configuration.new(['--config-dir', str(folder)])
    return policy_enforcer.Enforcer(conf)


@pytest.fixture(scope='session')
def make_client(enforcer, tmp_path_factory):
    """Return a function that builds the application and its client."""

    def fake_auth(v2):
        return FakeAuthMiddleware(v2, enforcer)

    def make(
        text='',
        table=sample_controller.ROUTES,
        checks=None,
        metrics=None,
        auth=fake_auth,
    ):
        file = tmp_path_factory.mktemp('conf') / 'api.conf'
        file.write_text(text)
        conf = configuration.new(files=[str(file)])
        return ApiClient(
            app.build_app(
                conf, None, enforcer, auth, checks=checks, metrics=metrics, table=table
            )
        )

    return make


@pytest.fixture(scope='session')
def client(make_client):
    return make_client()
