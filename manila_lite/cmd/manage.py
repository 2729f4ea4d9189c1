"""`manila-lite-manage`: administration besides the API.

Exit codes: 0 success, 1 error, 2 usage error. `db check` returns 3 when
the schema is not that of this release; `status upgrade-check` has exit
codes of its own.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
import contextlib
import getpass
import json
import os
import sys
import typing

from oslo_config import cfg

from manila_lite import exception
from manila_lite.api.auth import users
from manila_lite.cmd import recovery
from manila_lite.cmd import start
from manila_lite.cmd import upgrade_check
from manila_lite.db import schema
from manila_lite.db.queries.admin import services
from manila_lite.db.session import Database
from manila_lite.db.session import Session
from manila_lite.work import table as work

PROG = 'manila-lite-manage'
WRONG_SCHEMA = 3


def main(argv: Sequence[str] | None = None) -> None:
    args = _parser().parse_args(argv)
    with start.report_errors(PROG):
        sys.exit(args.run(args))


# Databases


def db_sync(args: argparse.Namespace) -> None:
    """migrate the schema to this release"""
    with _database(_conf(args), create=True) as db:
        schema.sync(db)
        print(f'The database has schema {schema.version(db)}.')


def db_version(args: argparse.Namespace) -> None:
    """print the version of the schema"""
    with _database(_conf(args)) as db:
        print(schema.version(db) or 'none')


def db_check(args: argparse.Namespace) -> int:
    """check that the schema is that of this release: exit code 0 or 3"""
    with _database(_conf(args)) as db:
        try:
            schema.check(db)
        except schema.SchemaMismatch as error:
            print(f'{PROG}: {error}', file=sys.stderr)
            return WRONG_SCHEMA
    return 0


# Services, work and recovery


def service_list(args: argparse.Namespace) -> None:
    """list the services and their problems"""
    conf = _conf(args)
    with _database(conf, ready=True) as db:
        found = db.read(services.list_all)
    _print_table(
        ('binary', 'host', 'zone', 'status', 'state', 'updated_at', 'problem'),
        (
            (
                row.binary,
                row.host,
                row.zone,
                'disabled' if row.disabled else 'enabled',
                'up'
                if services.is_up(row, conf.service_down_time)
                else 'down',
                row.updated_at and row.updated_at.isoformat(' ', 'seconds'),
                row.health or row.disabled_reason,
            )
            for row in found
        ),
    )


WORK_FIELDS = (
    'id',
    'kind',
    'resource',
    'resource_id',
    'state',
    'owner',
    'age',
    'attempt',
    'error',
)


def work_list(args: argparse.Namespace) -> None:
    """list accepted requests that are not finished, oldest first"""
    with _database(_conf(args), ready=True) as db:
        found = db.read(_list_work)
    _show(args, WORK_FIELDS, found)


def _list_work(session: Session) -> list[dict[str, typing.Any]]:
    return [
        {
            field: _age(session, row)
            if field == 'age'
            else getattr(row, field)
            for field in WORK_FIELDS
        }
        for row in work.list_work(session)
    ]


def _age(session: Session, row: typing.Any) -> int:
    """Return the age in seconds, not negative: clocks of hosts may differ."""
    return max(0, int((session.now - row.created_at).total_seconds()))


def recovery_list(args: argparse.Namespace) -> None:
    """list resources in flight with age, holder and next step"""
    _show_in_flight(args, candidates=False)


def recovery_preview(args: argparse.Namespace) -> None:
    """show what a recovery pass would do, without doing it"""
    _show_in_flight(args, candidates=True)


def _show_in_flight(args: argparse.Namespace, *, candidates: bool) -> None:
    with _database(_conf(args), ready=True) as db:
        found = recovery.in_flight(db, args, candidates=candidates)
    _show(args, recovery.IN_FLIGHT_FIELDS, found)


def recovery_run(args: argparse.Namespace) -> None:
    """request a recovery pass, or the rescue of one resource"""
    with _database(_conf(args), ready=True) as db:
        print(recovery.run(db, args))


def recovery_log(args: argparse.Namespace) -> None:
    """list the decisions of recovery, newest first"""
    with _database(_conf(args), ready=True) as db:
        found = recovery.log(db, args)
    _show(args, recovery.LOG_FIELDS, found)


def status_upgrade_check(args: argparse.Namespace) -> int:
    """check that the services can start: exit code 0, 1 (warnings) or 2"""
    return upgrade_check.run(lambda: _conf(args))


# Users of auth_strategy = http_basic


def user_add(args: argparse.Namespace) -> None:
    """add a user; prompts for the password or reads standard input"""
    path = _conf(args).http_basic.users_file
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    users.add(
        path,
        args.name,
        _password(args.name),
        args.user_id,
        args.project,
        args.role,
    )


def user_list(args: argparse.Namespace) -> None:
    """list the users"""
    found = users.read(_conf(args).http_basic.users_file)
    _print_table(
        ('name', 'user_id', 'project_id', 'roles'),
        (
            (user.name, user.user_id, user.project_id, ','.join(user.roles))
            for user in found.values()
        ),
    )


def user_remove(args: argparse.Namespace) -> None:
    """remove a user"""
    users.remove(_conf(args).http_basic.users_file, args.name)


def _password(name: str) -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip('\r\n')
    password = getpass.getpass(f'Password of {name}: ')
    if getpass.getpass('Repeat the password: ') != password:
        raise exception.InvalidInput(reason='the passwords differ')
    return password


# Shared by the commands


def _conf(args: argparse.Namespace) -> cfg.ConfigOpts:
    return start.configure(
        PROG, config_files=args.config_file, state_dir=args.state_dir
    )


@contextlib.contextmanager
def _database(
    conf: cfg.ConfigOpts, *, create: bool = False, ready: bool = False
) -> Iterator[Database]:
    """Open the database; with `ready`, check its schema."""
    db = start.database(conf, create=create)
    try:
        if ready:
            schema.check(db)
        yield db
    finally:
        db.dispose()


def _show(
    args: argparse.Namespace,
    head: Sequence[str],
    found: Sequence[dict[str, typing.Any]],
) -> None:
    """Print rows as JSON if requested, else as a table."""
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        _print_table(head, ([row[name] for name in head] for row in found))


def _print_table(
    head: Sequence[str], rows: Iterable[Iterable[object]]
) -> None:
    """Print rows in aligned columns."""
    lines = [tuple(head)]
    lines += [
        tuple(
            '-' if cell is None else ' '.join(str(cell).split())
            for cell in row
        )
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print(
            '  '.join(
                f'{cell:{width}}'
                for cell, width in zip(line, widths, strict=True)
            ).rstrip()
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        PROG,
        parents=[_location_options(None)],
        description='Administration of a manila_lite installation.',
        epilog='Exit codes: 0 success, 1 error, 2 usage error; '
        '"db check" and "status upgrade-check" have their own.',
    )
    nouns = parser.add_subparsers(metavar='NOUN', required=True)
    _add(
        nouns,
        'db',
        'the schema of the database',
        sync=db_sync,
        version=db_version,
        check=db_check,
    )
    _add(nouns, 'service', 'the services of all nodes', list=service_list)
    _add(
        nouns,
        'status',
        'the state of the installation',
        upgrade_check=status_upgrade_check,
    )
    recovery.add_to(
        _add(
            nouns,
            'recovery',
            'recovery of resources that are in flight without work',
            list=recovery_list,
            preview=recovery_preview,
            run=recovery_run,
            log=recovery_log,
        )
    )
    work_parsers = _add(nouns, 'work', 'accepted requests', list=work_list)
    work_parsers['list'].add_argument(
        '--json', action='store_true', help='print JSON instead of a table'
    )
    user_parsers = _add(
        nouns,
        'user',
        'users of auth_strategy http_basic',
        add=user_add,
        list=user_list,
        remove=user_remove,
    )
    for verb in ('add', 'remove'):
        user_parsers[verb].add_argument('name', metavar='NAME')
    add = user_parsers['add'].add_argument
    add('--project', metavar='ID', required=True, help='id of the project')
    add('--user-id', metavar='ID', required=True, help='id of the user')
    add(
        '--role',
        metavar='ROLE',
        required=True,
        action='append',
        help='reader, member, admin or another; may be repeated',
    )
    return parser


def _location_options(default: str | None) -> argparse.ArgumentParser:
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


def _add(
    nouns: typing.Any, noun: str, about: str, **runs: Callable[..., int | None]
) -> dict[str, argparse.ArgumentParser]:
    verbs = nouns.add_parser(noun, help=about).add_subparsers(
        metavar='VERB', required=True
    )
    parsers = {}
    for name, run in runs.items():
        parsers[name] = verbs.add_parser(
            name.replace('_', '-'),
            help=run.__doc__,
            description=run.__doc__,
            parents=[_location_options(argparse.SUPPRESS)],
        )
        parsers[name].set_defaults(run=run)
    return parsers


if __name__ == '__main__':
    main()
