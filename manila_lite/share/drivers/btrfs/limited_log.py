"""Log an error that recurs every second only once in ten minutes."""

from collections.abc import Callable, Hashable
import logging
import time

_INTERVAL = 600.0


class LimitedLog:
    """The errors of one part of a process, by what they concern."""

    def __init__(
        self, log: logging.Logger, clock: Callable[[], float] = time.monotonic
    ):
        self._log = log
        self._clock = clock
        self._logged: dict[str, dict[Hashable, float]] = {}

    def error(self, subject: str, error: Exception) -> None:
        """Log an error unless one of its kind was logged a short time ago.

        The text of an error is not compared: it may have names of files that
        never occur again.
        """
        logged = self._logged.setdefault(subject, {})
        kind = (type(error), getattr(error, 'errno', None))
        now = self._clock()
        if now >= logged.get(kind, now):
            logged[kind] = now + _INTERVAL
            is_expected = isinstance(error, OSError)
            self._log.error(
                '%s: %s', subject, error, exc_info=None if is_expected else error
            )

    def forget(self, subject: str) -> None:
        """Record that a subject works again: its next error is logged."""
        self._logged.pop(subject, None)
