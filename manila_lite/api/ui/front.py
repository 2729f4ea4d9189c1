"""The entrance for browsers: files, sign-in, and checks of requests.

A request that changes something must come from a page of this site: the
browser says so in `Origin`, and the form has the token of the session.
"""

from collections.abc import Callable, Iterable
import contextlib
import functools
import hashlib
import io
import ipaddress
import pathlib
import typing
import urllib.parse

import orjson
from oslo_config import cfg
from webob import exc

from manila_lite import exception
from manila_lite.api import router, wsgi
from manila_lite.api.auth.caller import App
from manila_lite.api.ui import PREFIX, html, sessions

FORM = 'manila_lite.ui.form'
FORM_TOKEN = 'manila_lite.ui.form_token'
TOKEN_FIELD = 'form_token'
MAX_FORM = 65536

SIGN_IN, SIGN_OUT = PREFIX + '/sign-in', PREFIX + '/sign-out'
STATIC = PREFIX + '/static/'
_KINDS = {'.css': 'text/css', '.js': 'text/javascript'}
_FOLDER = pathlib.Path(__file__).parent / 'static'
_EXPIRED = f'{SIGN_IN}?expired=1'
# A browser may add them by itself, or a page by a script.
_CREDENTIALS = ('HTTP_AUTHORIZATION', 'HTTP_X_AUTH_USER', 'HTTP_X_AUTH_KEY')


