"""No sign-in: everybody is an administrator, under the name they give.

The caller of a request is, in this order:

- who the X-Auth-Token says, `user:project`, or one word for both, as
  published and as keystoneauth's admin_token plugin sends it;
- nobody yet, when X-Auth-User, X-Auth-Key or X-Auth-Project-Id come
  without a token: the published answer is 204 with a token to use;
- user `admin` of the project in the URL, or of project `admin` where the
  URL has none. So come version discovery, which sends no header at all, and
  keystoneauth's none plugin, which always sends the token `notused`.

The last departs from the published service, which answers every request
without a token by 204: no official client could discover versions then.
A project in the URL is known by the default form of project ids, hex digits
and dashes, which no collection's name has.
"""

import re

import webob

from manila_lite.api.auth import caller

ROLES = ['admin', 'member', 'reader']
_NO_TOKEN = (None, '', 'notused')

_ASKING_FOR_TOKEN = (
    'HTTP_X_AUTH_USER',
    'HTTP_X_AUTH_KEY',
    'HTTP_X_AUTH_PROJECT_ID',
)
_PROJECT = re.compile(r'/v2/([0-9a-f-]+)(?:/|$)')


def make_middleware(conf, app, enforcer):
    """The app behind a sign-in that believes everything."""
    return NoAuthMiddleware(
        app, enforcer, project_in_url=conf.auth_strategy == 'noauth'
    )


class NoAuthMiddleware:
    """Passes requests on as the administrators they say they are from."""

    def __init__(self, app, enforcer, project_in_url):
        self._app = app
        self._enforcer = enforcer
        self._project_in_url = project_in_url

    def __call__(self, environ, start_response):
        token = environ.get('HTTP_X_AUTH_TOKEN')
        if token not in _NO_TOKEN:
            user, _, project = token.partition(':')
        elif any(header in environ for header in _ASKING_FOR_TOKEN):
            return self._give_token(environ, start_response)
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

    def _give_token(self, environ, start_response):
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


def _project_of(environ):
    """The project id in the URL, or None."""
    found = _PROJECT.search(
        environ.get('SCRIPT_NAME', '') + environ.get('PATH_INFO', '')
    )
    return found and found[1]
