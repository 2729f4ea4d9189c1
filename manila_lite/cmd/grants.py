"""The command `manila-lite-manage db grants`."""

import argparse

from manila_lite.cmd import console
from manila_lite.db import engines, grants

DIALECTS = ('mysql', 'postgresql')


def run(args: argparse.Namespace) -> None:
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


def add_options(parser: argparse.ArgumentParser) -> None:
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
