"""Links in answers, and the address at which clients reach the API."""

from collections.abc import Callable, Iterable
import urllib.parse

from manila_lite.api import versions, wsgi
from manila_lite.api.auth.caller import App


def collection_url(req: wsgi.Request, path: str) -> str:
    """Return the URL of a path such as 'shares', in the request's form.

    It contains the project id if the URL of the request does.
    """
    return f'{req.public_url}{versions.PREFIX}{_project(req)}/{path}'


def _project(req: wsgi.Request) -> str:
    if req.url_project is None:
        return ''
    return '/' + urllib.parse.quote(req.url_project, safe='')


class Links:
    """A callable that returns the two links of a resource id."""

    __slots__ = ('_bookmark', '_self')

    def __init__(self, req: wsgi.Request, collection: str):
        self._self = f'{collection_url(req, collection)}/'
        self._bookmark = f'{req.public_url}{_project(req)}/{collection}/'

    def __call__(self, id: str) -> list[dict[str, str]]:
        return [
            {'rel': 'self', 'href': self._self + id},
            {'rel': 'bookmark', 'href': self._bookmark + id},
        ]


_OF_CLIENT = ('HTTP_X_FORWARDED_PROTO', 'HTTP_X_FORWARDED_HOST')
_PREFIX = 'HTTP_X_FORWARDED_PREFIX'
_STANDARD = 'HTTP_FORWARDED'


class ProxyHeaders:
    """Reduces the lists of several proxies to what the client has used.

    Each proxy appends to a list. The first value of scheme and host is that
    of the client; each prefix was removed from what the one before has left.
    Slashes at the end of a prefix, and quotes around values, which a port
    needs, are removed. The addresses of clients are left as they are: of a
    list only the last can be trusted.
    """

    def __init__(self, app: App):
        self._app = app

    def __call__(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        for key in _OF_CLIENT:
            if key in environ:
                environ[key] = environ[key].partition(',')[0].strip()
        if _PREFIX in environ:
            environ[_PREFIX] = ''.join(
                f'/{part}'
                for prefix in environ[_PREFIX].split(',')
                if (part := prefix.strip().strip('/'))
            )
        if _STANDARD in environ:
            environ[_STANDARD] = environ[_STANDARD].replace('"', '')
        return self._app(environ, start_response)
