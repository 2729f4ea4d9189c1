"""The commands of `manila-lite-manage db` that have options of their own."""

import argparse
import os
import socket
import typing

from manila_lite.cmd import console
from manila_lite.cmd.build import purges
from manila_lite.db import engines, grants

DAY = 86400.0
MOST = 36500


def purge(args: argparse.Namespace) -> None:
    """delete old rows now, as the schedulers do from time to time"""
    conf = console.configure(args)
    age = None if args.age is None else args.age * DAY
    with console.database(conf, ready=True) as db:
        if args.dry_run:
            counts = db.read(purges.count_old_rows, conf, age)
        else:
            counts = {}
            owner = f'{socket.gethostname()}:{os.getpid()}:db purge'
            for found in purges.purges_of(conf, db, owner, age):
                counts.update(found.run_now())
    rows: list[dict[str, typing.Any]] = [
        {'table': table, 'rows': count} for table, count in counts.items()
    ]
    console.show(args, ('table', 'rows'), rows)


def add_purge_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--age',
        metavar='DAYS',
        type=_days,
        help='delete what is older, at least 1, whatever the options say; '
        'user messages are kept until they expire',
    )
    parser.add_argument(
        '--dry-run', action='store_true', help='print the number of rows; delete none'
    )
    console.add_json(parser)


def _days(text: str) -> int:
    """Parse an age; a live service, which has one too, is younger."""
    number = int(text)
    if not 1 <= number <= MOST:
        raise argparse.ArgumentTypeError(f'{text} is not from 1 to {MOST}')
    return number


DIALECTS = ('mysql', 'postgresql')


def print_grants(args: argparse.Namespace) -> None:
    """print the SQL that limits an account of the database to a service"""
    dialect = args.dialect
    if dialect is None:
        url = console.configure(args).database.connection
        dialect = url and engines.dialect_of(url)
        if dialect not in DIALECTS:
            args.usage_error('--dialect is needed without a database server')
    lines = grants.statements(dialect, args.service, args.account, args.host)
    # Some statements of MariaDB contain others.
    end = ' //' if dialect == 'mysql' else ';'
    if dialect == 'mysql':
        print('DELIMITER //')
    for line in lines:
        print(f'{line}{end}')
    if dialect == 'mysql':
        print('DELIMITER ;')


def add_grants_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--service',
        action='append',
        choices=grants.SERVICES,
        required=True,
        help='a service that uses the account; controller is API and scheduler. '
        'May be repeated',
    )
    parser.add_argument(
        '--account',
        metavar='NAME',
        required=True,
        help='the account, which exists already',
    )
    parser.add_argument(
        '--host',
        metavar='HOST',
        default='%',
        help='MariaDB: the host from which the account connects; by default any',
    )
    parser.add_argument(
        '--dialect', choices=DIALECTS, help='by default that of the configured database'
    )
