"""The commands of `manila-lite-manage recovery`.

Requests are stored in the database like all work: the services need not
be reachable, and find them with their next sweep.
"""

import argparse
import getpass
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.session import Database
from manila_lite.rpc.contract import Client
from manila_lite.rpc.share import ReconciliationRpc
from manila_lite.share.operations.recovery import RESOURCES, Recovery
from manila_lite.work import table

IN_FLIGHT_FIELDS = (
    'resource_type',
    'resource_id',
    'status',
    'host',
    'age',
    'holder',
    'owner',
    'next_step',
)
LOG_FIELDS = (
    'made_at',
    'resource',
    'resource_id',
    'status_before',
    'action',
    'status_after',
    'reason',
    'evidence',
    'duration',
    'made_by',
    'asked_by',
)

Rows = list[dict[str, typing.Any]]


def add_to(verbs: dict[str, argparse.ArgumentParser]) -> None:
    """Add the arguments of the commands."""
    for name in ('list', 'preview', 'log'):
        add = verbs[name].add_argument
        add('--resource-type', choices=RESOURCES, help='of this kind only')
        add('--host', metavar='HOST', help='of this service only')
        add(
            '--limit',
            type=_positive,
            default=1000,
            metavar='NUMBER',
            help='at most so many (default %(default)s)',
        )
        add('--json', action='store_true', help='print JSON instead of a table')
    verbs['log'].add_argument(
        '--resource-id', metavar='ID', help='about this resource only'
    )
    add = verbs['run'].add_argument
    add(
        'resource_type',
        nargs='?',
        choices=RESOURCES,
        help='type of the resource to rescue',
    )
    add('resource_id', nargs='?', metavar='ID', help='id of the resource')
    add('--host', metavar='HOST', help='run a pass of this service only')


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f'{text} is less than 1')
    return number


def in_flight(db: Database, args: argparse.Namespace, *, candidates: bool) -> Rows:
    """Return the requested resources, with ages in whole seconds."""
    found = _recovery(db).in_flight(
        limit=args.limit,
        resource_type=args.resource_type,
        host=args.host,
        candidates=candidates,
    )
    return [
        one._asdict() | {'age': None if one.age is None else int(one.age)}
        for one in found
    ]


def log(db: Database, args: argparse.Namespace) -> Rows:
    """Return the requested decisions."""
    found = _recovery(db).log(
        limit=args.limit,
        resource=args.resource_type,
        host=args.host,
        resource_id=args.resource_id,
    )
    return [{name: _plain(getattr(row, name)) for name in LOG_FIELDS} for row in found]


def _plain(value: object) -> typing.Any:
    if isinstance(value, float):
        return round(value, 3)
    if hasattr(value, 'isoformat'):
        return value.isoformat(' ', 'seconds')
    return value


def run(db: Database, args: argparse.Namespace) -> str:
    """Submit the requested pass or rescue; return a description."""
    recovery = _recovery(db)
    ctx = RequestContext(user_id=f'{user()} (manila-lite-manage)')
    if args.resource_id is not None:
        recovery.rescue(ctx, args.resource_type, args.resource_id)
        return f'Requested rescue of {args.resource_type} {args.resource_id}.'
    if args.resource_type is not None:
        raise exception.InvalidInput(reason='an id is missing')
    hosts = recovery.run_pass(ctx, args.host)
    return '\n'.join(f'Requested a pass of {host}.' for host in hosts) or (
        'There is no share service.'
    )


def user() -> str:
    """Return the name of the user who runs the command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an id without a name, as in containers
        return 'administrator'


def _recovery(db: Database) -> Recovery:
    return Recovery(db, Client(ReconciliationRpc, table.submit_durable, None))
