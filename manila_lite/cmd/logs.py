"""The log: its levels, masked secrets, and lines that are formatted quickly.

The formatter of oslo.log takes half of the time that a line costs. With its
default formats the same text is put together here for lines that every request
writes; otherwise, and for lines with an error, it is used as configured.
"""

from collections.abc import Iterable
import logging
import sys
import time
import types
import typing

from oslo_context import context
from oslo_db.exception import DBConnectionError
from oslo_log import formatters

from manila_lite import masking
from manila_lite.api import request_log
from manila_lite.conf import BadConfiguration

OPTION = 'default_log_levels'


def parse(pairs: Iterable[str]) -> dict[str, int]:
    """Return the level of each logger that the option names.

    oslo.log accepts the same levels, but raises a bare ValueError for any
    other, after it has set up a part of the log.
    """
    return dict(_parse_one(pair) for pair in pairs)


def _parse_one(pair: str) -> tuple[str, int]:
    name, _, level = pair.partition('=')
    try:
        return name, int(level)
    except ValueError:
        known = logging.getLevelNamesMapping()
    if level not in known:
        raise BadConfiguration(
            f'{OPTION}: "{pair}" is not logger=LEVEL, with a number or '
            f'one of {", ".join(known)} as its level'
        )
    return name, known[level]


_MAX_CAUSES = 20
_ADD_NO_TEXT = (logging.Formatter, formatters.ContextFormatter)
"""Formatters whose output is masked if the record is.

If an error is being handled, the second adds a summary of it.
"""


def install() -> None:
    """Mask what the handlers of all loggers write."""
    root = logging.getLogger()
    for logger in (root, *root.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):
            for handler in logger.handlers:
                mask_handler(handler)


def mask_handler(handler: logging.Handler) -> None:
    """Mask what a handler writes; without effect if it does so already."""
    if not any(isinstance(one, _MaskingFilter) for one in handler.filters):
        handler.addFilter(_MaskingFilter())
        handler.setFormatter(_MaskingFormatter(handler.formatter))


class _MaskingFilter(logging.Filter):
    """Masks the message and the errors of a record before it is formatted.

    Formatters for JSON would otherwise escape secrets before they are masked.
    A database that is away needs no traceback: every pass and request fails
    then, each at its own place.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = masking.mask(_message_of(record))
        record.args = None
        if record.exc_info and record.exc_info[1] is not None:
            _, error, traceback = record.exc_info
            if isinstance(error, DBConnectionError):
                text = ' '.join(str(error).split())
                record.msg = f'{record.msg}: {masking.mask(text)}'
                record.exc_info = record.exc_text = None
            else:
                stand_in = _masked(error, _MAX_CAUSES)
                record.exc_info = (type(stand_in), stand_in, traceback)
        if record.exc_text:
            record.exc_text = masking.mask(record.exc_text)
        return True


class _MaskingFormatter(logging.Formatter):
    """Masks the output of another formatter.

    oslo.log can add a summary of the error that is being handled.
    """

    def __init__(self, formatter: logging.Formatter | None):
        super().__init__()
        self._formatter = formatter or logging.Formatter()
        self._plain = for_formatter(self._formatter)

    def format(self, record: logging.LogRecord) -> typing.Any:
        if self._plain is not None and self._plain.handles(record):
            return self._plain.format(record)
        text = self._formatter.format(record)
        if type(self._formatter) in _ADD_NO_TEXT and not (
            record.exc_info or sys.exc_info()[1]
        ):
            return text
        return masking.mask_values(text)

    def __getattr__(self, name: str) -> typing.Any:
        return getattr(self._formatter, name)


def _message_of(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError):  # raised here, it would end the caller
        return f'{record.msg} {record.args}'


def _masked(error: BaseException, causes: int) -> BaseException:
    """Return an error that is printed like this one, but masked."""
    try:
        text = masking.mask(str(error))
    except Exception:  # noqa: BLE001 drivers define their own errors
        text = '<no text>'
    kind = types.new_class(type(error).__name__, (Exception,))
    kind.__module__ = type(error).__module__
    kind.__qualname__ = type(error).__qualname__
    stand_in = kind(text)
    stand_in.__traceback__ = error.__traceback__
    stand_in.__suppress_context__ = error.__suppress_context__
    for note in getattr(error, '__notes__', ()):
        stand_in.add_note(masking.mask(str(note)))
    if causes:
        if error.__cause__ is not None:
            stand_in.__cause__ = _masked(error.__cause__, causes - 1)
            stand_in.__suppress_context__ = error.__suppress_context__
        elif error.__context__ is not None:
            stand_in.__context__ = _masked(error.__context__, causes - 1)
    return stand_in


_FORMAT = (
    '%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s '
    '[%(global_request_id)s %(request_id)s %(user_identity)s] '
    '%(instance)s%(message)s'
)
_IDENTITY = (
    '%(user)s %(project)s %(domain)s %(system_scope)s %(user_domain)s '
    '%(project_domain)s'
)
_DATE = '%Y-%m-%d %H:%M:%S'


class PlainLines:
    """Formats as a formatter of oslo.log with default formats does."""

    def __init__(self) -> None:
        self._second = -1
        self._date = ''

    def handles(self, record: logging.LogRecord) -> bool:
        return record.name == request_log.NAME and not record.exc_info

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record whose message is complete."""
        second = int(record.created)
        if second != self._second:
            date = time.strftime(_DATE, time.localtime(second))
            self._second, self._date = second, date
        else:
            date = self._date
        ctx: typing.Any = context.get_current()
        if ctx is None:
            ids = '-'
        else:
            ids = (
                f'{ctx.global_request_id} {ctx.request_id} '
                f'{ctx.user_id or "-"} {ctx.project_id or "-"} '
                f'{ctx.domain_id or "-"} {ctx.system_scope or "-"} '
                f'{ctx.user_domain_id or "-"} {ctx.project_domain_id or "-"}'
            )
        return (
            f'{date}.{int(record.msecs):03d} {record.process} '
            f'{record.levelname} {record.name} [{ids}] {record.msg}'
        )


def for_formatter(formatter: logging.Formatter) -> PlainLines | None:
    """Return what can replace the formatter, or None."""
    if type(formatter) is not formatters.ContextFormatter:
        return None
    conf = formatter.conf
    is_default = (
        conf.logging_context_format_string == _FORMAT
        and conf.logging_user_identity_format == _IDENTITY
        and conf.log_date_format == _DATE
    )
    return PlainLines() if is_default else None
