"""The official `openstack` command line, run in this process."""

import contextlib
import functools
from importlib import metadata
import io
import json
import logging
import os
import typing
import unittest.mock

from cliff import display
from openstackclient import shell
from osc_lib import clientmanager


class Cli:
    """Runs commands with the given authentication options.

    `ran` holds the names of the commands that were run.
    """

    def __init__(self, *options: str, version: str | None = None):
        self.ran: set[str] = set()
        self._options = list(options)
        if version:
            self._options += ['--os-share-api-version', version]

    def __call__(
        self, command: str, *args: object, code: int = 0
    ) -> typing.Any:
        """Run a command; return its output, or stderr if `code` is not 0."""
        self.ran.add(f'openstack {command}')
        has_output = issubclass(
            _commands()[command].load(), display.DisplayCommandBase
        )
        exit_code, out, err = _run(
            [
                *self._options,
                *command.split(),
                *map(str, args),
                *(('-f', 'json') if has_output else ()),
            ]
        )
        assert exit_code == code, (command, args, exit_code, err, out)
        if code:
            return err
        return json.loads(out) if has_output else out


@functools.cache
def _commands() -> dict[str, metadata.EntryPoint]:
    return {
        point.name.replace('_', ' '): point
        for point in metadata.entry_points(group='openstack.share.v2')
    }


def _forget_clients() -> None:
    """Make the next command authenticate again, as a new process would."""
    for cached in vars(clientmanager.ClientManager).values():
        if isinstance(cached, clientmanager.ClientCache):
            cached._handle = None


def _run(argv: list[str]) -> tuple[int, str, str]:
    _forget_clients()
    out, err = io.StringIO(), io.StringIO()
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith('OS_')
    }
    with (
        _preserved_logging(),
        unittest.mock.patch.dict(os.environ, env, clear=True),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = shell.OpenStackShell().run(argv)
    return code, out.getvalue(), err.getvalue()


@contextlib.contextmanager
def _preserved_logging() -> typing.Iterator[None]:
    """Undo what the shell does to the loggers of this process."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers.clear()
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
