"""`manila-lite-manage`: administration besides the API.

Exit codes: 0 success, 1 error, 2 usage error. `db check` returns 3 when
the schema is not that of this release, `db online_data_migrations` 1 when
rows are left; `status upgrade-check` has exit codes of its own.
"""

import argparse
from collections.abc import Sequence
import os
import sys
import typing

from manila_lite.api import versions
from manila_lite.cmd import (
    console,
    data_migrations,
    database,
    example,
    gone_backends,
    inventory,
    quotas,
    recovery,
    services,
    start,
    storage,
    upgrade_check,
    users,
)
from manila_lite.cmd.console import PROG
from manila_lite.db import schema
from manila_lite.db.queries.services import releases
from manila_lite.db.session import Session
from manila_lite.work import table as work

WRONG_SCHEMA = 3


def main(argv: Sequence[str] | None = None) -> None:
    args = _parser().parse_args(argv)
    with start.report_errors(PROG):
        try:
            code = args.run(args)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader, `head` perhaps, has enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 0
        sys.exit(code)


# Databases


def db_sync(args: argparse.Namespace) -> None:
    """migrate the schema to this release"""
    conf = console.configure(args)
    with console.database(conf, create=True) as db:
        db.read(releases.check_contraction, conf.service_down_time)
        db.read(data_migrations.check_contraction)
        schema.sync(db)
        print(f'The database has schema {schema.version(db)}.')


def db_version(args: argparse.Namespace) -> None:
    """print the version of the schema"""
    with console.database(console.configure(args)) as db:
        print(schema.version(db) or 'none')


def db_check(args: argparse.Namespace) -> int:
    """check that the schema is that of this release: exit code 0 or 3"""
    with console.database(console.configure(args)) as db:
        try:
            schema.check(db)
        except schema.SchemaMismatch as error:
            print(f'{PROG}: {error}', file=sys.stderr)
            return WRONG_SCHEMA
    return 0


# Work and recovery


WORK_FIELDS = (
    'id',
    'kind',
    'resource',
    'resource_id',
    'state',
    'owner',
    'age',
    'attempt',
    'needs_release',
    'error',
)


def work_list(args: argparse.Namespace) -> None:
    """list accepted requests that are not finished, oldest first"""
    with console.database(console.configure(args), ready=True) as db:
        found = db.read(_list_work)
    console.show(args, WORK_FIELDS, found)


def _list_work(session: Session) -> list[dict[str, typing.Any]]:
    return [
        {
            field: _age(session, row) if field == 'age' else getattr(row, field)
            for field in WORK_FIELDS
        }
        for row in work.list_work(session)
    ]


def _age(session: Session, row: typing.Any) -> int:
    """Return the age in seconds, not negative: clocks of hosts may differ."""
    return max(0, int((session.now - row.created_at).total_seconds()))


def work_cancel(args: argparse.Namespace) -> None:
    """let unfinished work fail, of a back end that is gone for good"""
    with gone_backends.opened(args) as gone:
        gone.cancel_work(args.id)
    print(f'Cancelled work {args.id}.')


def share_delete_without_driver(args: argparse.Namespace) -> None:
    """force-delete a share whose back end is gone for good"""
    with gone_backends.opened(args) as gone:
        gone.delete_share(args.id)
    print(f'Deleted share {args.id}; no driver was asked.')


def recovery_list(args: argparse.Namespace) -> None:
    """list resources in flight with age, holder and next step"""
    _show_in_flight(args, candidates=False)


def recovery_preview(args: argparse.Namespace) -> None:
    """show what a recovery pass would do, without doing it"""
    _show_in_flight(args, candidates=True)


def _show_in_flight(args: argparse.Namespace, *, candidates: bool) -> None:
    with console.database(console.configure(args), ready=True) as db:
        found = recovery.in_flight(db, args, candidates=candidates)
    console.show(args, recovery.IN_FLIGHT_FIELDS, found)


def recovery_run(args: argparse.Namespace) -> None:
    """request a recovery pass, or the rescue of one resource"""
    if args.resource_type is not None and args.resource_id is None:
        args.usage_error('the ID of the resource is missing')
    with console.database(console.configure(args), ready=True) as db:
        print(recovery.run(db, args))


def recovery_log(args: argparse.Namespace) -> None:
    """list the decisions of recovery, newest first"""
    with console.database(console.configure(args), ready=True) as db:
        found = recovery.log(db, args)
    console.show(args, recovery.LOG_FIELDS, found)


def status_upgrade_check(args: argparse.Namespace) -> int:
    """check that the services can start: exit code 0, 1 (warnings) or 2"""
    return upgrade_check.run(lambda: console.configure(args))


# Arguments


def api_description(args: argparse.Namespace) -> None:
    """print the description of the API in OpenAPI"""
    # It imports the whole API, which no other command needs.
    from manila_lite.api.description import operations

    minor = versions.parse(args.version)
    print(operations.encoded(console.configure(args), minor).decode())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        PROG,
        parents=[console.location_options(None)],
        description='Administration of a manila_lite installation.',
        epilog='Exit codes: 0 success, 1 error, 2 usage error; '
        '"db check" and "status upgrade-check" have their own.',
    )
    console.add_version(parser)
    nouns = parser.add_subparsers(metavar='NOUN', required=True)
    databases = console.add(
        nouns,
        'db',
        'the database: schema, data of older releases, old rows',
        sync=db_sync,
        version=db_version,
        check=db_check,
        grants=database.print_grants,
        purge=database.purge,
        online_data_migrations=data_migrations.run,
    )
    database.add_grants_options(databases['grants'])
    database.add_purge_options(databases['purge'])
    data_migrations.add_options(databases['online_data_migrations'])
    services.add_to(nouns)
    shares = console.add(
        nouns,
        'share',
        'shares of back ends that are gone',
        delete_without_driver=share_delete_without_driver,
    )
    shares['delete_without_driver'].add_argument(
        'id', metavar='ID', help='id of the share'
    )
    states = console.add(
        nouns,
        'status',
        'the state of the installation',
        upgrade_check=status_upgrade_check,
        inventory=inventory.show,
    )
    inventory.add_options(states['inventory'])
    recovery.add_to(
        console.add(
            nouns,
            'recovery',
            'recovery of resources that are in flight without work',
            list=recovery_list,
            preview=recovery_preview,
            run=recovery_run,
            log=recovery_log,
        )
    )
    work_parsers = console.add(
        nouns, 'work', 'accepted requests', list=work_list, cancel=work_cancel
    )
    work_parsers['cancel'].add_argument(
        'id', metavar='ID', help='id of the work, as shown by "work list"'
    )
    console.add_json(work_parsers['list'])
    quotas.add_to(nouns)
    users.add_to(nouns)
    storage.add_to(nouns)
    api_parsers = console.add(
        nouns, 'api', 'the API for users', description=api_description
    )
    api_parsers['description'].add_argument(
        '--version',
        default=versions.text(versions.LATEST),
        metavar='2.N',
        help='the version to describe; by default the latest one',
    )
    example.add_to(nouns)
    return parser


if __name__ == '__main__':
    main()
