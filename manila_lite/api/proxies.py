"""Headers of proxies, in the form that oslo.middleware expects."""

from collections.abc import Callable, Iterable

from manila_lite.api.auth.caller import App

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
