"""Templates, their filters, and responses; how they show a status."""

from collections.abc import Callable, Iterable
import datetime
import functools

import jinja2

from manila_lite.api import wsgi
from manila_lite.db.queries.recovery import overview
from manila_lite.db.queries.recovery.figures import HEALTHY
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.share_server import SHARE_SERVER_TASK, TaskState
from manila_lite.states.share_task import SHARE_TASK, ShareTask

Headers = Iterable[tuple[str, str]]

_UNITS = (('day', 86400), ('hour', 3600), ('minute', 60))


def send(
    start_response: Callable,
    status: int,
    template: str,
    headers: Headers = (),
    /,
    **values: object,
) -> list[bytes]:
    """Send a page."""
    return wsgi.send(
        start_response,
        status,
        render(template, **values).encode(),
        headers,
        kind='text/html; charset=utf-8',
    )


def redirect(start_response: Callable, to: str, headers: Headers = ()) -> list[bytes]:
    """Send the browser to another page, whatever the method was."""
    return wsgi.send(
        start_response, 303, None, [*headers, ('Location', to)], kind='text/plain'
    )


def render(template: str, /, **values: object) -> str:
    return _environment().get_template(template).render(**values)


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader('manila_lite.api.ui'),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(
        age=age,
        condition=condition_of,
        exact=exact,
        number='{:,}'.format,
        since=seconds_since,
        words=lambda text: str(text).replace('_', ' '),
    )
    environment.globals['symbols'] = SYMBOLS
    return environment


def moment(value: datetime.datetime | str) -> datetime.datetime:
    """Return a time of the database or of the API, without a zone."""
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value)
    return value.replace(tzinfo=None)


def exact(value: datetime.datetime | str) -> str:
    return moment(value).isoformat(' ', 'seconds') + ' UTC'


def seconds_since(value: datetime.datetime | str, now: datetime.datetime) -> float:
    return (now - moment(value)).total_seconds()


def duration(seconds: float) -> str:
    """Return a duration in words; in milliseconds below one second."""
    return f'{seconds * 1000:.0f} ms' if seconds < 1 else age(seconds)


def age(seconds: float) -> str:
    """Return a duration in words, in its largest unit."""
    seconds = int(max(seconds, 0))
    for unit, length in _UNITS:
        if seconds >= length:
            number = seconds // length
            return f'{number} {unit}{"s" if number > 1 else ""}'
    return f'{seconds} s'


SYMBOLS = {
    overview.HEALTHY: '✓',
    overview.WORKING: '↻',
    overview.STUCK: '‖',
    overview.FAILED: '✗',
    'other': '•',
}

_TASKS = (SHARE_TASK, SHARE_SERVER_TASK)
# A resource whose migration has failed may be healthy; its task is not.
_OF_TASKS = {
    ShareTask.SUCCESS: overview.HEALTHY,
    TaskState.COMPLETED: overview.HEALTHY,
    ShareTask.ERROR: overview.FAILED,
    TaskState.ERROR: overview.FAILED,
}

_HEALTHY = {
    status
    for machine, found in HEALTHY.items()
    for status in found
    if machine not in _TASKS
} | {'up', 'enabled', 'succeeded'}
_WORKING = {status for machine in HEALTHY for status in machine.in_flight} | {'running'}
_FAILED = {
    status
    for machine in HEALTHY
    if machine not in _TASKS
    for status in machine.statuses
    if status not in _HEALTHY | _WORKING
} | {'down', 'failed', 'unavailable', 'cut_off'}

NEXT_STEPS: dict[str, str] = {
    InstanceStatus.ERROR: (
        'If the share was new, delete it and create it again. If it has data, '
        'send the request id to your administrator, who can repair it and reset '
        'its status.'
    ),
    InstanceStatus.ERROR_DELETING: (
        'Delete the share again. If that fails too, send the request id to your '
        'administrator.'
    ),
    InstanceStatus.EXTENDING_ERROR: (
        'The share can be used with its old size. Your administrator has to reset '
        'its status before it can be changed.'
    ),
    InstanceStatus.SHRINKING_ERROR: (
        'The data of the share is unchanged. Your administrator has to reset its '
        'status before it can be changed.'
    ),
    InstanceStatus.REVERTING_ERROR: (
        'Do not write to the share: it may have the content of the snapshot in '
        'part. Your administrator has to check it first.'
    ),
    InstanceStatus.BACKUP_RESTORING_ERROR: (
        'Restore the backup again, or ask your administrator.'
    ),
}
"""What a user can do about a share that has failed, by its status."""


def condition_of(status: str | None) -> str:
    """Return the condition that a status of any kind is shown as."""
    if status in _OF_TASKS:
        return _OF_TASKS[status]
    if status in _HEALTHY:
        return overview.HEALTHY
    if status in _WORKING:
        return overview.WORKING
    return overview.FAILED if status in _FAILED else 'other'
