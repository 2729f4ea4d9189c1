"""The official `openstack` command line, run in this process."""

import argparse
from collections.abc import Sequence
import functools
from importlib import metadata
import json
import typing
import unittest.mock

from cliff import commandmanager, display
from openstackclient import shell
from osc_lib import clientmanager, utils

from tests.support import command_line

WAIT_INTERVAL = 0.1
"""Seconds between two looks of `--wait`; the command itself takes 5."""


class Cli:
    """Runs commands with the given authentication options.

    `ran` holds the names of the commands that were run.
    """

    def __init__(self, *options: str, version: str | None = None):
        self.ran: set[str] = set()
        self._options = list(options)
        if version:
            self._options += ['--os-share-api-version', version]

    def __call__(self, command: str, *args: object, code: int = 0) -> typing.Any:
        """Run a command; return its output, or stderr if `code` is not 0."""
        self.ran.add(f'openstack {command}')
        has_output = issubclass(_commands()[command].load(), display.DisplayCommandBase)
        ended = self.run(
            *command.split(), *map(str, args), *(('-f', 'json') if has_output else ())
        )
        assert ended.code == code, (command, args, ended)
        if code:
            return ended.err
        return json.loads(ended.out) if has_output else ended.out

    def run(self, *words: str) -> command_line.Ended:
        """Run a command as it is; return how it ended and what it printed."""
        return command_line.run(_shell, [*self._options, *words])


def command_of(words: Sequence[str]) -> str:
    """Return the name of the command that the words begin with."""
    for end in range(len(words), 0, -1):
        if ' '.join(words[:end]) in _commands():
            return ' '.join(words[:end])
    raise LookupError(words)


@functools.cache
def _commands() -> dict[str, metadata.EntryPoint]:
    return {
        point.name.replace('_', ' '): point
        for point in metadata.entry_points(group='openstack.share.v2')
    }


def _shell(argv: Sequence[str]) -> int:
    _forget_clients()
    waits = {
        name: functools.partial(getattr(utils, name), sleep_time=WAIT_INTERVAL)
        for name in ('wait_for_status', 'wait_for_delete')
    }
    with (
        unittest.mock.patch.multiple(utils, **waits),
        unittest.mock.patch.object(
            commandmanager.CommandManager, 'load_commands', _load_commands_once
        ),
        unittest.mock.patch.object(
            shell.OpenStackShell, 'build_option_parser', _option_parser
        ),
    ):
        return shell.OpenStackShell().run(argv)


_build_option_parser = shell.OpenStackShell.build_option_parser
_parsers: dict[tuple[object, ...], argparse.ArgumentParser] = {}


def _option_parser(
    of_shell: shell.OpenStackShell, *args: object
) -> argparse.ArgumentParser:
    """Return the parser of global options, which no command changes."""
    if args not in _parsers:
        _parsers[args] = _build_option_parser(of_shell, *args)
    return _parsers[args]


_load_commands = commandmanager.CommandManager.load_commands
_loaded: dict[tuple[str, ...], dict[str, typing.Any]] = {}


def _load_commands_once(manager: commandmanager.CommandManager, namespace: str) -> None:
    """Add the commands of a namespace to those of the loaded ones.

    There are a thousand; finding them takes a third of most commands.
    """
    key = (*manager.group_list, namespace)
    if key in _loaded:
        manager.group_list.append(namespace)
        manager.commands |= _loaded[key]
    else:
        _load_commands(manager, namespace)
        _loaded[key] = dict(manager.commands)


def _forget_clients() -> None:
    """Make the next command authenticate again, as a new process would."""
    for cached in vars(clientmanager.ClientManager).values():
        if isinstance(cached, clientmanager.ClientCache):
            cached._handle = None
