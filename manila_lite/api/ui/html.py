"""Templates, their filters, and responses."""

from collections.abc import Callable, Iterable
import datetime
import functools
import typing

import jinja2

from manila_lite.api import wsgi
from manila_lite.api.ui import conditions

Headers = Iterable[tuple[str, str]]

_UNITS = (('day', 86400), ('hour', 3600), ('minute', 60))


def send(
    start_response: Callable,
    status: int,
    template: str,
    headers: Headers = (),
    /,
    **values: typing.Any,
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


def render(template: str, /, **values: typing.Any) -> str:
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
        condition=conditions.of_status,
        exact=exact,
        number='{:,}'.format,
        since=seconds_since,
        words=lambda text: str(text).replace('_', ' '),
    )
    environment.globals['symbols'] = conditions.SYMBOLS
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
