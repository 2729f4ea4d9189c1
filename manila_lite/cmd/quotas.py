"""The commands of `manila-lite-manage quota`.

Without an identity service, the official client cannot name a project.
"""

import argparse
from collections.abc import Callable
import functools
import typing

from oslo_config import cfg

from manila_lite import exception
from manila_lite.cmd import console
from manila_lite.db.queries.quotas.quotas import DEFAULT_CLASS, Scope
from manila_lite.db.queries.types import types as share_types
from manila_lite.db.session import Session
from manila_lite.quota import limits, sets


def show(args: argparse.Namespace) -> None:
    """show the limits of a project with their usage"""
    conf = _configure(args)
    with console.database(conf, ready=True) as db:
        if args.default:
            found = db.read(sets.show_class, limits.from_options(conf.quota))
            _print_limits(args, found)
        else:
            usage = db.read(_in_scope(args, conf, sets.show_usage))
            console.show(
                args,
                ('resource', 'limit', 'in_use', 'reserved'),
                [{'resource': name, **row._asdict()} for name, row in usage.items()],
            )


def change(args: argparse.Namespace) -> None:
    """set some limits of a project"""
    values = {
        name: value
        for name in limits.NAMES
        if (value := getattr(args, name)) is not None
    }
    if not values:
        args.usage_error('no limit is given')
    conf = _configure(args)
    with console.database(conf, ready=True) as db:
        if args.default:
            found = db.write(
                sets.change_class,
                limits.from_options(conf.quota),
                DEFAULT_CLASS,
                values,
            )
        else:
            found = db.write(
                _in_scope(args, conf, sets.change), values, force=args.force
            )
        _print_limits(args, found)


def add_to(nouns: console.Commands) -> None:
    """Add the commands and their arguments."""
    parsers = console.add(nouns, 'quota', 'limits of projects', show=show, set=change)
    for parser in parsers.values():
        add = parser.add_argument
        add('project', metavar='PROJECT', nargs='?', help='id of the project')
        add(
            '--default',
            action='store_true',
            help='the limits of projects without own ones',
        )
        add('--user', metavar='ID', help='of this user in the project')
        add('--share-type', metavar='TYPE', help='name or id of a share type')
        console.add_json(parser)
    add = parsers['set'].add_argument
    add('--force', action='store_true', help='allow limits below what is in use')
    for name in limits.NAMES:
        add(
            f'--{name.replace("_", "-")}',
            dest=name,
            type=int,
            metavar='NUMBER',
            help='-1 for no limit',
        )


def _configure(args: argparse.Namespace) -> cfg.ConfigOpts:
    if args.default is bool(args.project):
        args.usage_error('give a PROJECT or --default')
    if args.user and args.share_type:
        args.usage_error('--user and --share-type exclude each other')
    if args.default and (args.user or args.share_type):
        args.usage_error('--default has neither users nor share types')
    return console.configure(args)


def _in_scope(
    args: argparse.Namespace, conf: cfg.ConfigOpts, call: Callable
) -> Callable:
    """Return a transaction that calls the function for the scope."""
    defaults = limits.from_options(conf.quota)

    @functools.wraps(call)
    def run(
        session: Session, *values: object, **options: object
    ) -> dict[str, typing.Any]:
        return call(session, defaults, _scope(session, args), *values, **options)

    return run


def _scope(session: Session, args: argparse.Namespace) -> Scope:
    if not args.share_type:
        return sets.scope_of(args.project, user_id=args.user)
    found = share_types.find_usable(session, args.share_type, args.project, True)
    if found is None:
        raise exception.ShareTypeNotFound(share_type_id=args.share_type)
    return sets.scope_of(args.project, share_type_id=found.id)


def _print_limits(args: argparse.Namespace, found: dict[str, int]) -> None:
    console.show(
        args,
        ('resource', 'limit'),
        [{'resource': name, 'limit': limit} for name, limit in found.items()],
    )
