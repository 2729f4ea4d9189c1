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
A project in the URL is recognised by the default form of project ids, hex
digits and dashes, which no collection name has.
"""

from collections.abc import Callable, Iterable
import re

from oslo_config import cfg
import webob

from manila_lite.api.auth import caller
from manila_lite.api.auth.caller import App
from manila_lite.api.auth.caller import Authenticated
from manila_lite.policies.enforcer import Enforcer

ROLES = ['admin', 'member', 'reader']
_NO_TOKEN = (None, '', 'notused')

_TOKEN_REQUEST_HEADERS = (
    'HTTP_X_AUTH_USER',
    'HTTP_X_AUTH_KEY',
    'HTTP_X_AUTH_PROJECT_ID',
)
_PROJECT = re.compile(r'/v2/([0-9a-f-]+)(?:/|$)')


def authenticate(
    conf: cfg.ConfigOpts, app: App, enforcer: Enforcer
) -> Authenticated:
    """Wrap the app in a middleware that trusts the request."""
    return Authenticated(
        NoAuthMiddleware(
            app, enforcer, project_in_url=conf.auth_strategy == 'noauth'
        )
    )


class NoAuthMiddleware:
    """Passes requests on as administrators with the stated names."""

    def __init__(self, app: App, enforcer: Enforcer, project_in_url: bool):
        self._app = app
        self._enforcer = enforcer
        self._project_in_url = project_in_url

    def __call__(
        self, environ: dict, start_response: Callable
    ) -> Iterable[bytes]:
        token = environ.get('HTTP_X_AUTH_TOKEN')
        if token not in _NO_TOKEN:
            user, _, project = token.partition(':')
        elif any(header in environ for header in _TOKEN_REQUEST_HEADERS):
            return self._send_token(environ, start_response)
        else:
            user, project = 'admin', _project_of(environ) or 'admin'
        ctx = caller.build_context(
            environ,
            self._enforcer,
            user_id=user,
            project_id=project or user,
            roles=list(ROLES),
            is_admin=True,
        )
        return caller.call_as(ctx, self._app, environ, start_response)

    def _send_token(
        self, environ: dict, start_response: Callable
    ) -> Iterable[bytes]:
        user = environ.get('HTTP_X_AUTH_USER', 'admin')
        project = environ.get('HTTP_X_AUTH_PROJECT_ID', 'admin')
        url = webob.Request(environ).path_url
        if self._project_in_url:
            url = f'{url.rstrip("/")}/{project}'
        start_response(
            '204 No Content',
            [
                ('X-Auth-Token', f'{user}:{project}'),
                ('X-Server-Management-Url', url),
            ],
        )
        return []


def _project_of(environ: dict) -> str | None:
    """Return the project id in the URL, or None."""
    match = _PROJECT.search(
        environ.get('SCRIPT_NAME', '') + environ.get('PATH_INFO', '')
    )
    return match and match[1]
