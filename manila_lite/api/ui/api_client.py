"""The API as the pages call it: as the caller, within this process."""

import io
import typing
import urllib.parse

import orjson

from manila_lite import exception
from manila_lite.api import middleware, versions, wsgi
from manila_lite.api.auth.caller import App

_KEPT = (
    'REMOTE_ADDR',
    'SCRIPT_NAME',
    'SERVER_NAME',
    'SERVER_PORT',
    'SERVER_PROTOCOL',
    'HTTP_HOST',
    'wsgi.url_scheme',
    'wsgi.errors',
    wsgi.CONTEXT,
    middleware.REQUEST_ID,
    middleware.GLOBAL_REQUEST_ID,
)
_HIDDEN = (403, 404)


class Refused(exception.ManilaLiteError):
    """The API refused a request; the message is for the user."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = code


class ApiClient:
    """Calls the API with the identity and the ids of a request to a page."""

    def __init__(self, app: App, environ: dict):
        self._app = app
        self._environ = {name: environ[name] for name in _KEPT if name in environ}

    def get(self, path: str, **query: object) -> typing.Any:
        """Return the body of the answer; raises Refused."""
        return self.send('GET', path, query=query)

    def find(self, path: str, **query: object) -> typing.Any:
        """Return the body, or None if the caller may not see it."""
        try:
            return self.get(path, **query)
        except Refused as error:
            if error.code in _HIDDEN:
                return None
            raise

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        query: typing.Mapping[str, object] | None = None,
    ) -> typing.Any:
        """Send a request; return the body of the answer, or raise Refused."""
        content = b'' if body is None else orjson.dumps(body)
        status = 0

        def start_response(line: str, *given: object) -> None:
            nonlocal status
            status = int(line[:3])

        text = b''.join(
            self._app(
                {
                    **self._environ,
                    'REQUEST_METHOD': method,
                    'PATH_INFO': versions.PREFIX + path,
                    'QUERY_STRING': urllib.parse.urlencode(query or {}),
                    'CONTENT_TYPE': 'application/json',
                    'CONTENT_LENGTH': str(len(content)),
                    'HTTP_X_OPENSTACK_MANILA_API_VERSION': versions.text(versions.MAX),
                    'HTTP_X_OPENSTACK_MANILA_API_EXPERIMENTAL': 'true',
                    'wsgi.input': io.BytesIO(content),
                },
                start_response,
            )
        )
        answer = orjson.loads(text) if text else None
        if status >= 400:
            raise Refused(status, _message(answer))
        return answer


def _message(answer: typing.Any) -> str:
    for fault in (answer or {}).values():
        return str(fault.get('message', ''))
    return ''
