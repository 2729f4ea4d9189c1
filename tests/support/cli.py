"""The official `openstack` command line, run inside this process."""

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
    """Runs commands with the options of a sign-in.

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
        """What the command shows; with another exit code, what it says."""
        self.ran.add(f'openstack {command}')
        shows = issubclass(
            _commands()[command].load(), display.DisplayCommandBase
        )
        ended, out, err = _run(
            [
                *self._options,
                *command.split(),
                *map(str, args),
                *(('-f', 'json') if shows else ()),
            ]
        )
        assert ended == code, (command, args, ended, err, out)
        if code:
            return err
        return json.loads(out) if shows else out


@functools.cache
def _commands() -> dict[str, metadata.EntryPoint]:
    return {
        point.name.replace('_', ' '): point
        for point in metadata.entry_points(group='openstack.share.v2')
    }


def _forget_clients() -> None:
    """Let the next command sign in by itself, as a new process would."""
    for cached in vars(clientmanager.ClientManager).values():
        if isinstance(cached, clientmanager.ClientCache):
            cached._handle = None


def _run(argv: list[str]) -> tuple[int, str, str]:
    _forget_clients()
    out, err = io.StringIO(), io.StringIO()
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith('OS_')
    }
    with (
        _own_log(),
        unittest.mock.patch.dict(os.environ, kept, clear=True),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = shell.OpenStackShell().run(argv)
    return code, out.getvalue(), err.getvalue()


@contextlib.contextmanager
def _own_log() -> typing.Iterator[None]:
    """Take back what the shell does to the loggers of this process."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers.clear()
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
