"""Middlewares around every request: request ids, HEAD, body limit."""

import os
import re
import time
import typing

from manila_lite import exception, metrics
from manila_lite.api import request_log, wsgi
from manila_lite.context import forget_caller

REQUEST_ID = 'openstack.request_id'
GLOBAL_REQUEST_ID = 'openstack.global_request_id'

REFUSED = 'manila_lite.refused'
"""The status code and the reason of what the web server refuses."""

_REQUEST_ID_FORM = re.compile(
    r'req-[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}'
)


_count = metrics.REQUESTS.observe


class RequestIdMiddleware:
    """Gives each request an id and returns it in headers; handles HEAD.

    A client may send a global request id. It is recorded together with our
    own id if it is well-formed. The end of each request is logged and
    counted.
    """

    def __init__(self, app: typing.Callable):
        self._app = app

    def __call__(
        self, environ: dict, start_response: typing.Callable
    ) -> typing.Iterable[bytes]:
        began = time.perf_counter()
        request_id = environ[REQUEST_ID] = _new_request_id()
        global_id = environ.get('HTTP_X_OPENSTACK_REQUEST_ID')
        if global_id and _REQUEST_ID_FORM.fullmatch(global_id):
            environ[GLOBAL_REQUEST_ID] = global_id

        answer = '-'

        def respond(
            status: str, headers: list, exc_info: object = None
        ) -> typing.Callable:
            nonlocal answer
            answer = status
            return start_response(
                status,
                [
                    *headers,
                    ('x-compute-request-id', request_id),
                    ('x-openstack-request-id', request_id),
                ],
                exc_info,
            )

        forget_caller()
        body = self._app(environ, respond)
        request_log.log(environ, answer, began)
        method, route = environ['REQUEST_METHOD'], environ.get(wsgi.ROUTE)
        _count(
            time.perf_counter() - began,
            # A client may send any method and path.
            (method, route, answer[:3])
            if route
            else ('other', 'unmatched', answer[:3]),
        )
        if method == 'HEAD':
            return _without_body(body)
        return body


def _new_request_id() -> str:
    """Return `req-` and a random UUID, as oslo.context does.

    Every request needs one, and an object of `uuid` takes longer to make.
    """
    text = os.urandom(16).hex()
    return f'req-{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}'


def _without_body(body: typing.Iterable[bytes]) -> list[bytes]:
    if hasattr(body, 'close'):
        body.close()
    return []


class BodyLimitMiddleware:
    """Refuses bodies longer than the limit before they are read.

    What the web server refuses by itself is refused here, too, within the
    middlewares that add headers.
    """

    def __init__(self, app: typing.Callable, limit: int):
        self._app, self._limit = app, limit

    def __call__(
        self, environ: dict, start_response: typing.Callable
    ) -> typing.Iterable[bytes]:
        if refused := environ.get(REFUSED):
            raise self._refusal(*refused)
        length = environ.get('CONTENT_LENGTH')
        if wsgi.is_chunked(environ):
            environ['wsgi.input'] = _Limited(environ['wsgi.input'], self._limit)
        elif length:
            if not (length.isascii() and length.isdecimal()):
                raise exception.MalformedRequestBody()
            if len(length) > 18 or int(length) > self._limit:
                raise exception.BodyTooLarge(limit=self._limit)
        return self._app(environ, start_response)

    def _refusal(self, code: int, reason: str) -> exception.ManilaLiteError:
        if code == 413:
            return exception.BodyTooLarge(limit=self._limit)
        if code == 431:
            return exception.HeadersTooLarge()
        if code == 501:
            return exception.TransferEncodingNotSupported()
        # Without the quoted line, which may be that of a password.
        return exception.MalformedRequest(reason=reason.partition(' "')[0])


class _Limited:
    """A body of unknown length; reading beyond the limit is an error."""

    def __init__(self, stream: typing.IO[bytes], limit: int):
        self._stream, self._left, self._limit = stream, limit, limit

    def read(self, size: int = -1) -> bytes:
        count = self._left + 1
        if 0 <= size < count:
            count = size
        data = self._stream.read(count)
        self._left -= len(data)
        if self._left < 0:
            raise exception.BodyTooLarge(limit=self._limit)
        return data
