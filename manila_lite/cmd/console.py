"""What commands share: arguments, tables, the configured database."""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
import contextlib
import getpass
from importlib import metadata
import json
import os
import sys
import typing

from oslo_config import cfg

from manila_lite import exception
from manila_lite.cmd import start
from manila_lite.db import schema
from manila_lite.db.session import Database

PROG = 'manila-lite-manage'

Run = Callable[[argparse.Namespace], int | None]
Parsers = dict[str, argparse.ArgumentParser]

_AS_ELSEWHERE = {'online_data_migrations'}
"""Verbs that all services of OpenStack spell with underscores."""


def add_version(parser: argparse.ArgumentParser) -> None:
    """Add the option that prints the version."""
    parser.add_argument(
        '--version',
        action='version',
        version=f'{parser.prog} {metadata.version("manila_lite")}',
    )


def port(text: str) -> int:
    """Parse the number of a port; 0 lets the system choose one."""
    number = int(text)
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError(f'{text} is not a port')
    return number


def configure(args: argparse.Namespace) -> cfg.ConfigOpts:
    """Return the configuration of the installation that is selected.

    For that of the machine, root reads what the user of the services cannot,
    and then acts as this user: files that are written belong to the services.
    """
    of_machine = args.config_file is None and args.state_dir is None
    return start.configure(
        PROG,
        config_files=args.config_file,
        state_dir=args.state_dir,
        as_owner=of_machine,
    )


@contextlib.contextmanager
def database(
    conf: cfg.ConfigOpts, *, create: bool = False, ready: bool = False
) -> Iterator[Database]:
    """Open the database; with `ready`, check its schema."""
    if not conf.database.connection:
        raise cfg.Error(_no_database())
    db = start.database(conf, create=create)
    try:
        if ready:
            schema.check(db)
        yield db
    finally:
        db.dispose()


def _no_database() -> str:
    """Return an error that names the database of `make run`, if any."""
    found = os.path.join('state', start.DATABASE_FILE)
    there = (
        ', as "--state-dir state" for the one in ./state'
        if os.path.exists(found)
        else ''
    )
    return (
        'no database: connection in section [database] is not set. Name the '
        'state directory of "manila-lite serve" or "make run" with '
        f'--state-dir{there}, or a configuration file with --config-file. On a '
        'node of "deploy" run the command as root, without --config-file'
    )


def password(name: str) -> str:
    """Return what standard input has, or what a terminal is asked for."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip('\r\n')
    given = getpass.getpass(f'Password of {name}: ')
    if getpass.getpass('Repeat the password: ') != given:
        raise exception.InvalidInput(reason='the passwords differ')
    return given


def show(
    args: argparse.Namespace,
    head: Sequence[str],
    found: Sequence[dict[str, typing.Any]],
) -> None:
    """Print rows as JSON or YAML if requested, else as a table."""
    if args.json:
        print(json.dumps(found, indent=2))
    elif getattr(args, 'yaml', False):
        _print_yaml(found)
    else:
        print_table(head, ([row[name] for name in head] for row in found))


def _print_yaml(found: Sequence[dict[str, typing.Any]]) -> None:
    """Print rows, whose plain values are the same in JSON and YAML."""
    for row in found:
        mark = '- '
        for name, value in row.items():
            print(f'{mark}{name}: {json.dumps(value)}')
            mark = '  '
    if not found:
        print('[]')


def print_table(head: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Print rows in aligned columns."""
    import prettytable  # services, which import this module, need no tables

    table = prettytable.PrettyTable(head)
    table.set_style(prettytable.TableStyle.PLAIN_COLUMNS)
    table.align = 'l'
    table.right_padding_width = 2
    for row in rows:
        table.add_row(
            ['-' if cell is None else ' '.join(str(cell).split()) for cell in row]
        )
    for line in table.get_string().splitlines():
        print(line.rstrip())


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--json', action='store_true', help='print JSON instead of a table'
    )


def add_formats(parser: argparse.ArgumentParser) -> None:
    formats = parser.add_mutually_exclusive_group()
    for name in ('json', 'yaml'):
        formats.add_argument(
            f'--{name}',
            action='store_true',
            help=f'print {name.upper()} instead of a table',
        )


def location_options(default: str | None) -> argparse.ArgumentParser:
    """Return a parser for the options that select an installation.

    They are allowed before and after the command; when absent after it,
    they must not override values given before.
    """
    parser = argparse.ArgumentParser(add_help=False, argument_default=default)
    parser.add_argument(
        '--config-file',
        metavar='FILE',
        action='append',
        help='file to read; may be repeated',
    )
    parser.add_argument(
        '--state-dir',
        metavar='DIR',
        help='directory with the state of "manila-lite '
        'serve", and its database unless a file '
        'names another',
    )
    return parser


class Commands(typing.Protocol):
    """Where commands are added, or the verbs of one."""

    def add_parser(
        self,
        name: str,
        *,
        help: str | None = ...,
        description: str | None = ...,
        parents: Sequence[argparse.ArgumentParser] = ...,
    ) -> argparse.ArgumentParser: ...


def add(nouns: Commands, noun: str, about: str, **runs: Run) -> Parsers:
    """Add a noun and its verbs; return the parsers of the verbs."""
    verbs = nouns.add_parser(noun, help=about).add_subparsers(
        metavar='VERB', required=True
    )
    return add_verbs(verbs, **runs)


def add_verbs(verbs: Commands, **runs: Run) -> Parsers:
    """Add verbs to a noun; return their parsers."""
    parsers = {}
    for name, run in runs.items():
        parsers[name] = verbs.add_parser(
            name if name in _AS_ELSEWHERE else name.replace('_', '-'),
            help=run.__doc__,
            description=run.__doc__,
            parents=[location_options(argparse.SUPPRESS)],
        )
        parsers[name].set_defaults(run=run, usage_error=parsers[name].error)
    return parsers
