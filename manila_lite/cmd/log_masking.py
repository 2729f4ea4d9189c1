"""Mask secrets in all that a process logs, tracebacks included."""

import logging
import sys
import types
import typing

from oslo_log import formatters

from manila_lite import masking
from manila_lite.cmd import plain_lines

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
    """

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = masking.mask(_message_of(record))
        record.args = None
        if record.exc_info and record.exc_info[1] is not None:
            _, error, traceback = record.exc_info
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
        self._plain = plain_lines.for_formatter(self._formatter)

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
