"""Calls of drivers, none of which outlives the claim it is made for."""

from collections.abc import Callable
import functools
import logging
import time
import typing

from manila_lite import context, exception, metrics
from manila_lite.context import FencingToken, RequestContext
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.work.job import RecordedCall, current_job

LOG = logging.getLogger(__name__)

_QUERY_PREFIXES = ('get_', 'check_', 'choose_')
_POLLS = frozenset(
    {
        'create_backup_continue',
        'ensure_share',
        'ensure_shares',
        'migration_continue',
        'restore_backup_continue',
        'share_server_migration_continue',
        'update_replica_state',
        'update_replicated_snapshot',
    }
)
"""Methods that are called again and again, mostly to no effect."""
_QUERIES = frozenset(
    {
        'migration_check_compatibility',
        'migration_get_progress',
        'share_server_migration_check_compatibility',
        'share_server_migration_get_progress',
    }
)

_PUBLISHED_NAMES = {'apply_access': 'update_access'}
"""What operators and authors of drivers call methods of ours."""


def is_query(name: str) -> bool:
    """Whether a method of the driver interface leaves the back end as it is.

    The published interface names its methods accordingly.
    """
    return name.startswith(_QUERY_PREFIXES) or name in _QUERIES


class GuardedDriver:
    """A driver whose calls need a valid claim of the job that makes them.

    A worker that was paused may have lost its claim; its call would undo
    what a later worker did, so ClaimLost is raised instead. Calls outside
    of a job are not checked; in a block of `fenced` they have its token.
    `driver` may be replaced by a wrapper. Metrics show calls by
    `backend_label`.
    """

    def __init__(self, driver: ShareDriver, backend_label: str = ''):
        self.driver = driver
        self.backend_label = backend_label

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class of the driver, so that isinstance works as on it."""
        return self.driver.__class__

    def __getattr__(self, name: str) -> typing.Any:
        found = getattr(self.driver, name)
        if name.startswith('_') or not callable(found):
            return found
        return functools.partial(
            _call,
            name,
            _counted(self.backend_label, _PUBLISHED_NAMES.get(name, name), found),
        )

    def __setattr__(self, name: str, value: object) -> None:
        if name in ('driver', 'backend_label'):
            super().__setattr__(name, value)
        else:
            setattr(self.driver, name, value)


def _call(
    name: str, method: Callable[..., typing.Any], *args: object, **kwargs: object
) -> typing.Any:
    job = current_job()
    if job is None:
        token = context.current_fencing_token()
        return _call_with_token(token, method, args, kwargs)
    job.require_claim()
    job.require_step()
    had_effects = job.has_effects
    if not is_query(name):
        job.has_effects = True
    try:
        return _call_with_token(job.fencing_token, method, args, kwargs)
    except exception.ServiceUnavailable:
        # The driver asks to be called again with the same.
        job.has_effects = had_effects
        raise
    except exception.StaleFencingToken as error:
        # If the claim holds, the clock of the database was set back.
        job.raise_fence(error.seen)
        LOG.warning('%s calls %s again: %s', job.kind, name, error)
        return _call_with_token(job.fencing_token, method, args, kwargs)


def _counted(
    backend: str, name: str, method: Callable[..., typing.Any]
) -> Callable[..., typing.Any]:
    """Return the method of a driver, with metrics and a record of calls."""

    def call(*args: object, **kwargs: object) -> typing.Any:
        outcome = 'failed'
        error: Exception | None = None
        recorded = _begin_record(name)
        began = time.perf_counter()
        metrics.DRIVER_CALLS_RUNNING.enter(backend, name)
        try:
            found = method(*args, **kwargs)
            outcome = 'ok'
            _note_call(f'{name} of back end {backend}')
            return found
        except exception.ServiceUnavailable as raised:
            outcome, error = 'unavailable', raised
            raise
        except exception.StaleFencingToken as raised:
            outcome, error = 'stale', raised
            raise
        except Exception as raised:
            error = raised
            raise
        finally:
            seconds = time.perf_counter() - began
            metrics.DRIVER_CALLS_RUNNING.leave(backend, name)
            metrics.DRIVER_CALLS.observe(seconds, (backend, name, outcome))
            if error is not None:
                # For the log and for the message to administrators.
                error.add_note(
                    f'{name} of back end {backend} failed after {seconds:.1f} s'
                )
            if recorded is not None:
                recorded.end(outcome, error, is_poll=name in _POLLS)

    return call


def _note_call(call: str) -> None:
    """Remember the last call of a job, for errors about its reply."""
    job = current_job()
    if job is not None:
        job.last_call = call


def _begin_record(name: str) -> RecordedCall | None:
    """Begin the record of a call; queries and calls without work have none."""
    job = current_job()
    if job is None or is_query(name):
        return None
    return RecordedCall(job, name)


def _call_with_token(
    token: FencingToken | None,
    method: Callable[..., typing.Any],
    args: tuple[typing.Any, ...],
    kwargs: dict[str, typing.Any],
) -> typing.Any:
    for one in (*args, *kwargs.values()):
        if isinstance(one, RequestContext):
            one.fencing_token = token
    with context.fenced(token):
        return method(*args, **kwargs)


def driver_context() -> RequestContext:
    """Return the context for a driver call of the current job."""
    job = current_job()
    return RequestContext() if job is None else job.request_context()
