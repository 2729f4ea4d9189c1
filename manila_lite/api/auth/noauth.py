"""No authentication: every caller is an administrator.

The caller is determined as follows, in this order:

- X-Auth-Token names the user and project as `user:project`, or both by one
  word, as published and as keystoneauth's admin_token plugin sends it;
- X-Auth-User, X-Auth-Key or X-Auth-Project-Id without a token ask for a
  token: the published answer is 204 with a token to use;
- otherwise it is user `admin` of the project in the URL, or of project
  `admin` if the URL has none. This covers version discovery, which sends no
  header, and keystoneauth's none plugin, which sends the token `notused`.

The last case differs from the published service, which answers every request
without a token by 204, so that official clients could not discover versions.
Clients that can only sign in at Keystone do so at the identity API, with any
name and password; their token is of the first form.

A project in the URL is recognised by the default form of project ids, hex
digits and dashes, which no collection name has.
"""

from collections.abc import Callable, Iterable
import functools
import re
import typing

from oslo_config import cfg
import webob

from manila_lite.api.auth import caller
from manila_lite.api.auth.caller import App, Authenticated
from manila_lite.context import RequestContext
from manila_lite.policies.enforcer import Enforcer

if typing.TYPE_CHECKING:  # it needs bcrypt
    from manila_lite.api.auth.users import User

ROLES = ['admin', 'member', 'reader']
_NO_TOKEN = (None, '', 'notused')

_TOKEN_REQUEST_HEADERS = (
    'HTTP_X_AUTH_USER',
    'HTTP_X_AUTH_KEY',
    'HTTP_X_AUTH_PROJECT_ID',
)
_PROJECT = re.compile(r'/v2/([0-9a-f-]+)(?:/|$)')


def authenticate(conf: cfg.ConfigOpts, app: App, enforcer: Enforcer) -> Authenticated:
    """Wrap the app in a middleware that trusts the request."""
    sign_in = SignIn(enforcer)
    return Authenticated(
        NoAuthMiddleware(app, sign_in, project_in_url=conf.auth_strategy == 'noauth'),
        _IdentityApi(conf, sign_in) if conf.http_basic.identity_api else None,
    )


class SignIn:
    """Takes the caller from the token or the URL of a request."""

    def __init__(self, enforcer: Enforcer):
        self._enforcer = enforcer

    def context(self, environ: dict) -> RequestContext:
        token = environ.get('HTTP_X_AUTH_TOKEN')
        if token not in _NO_TOKEN:
            user, _, project = token.partition(':')
        else:
            user, project = 'admin', _project_of(environ) or 'admin'
        return self._context(environ, user, project or user)

    def context_of(self, user: 'User', environ: dict) -> RequestContext:
        """Return the context of a user of the identity API."""
        return self._context(environ, user.user_id, user.project_id)

    def _context(self, environ: dict, user_id: str, project_id: str) -> RequestContext:
        return caller.build_context(
            environ,
            self._enforcer,
            user_id=user_id,
            project_id=project_id,
            roles=list(ROLES),
            is_admin=True,
        )


class _IdentityApi:
    """The identity API, which is loaded when it is first used."""

    def __init__(self, conf: cfg.ConfigOpts, sign_in: SignIn):
        self._given = conf, sign_in

    def __call__(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        return self._app(environ, start_response)

    @functools.cached_property
    def _app(self) -> App:
        from manila_lite.api.identity import noauth

        return noauth.build(*self._given)


class NoAuthMiddleware:
    """Passes requests on as administrators with the stated names."""

    def __init__(self, app: App, sign_in: SignIn, project_in_url: bool):
        self._app, self._sign_in, self._project_in_url = app, sign_in, project_in_url

    def __call__(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        if environ.get('HTTP_X_AUTH_TOKEN') in _NO_TOKEN and any(
            header in environ for header in _TOKEN_REQUEST_HEADERS
        ):
            return self._send_token(environ, start_response)
        ctx = self._sign_in.context(environ)
        return caller.call_as(ctx, self._app, environ, start_response)

    def _send_token(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        user = environ.get('HTTP_X_AUTH_USER', 'admin')
        project = environ.get('HTTP_X_AUTH_PROJECT_ID', 'admin')
        url = webob.Request(environ).path_url
        if self._project_in_url:
            url = f'{url.rstrip("/")}/{project}'
        start_response(
            '204 No Content',
            [('X-Auth-Token', f'{user}:{project}'), ('X-Server-Management-Url', url)],
        )
        return []


def _project_of(environ: dict) -> str | None:
    """Return the project id in the URL, or None."""
    match = _PROJECT.search(
        environ.get('SCRIPT_NAME', '') + environ.get('PATH_INFO', '')
    )
    return match and match[1]
