"""Turns errors into HTTP responses; no other module formats faults."""

import logging
import traceback
import typing

from oslo_db import exception as db_exc
from webob import exc

from manila_lite import exception, masking
from manila_lite.api import request_log, wsgi
from manila_lite.db.session import CommitWatch

LOG = logging.getLogger(__name__)

FAULT_KEYS = {
    400: 'badRequest',
    401: 'unauthorized',
    403: 'forbidden',
    404: 'itemNotFound',
    405: 'badMethod',
    409: 'conflictingRequest',
    413: 'overLimit',
    415: 'badMediaType',
    501: 'notImplemented',
    503: 'serviceUnavailable',
}
_READS = ('GET', 'HEAD')
_NO_COMMITS = CommitWatch()
GENERIC_MESSAGE = (
    'The server has either erred or is incapable of performing the requested operation.'
)


class FaultMiddleware:
    """Turns every error of the wrapped application into a fault response.

    It wraps the whole application, and the router once more, because
    authentication middlewares turn webob's errors into HTML.
    """

    def __init__(self, app: typing.Callable):
        self._app = app

    def __call__(
        self, environ: dict, start_response: typing.Callable
    ) -> typing.Iterable[bytes]:
        if environ['REQUEST_METHOD'] in _READS:
            return self._respond(environ, start_response, _NO_COMMITS)
        with CommitWatch() as watch:
            return self._respond(environ, start_response, watch)

    def _respond(
        self, environ: dict, start_response: typing.Callable, watch: CommitWatch
    ) -> typing.Iterable[bytes]:
        try:
            return self._app(environ, start_response)
        except exc.HTTPException as error:
            if error.code < 400:
                return error(environ, start_response)
            return _send(
                environ,
                start_response,
                error.code,
                error.detail or error.explanation,
                _kept_headers(error),
            )
        except exception.ManilaLiteError as error:
            # Strangers must not be able to fill the log.
            if error.code >= 500 and not isinstance(error, exception.TooManySignIns):
                if isinstance(error, exception.ServiceUnavailable):
                    _log_unavailable(environ, error)
                else:
                    _log(environ, error)
            elif environ['REQUEST_METHOD'] not in _READS:
                request_log.log_refusal(environ, error)
            if watch.has_committed and isinstance(error, exception.ServiceUnavailable):
                error = exception.OutcomeUnknown()
            return _send(environ, start_response, error.code, *_public_fault(error))
        except db_exc.DBConnectionError as error:
            _log(environ, error)
            unavailable = (
                exception.OutcomeUnknown()
                if watch.has_committed
                else exception.ServiceUnavailable(
                    'The database is not available; try again later.'
                )
            )
            return _send(
                environ, start_response, unavailable.code, *_public_fault(unavailable)
            )
        except Exception as error:  # noqa: BLE001
            _log(environ, error)
            return _send(environ, start_response, 500, GENERIC_MESSAGE)


def _public_fault(
    error: exception.ManilaLiteError,
) -> tuple[str, list[tuple[str, str]]]:
    """Return the message for the user and additional headers."""
    if isinstance(error, exception.ServiceUnavailable):
        return error.msg, [('Retry-After', str(error.retry_after))]
    if error.code >= 500:
        return GENERIC_MESSAGE, []
    if isinstance(error, exception.QuotaError):
        return f'{type(error).__name__}: {error.msg}', []
    return error.public_message, []


def fault_key(code: int) -> str:
    """Return the published key of a fault of the share API."""
    return FAULT_KEYS.get(code, 'computeFault')


def _kept_headers(error: exc.HTTPException) -> list[tuple[str, str]]:
    """Return the headers of an HTTP error except those of its body."""
    return [
        (name, value)
        for name, value in error.headerlist
        if name.lower() not in ('content-type', 'content-length')
    ]


def _send(
    environ: dict,
    start_response: typing.Callable,
    code: int,
    message: str,
    headers: typing.Iterable[tuple[str, str]] = (),
) -> typing.Iterable[bytes]:
    headers = [*headers, *environ.get(wsgi.VERSION_HEADERS, ())]
    fault: dict[str, object] = {'code': code, 'message': masking.mask_known(message)}
    if code == 413:
        fault['retryAfter'] = '0'
        headers.append(('Retry-After', '0'))
    return wsgi.send_json(
        start_response,
        code,
        {environ.get(wsgi.FAULT_KEY) or fault_key(code): fault},
        headers,
    )


def _log_unavailable(environ: dict, error: exception.ServiceUnavailable) -> None:
    """Log a refusal that is expected to pass, with its cause, in a line."""
    cause = error.params.get('reason') or error.__cause__ or ''
    LOG.warning(
        '%s %s refused (request %s): %s %s',
        environ['REQUEST_METHOD'],
        environ.get('PATH_INFO'),
        environ.get('openstack.request_id'),
        error.msg,
        masking.mask(' '.join(str(cause).split())[:200]),
    )


def _log(environ: dict, error: Exception) -> None:
    """Log the traceback for the operator, with secrets masked."""
    text = ''.join(traceback.format_exception(error))
    LOG.error(
        '%s %s failed (request %s)\n%s',
        environ['REQUEST_METHOD'],
        environ.get('PATH_INFO'),
        environ.get('openstack.request_id'),
        masking.mask(text),
    )
