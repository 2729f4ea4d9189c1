"""The command `manila-lite-manage api description`."""

import argparse
import typing

from manila_lite.api import versions
from manila_lite.cmd import console


def print_description(args: argparse.Namespace) -> None:
    """print the description of the API in OpenAPI"""
    # It imports the whole API, which no other command needs.
    from manila_lite.api.description import document

    minor = versions.parse(args.version)
    print(document.encoded(console.configure(args), minor).decode())


def add_to(nouns: typing.Any) -> None:
    """Add the command and its argument."""
    parsers = console.add(
        nouns, 'api', 'the API for users', description=print_description
    )
    parsers['description'].add_argument(
        '--version',
        default=versions.text(versions.LATEST),
        metavar='2.N',
        help='the version to describe; by default the latest one',
    )
