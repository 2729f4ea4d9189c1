"""The commands of `manila-lite-manage user`, for `http_basic`."""

import argparse
import os

from manila_lite import exception
from manila_lite.api.auth import users
from manila_lite.cmd import console
from manila_lite.policies import enforcer


def add(args: argparse.Namespace) -> None:
    """add a user; prompts for the password or reads standard input"""
    conf = console.configure(args)
    unknown = enforcer.find_unknown(conf, args.role)
    if unknown:
        raise exception.InvalidInput(
            reason=f'no policy rule knows the role {", ".join(unknown)}; the '
            'defaults know reader, member and admin'
        )
    path = conf.http_basic.users_file
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    users.add(
        path,
        args.name,
        console.password(args.name),
        args.user_id,
        args.project,
        args.role,
    )


def list_all(args: argparse.Namespace) -> None:
    """list the users"""
    found = users.read(console.configure(args).http_basic.users_file)
    console.print_table(
        ('name', 'user_id', 'project_id', 'roles'),
        (
            (user.name, user.user_id, user.project_id, ','.join(user.roles))
            for user in found.values()
        ),
    )


def passwd(args: argparse.Namespace) -> None:
    """set the password of a user; prompts or reads standard input"""
    path = console.configure(args).http_basic.users_file
    if args.name not in users.read(path):
        raise exception.ResourceNotFound(resource='User', id=args.name)
    users.set_password(path, args.name, console.password(args.name))


def remove(args: argparse.Namespace) -> None:
    """remove a user"""
    users.remove(console.configure(args).http_basic.users_file, args.name)


def add_to(nouns: console.Commands) -> None:
    """Add the commands and their arguments."""
    parsers = console.add(
        nouns,
        'user',
        'users of auth_strategy http_basic',
        add=add,
        list=list_all,
        passwd=passwd,
        remove=remove,
    )
    for verb in ('add', 'passwd', 'remove'):
        parsers[verb].add_argument('name', metavar='NAME')
    argument = parsers['add'].add_argument
    argument('--project', metavar='ID', required=True, help='id of the project')
    argument('--user-id', metavar='ID', required=True, help='id of the user')
    argument(
        '--role',
        metavar='ROLE',
        required=True,
        action='append',
        help='reader, member, admin or another that a policy rule mentions; '
        'may be repeated',
    )