class Front:
    """Serves /ui; pages are in `authenticated`, for which it has a token."""

    def __init__(
        self, authenticated: App, identity_api: App | None, conf: cfg.ConfigOpts
    ):
        self._authenticated = authenticated
        self._identity_api = identity_api
        self._base_url = urllib.parse.urlsplit(conf.osapi_share_base_URL or '')
        self._strategy = conf.auth_strategy.removesuffix('v2')
        self._local_only = self._strategy == 'noauth' and not conf.noauth_allow_remote

    def __call__(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        path, method = environ['PATH_INFO'], environ['REQUEST_METHOD']
        environ[wsgi.ROUTE] = PREFIX
        if path.startswith(STATIC):
            return _send_file(environ, start_response)
        if method not in ('GET', 'HEAD', 'POST'):
            raise router.method_not_allowed(['GET', 'POST'])
        refusal = self._refusal(environ)
        if refusal:
            return _send_error(start_response, 403, refusal)
        if method == 'POST':
            environ[FORM] = _read_form(environ)
        if path == SIGN_IN:
            return self._sign_in(environ, start_response)
        session = sessions.find(environ)
        if session is None:
            return self._send_to_sign_in(environ, start_response)
        if method == 'POST' and not session.made(environ[FORM].get(TOKEN_FIELD, '')):
            return _send_error(
                start_response,
                403,
                'The form is not of your session. Go back, reload the page '
                'and try again.',
            )
        if path == SIGN_OUT and method == 'POST':
            self._revoke(session, environ)
            return html.redirect(start_response, SIGN_IN, [self._cookie(None, environ)])
        return self._show(session, environ, start_response)

    def _refusal(self, environ: dict) -> str | None:
        """Return why a request is refused before its path is read."""
        host = environ.get('HTTP_HOST', '')
        if self._local_only and not _is_local_name(host):
            # Another site's name may lead here, and so its scripts.
            return (
                'Without authentication, the page is served by the name '
                'localhost or an address only.'
            )
        if environ['REQUEST_METHOD'] != 'POST':
            return None
        origin = environ.get('HTTP_ORIGIN') or environ.get('HTTP_REFERER', '')
        hosts = {_without_port(host), _without_port(self._base_url.netloc)}
        given = _without_port(_split(origin).netloc)
        if (
            not given
            or given not in hosts
            or environ.get('HTTP_SEC_FETCH_SITE', 'same-origin') != 'same-origin'
        ):
            return 'The request was made by a page of another site.'
        return None

    def _cookie(
        self, session: sessions.UiSession | None, environ: dict
    ) -> tuple[str, str]:
        return sessions.header(
            session,
            secure='https' in (environ.get('wsgi.url_scheme'), self._base_url.scheme),
        )

    # Sign-in

    def _sign_in(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        query = dict(urllib.parse.parse_qsl(environ.get('QUERY_STRING', '')))
        form = environ.get(FORM)
        to = _own_path((form or query).get('to', ''))
        message = ''
        if 'expired' in query:
            message = 'Your session has ended.'
        if form is not None:
            try:
                session = sessions.begin(self._credential(form, environ))
            except exception.ManilaLiteError as error:
                message = error.public_message
            else:
                return html.redirect(
                    start_response, to, [self._cookie(session, environ)]
                )
        return html.send(
            start_response,
            401 if form is not None else 200,
            'sign_in.html',
            strategy=self._strategy,
            possible=self._strategy != 'http_basic' or self._identity_api,
            message=message,
            to=to,
        )

    def _credential(self, form: typing.Mapping[str, str], environ: dict) -> str:
        """Return the token of a sign-in; raises ManilaLiteError."""
        if self._strategy == 'noauth':
            found = ':'.join(
                form.get(name, '').replace(':', '') or 'admin'
                for name in ('user', 'project')
            )
        elif self._strategy == 'http_basic':
            found = self._token_of_password(form, environ)
        else:
            found = form.get('token', '').strip()
        if not (found and found.isascii() and found.isprintable()):
            raise exception.Unauthorized('The sign-in was not accepted.')
        if len(sessions.begin(found).value) > sessions.LONGEST:
            raise exception.Unauthorized('The token is too long for a cookie.')
        return found

    def _token_of_password(self, form: typing.Mapping[str, str], environ: dict) -> str:
        """Return a token of the identity API, which counts failures."""
        if self._identity_api is None:
            raise exception.Unauthorized('The identity API is off.')
        password = {
            'user': {'name': form.get('user', ''), 'password': form.get('password', '')}
        }
        body = orjson.dumps(
            {'auth': {'identity': {'methods': ['password'], 'password': password}}}
        )
        request = {'REQUEST_METHOD': 'POST', 'QUERY_STRING': 'nocatalog'}
        try:
            headers = self._call_identity_api(environ, request, body)
        except (exc.HTTPUnauthorized, exception.Unauthorized, exception.InvalidInput):
            raise exception.Unauthorized('Wrong user or password.') from None
        return headers.get('X-Subject-Token', '')

    def _revoke(self, session: sessions.UiSession, environ: dict) -> None:
        """End the token of a session, so that a copied cookie is useless.

        A token that was pasted may have other users, and stays valid.
        """
        if self._strategy != 'http_basic' or self._identity_api is None:
            return
        request = {
            'REQUEST_METHOD': 'DELETE',
            'QUERY_STRING': '',
            'HTTP_X_AUTH_TOKEN': session.credential,
            'HTTP_X_SUBJECT_TOKEN': session.credential,
        }
        # It may already have expired or been revoked.
        with contextlib.suppress(exc.HTTPClientError, exception.ManilaLiteError):
            self._call_identity_api(environ, request)

    def _call_identity_api(
        self, environ: dict, request: typing.Mapping[str, str], body: bytes = b''
    ) -> dict[str, str]:
        """Return the headers of the answer about a token."""
        headers: dict[str, str] = {}

        def start(line: str, found: list, *given: object) -> None:
            headers.update(found)

        assert self._identity_api is not None
        for _ in self._identity_api(
            {name: value for name, value in environ.items() if name not in _CREDENTIALS}
            | {
                'PATH_INFO': '/v3/auth/tokens',
                'CONTENT_TYPE': 'application/json',
                'CONTENT_LENGTH': str(len(body)),
                'wsgi.input': io.BytesIO(body),
                **request,
            },
            start,
        ):
            pass
        return headers

    def _send_to_sign_in(
        self, environ: dict, start_response: Callable
    ) -> Iterable[bytes]:
        to = environ['PATH_INFO']
        if environ['REQUEST_METHOD'] == 'POST':
            return html.redirect(start_response, _EXPIRED)
        query = urllib.parse.urlencode({'to': to})
        return html.redirect(start_response, f'{SIGN_IN}?{query}')

    # Pages

    def _show(
        self, session: sessions.UiSession, environ: dict, start_response: Callable
    ) -> Iterable[bytes]:
        for name in _CREDENTIALS:
            environ.pop(name, None)
        environ['HTTP_X_AUTH_TOKEN'] = session.credential
        environ[FORM_TOKEN] = session.form_token
        answer: list = []

        def start(*given: object) -> None:
            answer[:] = given

        try:
            body = [*self._authenticated(environ, start)]
        except exc.HTTPUnauthorized:
            answer = ['401']
        if answer[0].startswith('401'):
            return html.redirect(
                start_response, _EXPIRED, [self._cookie(None, environ)]
            )
        start_response(*answer)
        return body


def _is_local_name(host: str) -> bool:
    name = _split(f'//{host}').hostname or ''
    if name == 'localhost':
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _split(url: str) -> urllib.parse.SplitResult:
    """Return the parts of a URL; none of one that is malformed."""
    try:
        return urllib.parse.urlsplit(url)
    except ValueError:
        return urllib.parse.SplitResult('', '', '', '', '')


def _without_port(netloc: str) -> str:
    """Return the host without a default port, which browsers leave out."""
    return netloc.lower().removesuffix(':80').removesuffix(':443')


def _own_path(text: str) -> str:
    """Return the path of a page of this site; the first for any other."""
    parts = _split(text)
    if (
        parts.scheme
        or parts.netloc
        or '\\' in text
        or not text.isprintable()
        or not text.isascii()
        or not parts.path.startswith(PREFIX + '/')
        or not text.startswith(PREFIX + '/')
        or text.startswith((SIGN_IN, SIGN_OUT))
    ):
        return PREFIX + '/'
    return text


def _read_form(environ: dict) -> dict[str, str]:
    """Return the last value of each field; raises MalformedRequestBody."""
    kind = environ.get('CONTENT_TYPE', '').partition(';')[0].strip().lower()
    length = int(environ.get('CONTENT_LENGTH') or 0)
    if kind != 'application/x-www-form-urlencoded' or length > MAX_FORM:
        raise exception.MalformedRequestBody()
    raw = environ['wsgi.input'].read(length)
    try:
        return dict(
            urllib.parse.parse_qsl(
                raw.decode(),
                keep_blank_values=True,
                errors='strict',
                max_num_fields=wsgi.MAX_QUERY_KEYS,
            )
        )
    except ValueError:
        raise exception.MalformedRequestBody() from None


@functools.cache
def _files() -> dict[str, tuple[bytes, str, str]]:
    """Return content, type and tag of each file, by its path."""
    found = {}
    for path in _FOLDER.iterdir():
        if path.suffix in _KINDS:
            content = path.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
            kind = f'{_KINDS[path.suffix]}; charset=utf-8'
            found[STATIC + path.name] = content, kind, tag
    return found


def _send_file(environ: dict, start_response: Callable) -> Iterable[bytes]:
    if environ['PATH_INFO'] not in _files():
        raise exc.HTTPNotFound()
    if environ['REQUEST_METHOD'] not in ('GET', 'HEAD'):
        raise router.method_not_allowed(['GET'])
    content, kind, tag = _files()[environ['PATH_INFO']]
    headers = [('ETag', tag), ('Cache-Control', 'no-cache')]
    if environ.get('HTTP_IF_NONE_MATCH') == tag:
        return wsgi.send(start_response, 304, None, headers, kind=kind)
    return wsgi.send(start_response, 200, content, headers, kind=kind)


def _send_error(start_response: Callable, status: int, message: str) -> Iterable[bytes]:
    return html.send(start_response, status, 'refused.html', message=message)
