"""Commands run inside this process: no start of an interpreter each time."""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import io
import logging
import os
import sys
import typing
import unittest.mock

_KEPT = ('HOME', 'LANG', 'LC_ALL', 'PATH', 'TMPDIR', 'TZ')


class Ended(typing.NamedTuple):
    """What a command left: its exit code and what it printed."""

    code: int
    out: str
    err: str


def run(
    main: Callable[[Sequence[str]], typing.Any], argv: Sequence[str], stdin: str = ''
) -> Ended:
    """Call the entry point of a command, with few environment variables.

    Clients look through all of them for a proxy, at every request.
    """
    out, err = io.StringIO(), io.StringIO()
    env = {name: os.environ[name] for name in _KEPT if name in os.environ}
    with (
        _preserved_logging(),
        _caches_cleared_late(),
        unittest.mock.patch.dict(os.environ, env, clear=True),
        unittest.mock.patch.object(sys, 'stdin', io.StringIO(stdin)),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            code = main(argv)
        except SystemExit as ended:
            code = ended.code
            if isinstance(code, str):
                print(code, file=err)
                code = 1
    return Ended(code or 0, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _preserved_logging() -> Iterator[None]:
    """Undo what a command does to the loggers of this process."""
    root, hook = logging.getLogger(), sys.excepthook
    handlers = root.handlers[:]
    levels = {logger: logger.level for logger in _loggers()}
    root.handlers.clear()
    try:
        yield
    finally:
        root.handlers[:] = handlers
        sys.excepthook = hook
        for logger in _loggers():
            logger.level = levels.get(logger, logging.NOTSET)
        root.setLevel(root.level)  # clears the caches of all, once


@contextlib.contextmanager
def _caches_cleared_late() -> Iterator[None]:
    """Clear the caches of all loggers once for many changes of levels.

    There are thousands of loggers, and a command sets eight levels.
    """
    clear_cache = logging.Manager._clear_cache
    is_enabled_for = logging.Logger.isEnabledFor
    changed: list[logging.Manager] = []

    def note_change(manager: logging.Manager) -> None:
        changed.append(manager)

    def is_enabled_for_now(logger: logging.Logger, level: int) -> bool:
        if changed:
            clear_cache(changed.pop())
            changed.clear()
        return is_enabled_for(logger, level)

    with (
        unittest.mock.patch.object(logging.Manager, '_clear_cache', note_change),
        unittest.mock.patch.object(logging.Logger, 'isEnabledFor', is_enabled_for_now),
    ):
        yield


def _loggers() -> list[logging.Logger]:
    named = logging.Logger.manager.loggerDict.values()
    return [
        logging.getLogger(),
        *(one for one in named if isinstance(one, logging.Logger)),
    ]
