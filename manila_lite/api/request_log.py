"""The line that the log has for each request, and how long requests took.

Each process of the API adds its own counts to the table of samples, and
schedulers make one figure of them for the charts of the page.
"""

import base64
import binascii
import functools
import logging
import time

from manila_lite import exception, metrics
from manila_lite.api import wsgi
from manila_lite.db.queries.services import samples
from manila_lite.db.queries.services.samples import Latencies
from manila_lite.db.session import Database

NAME = __name__
LOG = logging.getLogger(NAME)

_POLLED = ('/healthcheck', '/metrics')
_LONGEST = 1000
_UNKNOWN = 'an unknown user'


def log(environ: dict, status: str, began: float) -> None:
    """Write the line of a request; `began` is by `time.perf_counter`.

    Health checks and scrapes that succeed are left out: some come every
    second.
    """
    if not LOG.isEnabledFor(logging.INFO):
        return
    path = environ.get('PATH_INFO', '')
    code = status[:3]
    if path in _POLLED and code == '200':
        return
    if code == '401':
        LOG.info('Sign-in of %s from %s refused', _user(environ), _client(environ))
    query = environ.get('QUERY_STRING')
    if query:
        path = f'{path}?{query}'
    ctx = environ.get(wsgi.CONTEXT)
    # Not by LOG.info(), which would look for its caller in the stack.
    LOG.handle(
        LOG.makeRecord(
            NAME,
            logging.INFO,
            __file__,
            log.__code__.co_firstlineno,
            '%s %s %s of %s, project %s, from %s: %s in %.1f ms',
            (
                environ.get('openstack.request_id'),
                environ['REQUEST_METHOD'],
                _printable(path),
                ctx and ctx.user_id,
                ctx and ctx.project_id,
                _client(environ),
                code,
                (time.perf_counter() - began) * 1000,
            ),
            None,
            log.__name__,
        )
    )


def log_refusal(environ: dict, error: exception.ManilaLiteError) -> None:
    """Log why an operation was refused, with the ids of what it is about."""
    ctx, target = environ.get(wsgi.CONTEXT), environ.get(wsgi.TARGET)
    LOG.info(
        'Refused %s %s (share %s, share_instance %s, project %s, request %s): %d %s',
        environ['REQUEST_METHOD'],
        _printable(environ.get('PATH_INFO', '')),
        getattr(target, 'share_id', getattr(target, 'id', None)),
        getattr(target, 'instance_id', None),
        ctx and ctx.project_id,
        environ.get('openstack.request_id'),
        error.code,
        ' '.join(error.msg.split())[:_LONGEST],
    )


def _client(environ: dict) -> str:
    return environ.get('REMOTE_ADDR') or '-'


def _user(environ: dict) -> str:
    """Describe the user of a refused sign-in; never by a token."""
    name = environ.get(wsgi.SIGN_IN_NAME)
    if name:
        return f'user {_printable(name)}'
    kind, _, value = environ.get('HTTP_AUTHORIZATION', '').partition(' ')
    if kind.lower() != 'basic':
        has_token = 'HTTP_X_AUTH_TOKEN' in environ
        return 'a user with an invalid token' if has_token else _UNKNOWN
    try:
        text = base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return _UNKNOWN
    return f'user {_printable(text.partition(":")[0])}'


def _printable(text: str) -> str:
    """Return the text on one line; a client chooses what is in it."""
    text = text[:_LONGEST]
    return text if text.isprintable() else ascii(text)


INTERVAL = 60.0
"""Seconds between two reports; what a process has not reported is lost."""

_PREFIX = '/v2'


class LatencyReports:
    """Reports the requests that were answered since the last report."""

    def __init__(self, db: Database, process_id: str):
        self.db, self.process_id = db, process_id
        self._reported = _counted()

    def run_pass(self) -> bool:
        """Write what is new; return whether there was anything."""
        counted = _counted()
        counts = [
            now - before
            for now, before in zip(counted.counts, self._reported.counts, strict=True)
        ]
        if not any(counts):
            return False
        found = counted._replace(counts=counts)
        self.db.write(samples.add_latencies, self.process_id, found, fsync=False)
        self._reported = counted
        return True


def _counted() -> Latencies:
    """Return the counts of all requests to the API, without those to the page."""
    bounds = metrics.REQUESTS.bounds
    none = Latencies(bounds, [0] * (len(bounds) + 1))
    found = [
        Latencies(bounds, distribution.counts)
        for (_, route, _), distribution in metrics.REQUESTS.family().samples.items()
        if route.startswith(_PREFIX)
    ]
    return functools.reduce(Latencies.plus, found, none)
